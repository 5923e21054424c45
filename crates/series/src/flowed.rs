//! `format=flowed` (RFC 3676), undone the way `git am` undoes it: a blank is taken off the
//! front of lines, and lines that end in a blank are joined with the next one.
//!
//! What a sender's mail program stuffed comes back whole; blanks at line ends are lost,
//! which the hunks' counts show.

/// The text without stuffing and soft line breaks. With `delsp` the blank of a soft line
/// break goes, too.
pub(crate) fn unflow(text: &str, delsp: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        if content == "-- " {
            plain.push_str(line);
            continue;
        }
        let content = content.strip_prefix(' ').unwrap_or(content);
        if content.ends_with(' ') {
            let kept = content.len() - usize::from(delsp);
            plain.push_str(&content[..kept]);
        } else {
            plain.push_str(content);
            plain.push('\n');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::unflow;

    #[test]
    fn stuffing_and_soft_breaks() {
        let text = "a line \nthat goes on\n  context\r\n+added\n From x\n-- \nsignature\n";
        let plain = "a line that goes on\n context\n+added\nFrom x\n-- \nsignature\n";
        assert_eq!(unflow(text, false), plain);
        assert_eq!(unflow("a \nb\n", true), "ab\n");
        assert_eq!(unflow("", false), "");
        assert_eq!(unflow(" ", false), "\n");
    }
}
