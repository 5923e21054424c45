//! Text from outside, made safe to print.

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
    fn what_acts_is_written_out() {
        assert_eq!(defuse("mm: fix \u{1b}[2Jx"), "mm: fix \\u{1b}[2Jx");
        assert_eq!(defuse("a\r\nb\tc"), "a  b c");
        assert_eq!(defuse("user\u{202e}txt"), "user\\u{202e}txt");
        assert_eq!(defuse("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(defuse("Jürgen 王"), "Jürgen 王");
        assert_eq!(defuse(&"x".repeat(1000)).len(), MAX_SHOWN + 3);
    }
}
