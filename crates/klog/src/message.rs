//! One line of a log to the messages in it.

use std::sync::LazyLock;

use regex::Regex;

/// A message without colours and prefixes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    /// Seconds since the kernel began, if it says so.
    pub(crate) stamp: Option<f64>,
    pub(crate) text: String,
}

/// `[   12.345678] ` as printk writes it, with the caller where `CONFIG_PRINTK_CALLER` is set.
static STAMP: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:<\d{1,3}>)?\[ *(?P<s>\d{1,9}\.\d{6})\](?:\[ *[TC]\d+\])? ?"));
/// What journals and `dmesg -T` put in front.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^(?:",
        r"[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}(?:\.\d+)? \S+ kernel: ",
        r"|\d{4}-\d{2}-\d{2}T[\d:.,+Z-]+ \S+ kernel: ",
        r"|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[,.]\d{6}[+-]\d{2}:\d{2} ",
        r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}\] ",
        r"|<\d{1,3}>",
        r")"
    ))
});

pub(crate) fn regex(text: &str) -> Regex {
    Regex::new(text).expect("patterns are written here and tested")
}

/// The messages of a line: a terminal shows several on one where carriage returns or another
/// writer came between.
pub(crate) fn messages(line: &[u8]) -> Vec<Message> {
    let plain = plain(line);
    let mut found = Vec::new();
    for part in plain.split('\r').filter(|part| !part.trim().is_empty()) {
        split(part, &mut found);
    }
    found
}

/// Cuts where a stamp begins inside of a line: two writers shared the console. What stands in
/// quotes was quoted by somebody.
fn split(part: &str, found: &mut Vec<Message>) {
    let mut begin = 0;
    let mut stamp = None;
    for stamped in STAMP.captures_iter(part) {
        let (Some(whole), Some(seconds)) = (stamped.get(0), stamped.name("s")) else {
            continue;
        };
        let before = part[..whole.start()].chars().next_back();
        if before.is_some_and(|c| matches!(c, '"' | '\'' | '`' | '(' | '=')) {
            continue;
        }
        push(&part[begin..whole.start()], stamp, found);
        begin = whole.end();
        stamp = seconds.as_str().parse().ok();
    }
    push(&part[begin..], stamp, found);
}

fn push(text: &str, stamp: Option<f64>, found: &mut Vec<Message>) {
    let text = PREFIX.replace(text, "");
    let text = text.trim_end();
    // A prefix of a journal alone is no message, an empty stamped line is none either.
    if text.trim().is_empty() {
        return;
    }
    found.push(Message {
        stamp,
        text: text.to_owned(),
    });
}

/// Text without escape sequences (ECMA-48), control characters and marks of direction, so that
/// it can be shown on a terminal; tabs and carriage returns stay.
fn plain(line: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            0x1b => rest = after_escape(after),
            b'\t' | b'\r' => bytes.push(*first),
            0..=0x1f | 0x7f => {}
            _ => bytes.push(*first),
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars().filter(|c| is_shown(*c)).collect()
}

fn is_shown(c: char) -> bool {
    let direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(c, '\t' | '\r') || !(c.is_control() || direction)
}

fn after_escape(rest: &[u8]) -> &[u8] {
    match rest.split_first() {
        // CSI: parameters, intermediates, one final byte. One that was cut ends where a byte
        // comes that cannot be part of it.
        Some((b'[', rest)) => {
            let end = rest.iter().position(|b| !(0x20..=0x3f).contains(b));
            match end {
                Some(end) if (0x40..=0x7e).contains(&rest[end]) => &rest[end + 1..],
                Some(end) => &rest[end..],
                None => &[],
            }
        }
        // OSC: until BEL or ST.
        Some((b']', rest)) => match rest.iter().position(|b| matches!(b, 0x07 | 0x1b)) {
            Some(end) if rest[end] == 0x07 => &rest[end + 1..],
            Some(end) => rest.get(end + 2..).unwrap_or_default(),
            None => rest,
        },
        Some((0x20..=0x7e, rest)) => rest,
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<(Option<f64>, String)> {
        let found = messages(line.as_bytes());
        found.into_iter().map(|m| (m.stamp, m.text)).collect()
    }

    #[test]
    fn prefixes_and_colours_go() {
        for line in [
            "[    1.500000] usb 1-1: new device",
            "<6>[    1.500000] usb 1-1: new device\r",
            "[    1.500000][   T12] usb 1-1: new device",
            "\u{1b}[32m[    1.500000]\u{1b}[0m \u{1b}[33musb 1-1\u{1b}[0m: new device\0",
            "\r\r[    1.500000] usb 1-1: new device",
            "Dec 06 12:00:00 host kernel: [    1.500000] usb 1-1: new device",
        ] {
            let expected = (Some(1.5), "usb 1-1: new device".to_owned());
            assert_eq!(texts(line), [expected], "{line:?}");
        }
        for line in [
            "Dec  6 12:00:00 host kernel: usb 1-1: new device",
            "2026-12-06T12:00:00,123456+00:00 usb 1-1: new device",
            "2026-12-06T12:00:00.123456+0000 host kernel: usb 1-1: new device",
            "[Sun Dec  6 12:00:00 2026] usb 1-1: new device",
            "<4>usb 1-1: new device",
        ] {
            let expected = (None, "usb 1-1: new device".to_owned());
            assert_eq!(texts(line), [expected], "{line:?}");
        }
    }

    #[test]
    fn lines_that_ran_together_are_cut() {
        let line = "host login: [    9.000000] watchdog: BUG[    9.000001] second";
        let expected = [
            (None, "host login:".to_owned()),
            (Some(9.0), "watchdog: BUG".to_owned()),
            (Some(9.000_001), "second".to_owned()),
        ];
        assert_eq!(texts(line), expected);
        let quoted = "expected \"[    9.000000] Kernel panic - not syncing: x\"";
        assert_eq!(texts(quoted), [(None, quoted.to_owned())]);
    }

    #[test]
    fn sequences_that_were_cut_take_nothing_along() {
        assert_eq!(texts("\u{1b}[1"), []);
        assert_eq!(texts("\u{1b}]0;title\u{7}text")[0].1, "text");
        assert_eq!(texts("a\u{1b}[H\u{1b}[Jb")[0].1, "ab");
        // The one-character form of CSI, and text from right to left.
        assert_eq!(texts("a\u{9b}\u{202e}b")[0].1, "ab");
    }
}
