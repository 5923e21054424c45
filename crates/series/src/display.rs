//! Text from outside, made safe to print.

use std::fmt::Write as _;

/// Characters of a line that is shown; longer ones are cut.
const MAX_SHOWN: usize = 400;

/// The text on one line without anything that acts on a terminal or reorders what is read:
/// control characters and invisible ones are written as `\u{1b}`, line ends as blanks.
pub fn defuse(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_SHOWN {
            shown.push_str("...");
            break;
        }
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if acts(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Text of any length with its line ends and tabs, without what else acts on a terminal.
pub fn defuse_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if acts(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The same JSON document in which every string is safe to print: what acts on a terminal is
/// written as `\u001b`. Between strings a document has nothing of that kind.
pub fn defuse_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in document.chars() {
        if acts(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character does something other than being seen.
pub(crate) fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_documents_keep_what_they_say() {
        let text = "a\tb\n\u{1b}[31mred\u{202e}\u{7}\r\n";
        assert_eq!(
            defuse_lines(text),
            "a\tb\n\\u{1b}[31mred\\u{202e}\\u{7}\\u{d}\n"
        );
        let long = "x".repeat(10_000);
        assert_eq!(defuse_lines(&long), long);
        let value = serde_json::json!({ "a": "\u{9b}\u{202e}\u{e0041}\u{7f}é\n" });
        let document = serde_json::to_string_pretty(&value).expect("text");
        let shown = defuse_json(&document);
        assert!(!shown.chars().any(|c| acts(c) && c != '\n'), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read, value);
    }

    #[test]
    fn what_acts_is_written_out() {
        assert_eq!(defuse("mm: fix \u{1b}[2Jx"), "mm: fix \\u{1b}[2Jx");
        assert_eq!(defuse("a\r\nb\tc"), "a  b c");
        assert_eq!(defuse("user\u{202e}txt"), "user\\u{202e}txt");
        assert_eq!(defuse("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(defuse("Jürgen 王"), "Jürgen 王");
        assert_eq!(defuse(&"x".repeat(1000)).len(), MAX_SHOWN + 3);
    }
}
