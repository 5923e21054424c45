//! Mail boxes: one file, many mails.
//!
//! A mail begins after a line `From ADDRESS DATE`. A line of its text that begins with
//! `From ` is escaped by a `>`: in mboxo that line only, in mboxrd (RFC 4155 names it; lore
//! writes it) also lines that carry `>` already, so that it can be undone exactly. Git
//! itself escapes nothing.

use std::borrow::Cow;

use crate::error::SeriesError;
use crate::limits::MAX_MAILS;
use crate::place::Place;

/// One mail as it was written: no separator, escapes undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawMail {
    pub(crate) place: Place,
    pub(crate) bytes: Vec<u8>,
    /// The order of the source is the order of the patches: git wrote it.
    pub(crate) ordered: bool,
}

/// Who wrote a separator, and so how the text was escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// `git format-patch`: not at all.
    Git,
    /// public-inbox (lore) and b4.
    Mboxrd,
    /// Mail programs.
    Mboxo,
}

/// The separator that public-inbox writes.
const MBOXRD: &[u8] = b"From mboxrd@z Thu Jan  1 00:00:00 1970";
/// The date that git writes into separators, whatever the commit's.
const GIT_DATE: &[u8] = b" Mon Sep 17 00:00:00 2001";

/// Splits a file into mails. A file that does not begin with a separator is one mail.
///
/// # Errors
/// [`SeriesError::TooManyMails`].
pub(crate) fn split(source: &str, bytes: &[u8]) -> Result<Vec<RawMail>, SeriesError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut lines = lines(bytes).enumerate().peekable();
    let mut mails: Vec<RawMail> = Vec::new();
    let mut escape = None;
    while let Some((index, line)) = lines.next() {
        let header_follows = lines.peek().is_some_and(|(_, next)| is_header(next));
        let splits = index == 0 || escape.is_some();
        if splits
            && header_follows
            && let Some(found) = separator(line)
        {
            escape = Some(found);
            if mails.len() == MAX_MAILS {
                return Err(SeriesError::TooManyMails {
                    source_name: source.to_owned(),
                });
            }
            // The mail itself begins in the next line, counted from 1.
            mails.push(new_mail(source, mails.len() + 1, index + 2, found));
            continue;
        }
        if mails.is_empty() {
            if is_blank(line) {
                continue;
            }
            mails.push(new_mail(source, 1, index + 1, Escape::Mboxo));
        }
        if let Some(mail) = mails.last_mut() {
            mail.bytes.extend_from_slice(unescape(line, escape));
        }
    }
    if escape.is_some() {
        mails
            .iter_mut()
            .for_each(|mail| drop_last_blank(&mut mail.bytes));
    }
    Ok(mails)
}

fn new_mail(source: &str, number: usize, line: usize, escape: Escape) -> RawMail {
    RawMail {
        place: Place::new(source, number, line),
        bytes: Vec::new(),
        ordered: escape == Escape::Git,
    }
}

/// Lines with their ends.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// The bytes with LF for every CRLF.
pub(crate) fn with_lf(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    let mut lf = Vec::with_capacity(bytes.len());
    for line in lines(bytes) {
        match line.strip_suffix(b"\r\n") {
            Some(text) => {
                lf.extend_from_slice(text);
                lf.push(b'\n');
            }
            None => lf.extend_from_slice(line),
        }
    }
    Cow::Owned(lf)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Whether a line begins a header field (RFC 5322, 2.2).
pub(crate) fn is_header(line: &[u8]) -> bool {
    let name = line
        .iter()
        .take_while(|b| b.is_ascii_graphic() && **b != b':')
        .count();
    name > 0 && line.get(name) == Some(&b':')
}

fn separator(line: &[u8]) -> Option<Escape> {
    let line = line.trim_ascii_end();
    let rest = line.strip_prefix(b"From ")?;
    if line == MBOXRD {
        return Some(Escape::Mboxrd);
    }
    if let Some(id) = rest.strip_suffix(GIT_DATE)
        && id.len() >= 40
        && id.iter().all(u8::is_ascii_hexdigit)
    {
        return Some(Escape::Git);
    }
    ends_in_date(rest).then_some(Escape::Mboxo)
}

/// Whether a separator ends in a date of asctime(3), with or without a zone: an hour, a
/// minute and a year are looked for.
fn ends_in_date(rest: &[u8]) -> bool {
    let words: Vec<&[u8]> = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let digits = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let time = words.iter().position(|word| {
        let parts: Vec<&[u8]> = word.split(|byte| *byte == b':').collect();
        matches!(parts.len(), 2 | 3) && parts.iter().all(|part| part.len() == 2 && digits(part))
    });
    let year = |word: &&[u8]| word.len() == 4 && digits(word);
    time.is_some_and(|time| time >= 3 && words[time..].iter().any(year))
}

fn unescape(line: &[u8], escape: Option<Escape>) -> &[u8] {
    let quoted = line.iter().take_while(|byte| **byte == b'>').count();
    let from = line[quoted..].starts_with(b"From ");
    match escape {
        Some(Escape::Mboxrd) if quoted > 0 && from => &line[1..],
        Some(Escape::Mboxo) if quoted == 1 && from => &line[1..],
        _ => line,
    }
}

/// The blank line before the next separator belongs to the box, not to the mail.
fn drop_last_blank(bytes: &mut Vec<u8>) {
    for (end, blank) in [(&b"\r\n\r\n"[..], 2), (b"\n\n", 1)] {
        if bytes.ends_with(end) {
            bytes.truncate(bytes.len() - blank);
            return;
        }
    }
}

/// Writes mails as one mboxrd, as `git am --patch-format=mboxrd` reads it. Reading it again
/// gives the same bytes for every mail that ends in a line end.
pub fn write_mbox<'a>(mails: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut mbox = Vec::new();
    for mail in mails {
        mbox.extend_from_slice(MBOXRD);
        mbox.push(b'\n');
        for line in lines(mail) {
            let quoted = line.iter().take_while(|byte| **byte == b'>').count();
            if line[quoted..].starts_with(b"From ") {
                mbox.push(b'>');
            }
            mbox.extend_from_slice(line);
        }
        if !mail.ends_with(b"\n") {
            mbox.push(b'\n');
        }
        mbox.extend_from_slice(if mail.ends_with(b"\r\n") {
            b"\r\n"
        } else {
            b"\n"
        });
    }
    mbox
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> Vec<String> {
        let mails = split("x", bytes).expect("few mails");
        let text = |mail: RawMail| String::from_utf8(mail.bytes).expect("UTF-8");
        mails.into_iter().map(text).collect()
    }

    #[test]
    fn separators() {
        let git = format!("From {}{}", "a".repeat(40), " Mon Sep 17 00:00:00 2001");
        let cases = [
            (git.as_str(), Some(Escape::Git)),
            (
                "From mboxrd@z Thu Jan  1 00:00:00 1970",
                Some(Escape::Mboxrd),
            ),
            (
                "From a@b.c Fri Sep 22 13:01:02 2023\r\n",
                Some(Escape::Mboxo),
            ),
            ("From - Fri Sep 22 13:01 2023 +0200", Some(Escape::Mboxo)),
            ("From here on 13:01 nothing", None),
            ("From the start of 2023", None),
            ("From: a@b.c Fri Sep 22 13:01:02 2023", None),
        ];
        for (line, expected) in cases {
            assert_eq!(separator(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn escapes_are_undone_by_the_rule_of_the_writer() {
        let body = "Subject: a\n\n>From here\n>>From there\n> From quote\n";
        let mbox = |from: &str| format!("From {from}\n{body}\n");
        let lore = texts(mbox("mboxrd@z Thu Jan  1 00:00:00 1970").as_bytes());
        assert_eq!(
            lore,
            ["Subject: a\n\nFrom here\n>From there\n> From quote\n"]
        );
        let mutt = texts(mbox("a@b Fri Sep 22 13:01:02 2023").as_bytes());
        assert_eq!(
            mutt,
            ["Subject: a\n\nFrom here\n>>From there\n> From quote\n"]
        );
        let git = texts(mbox(&format!("{} Mon Sep 17 00:00:00 2001", "b".repeat(40))).as_bytes());
        assert_eq!(git, [body]);
    }

    #[test]
    fn a_from_line_without_a_header_after_it_is_text() {
        let mail = "Subject: a\n\nFrom a@b Fri Sep 22 13:01:02 2023\nno header\n";
        let mbox = format!("From a@b Fri Sep 22 13:01:02 2023\n{mail}\n");
        assert_eq!(texts(mbox.as_bytes()), [mail]);
        assert_eq!(texts(mail.as_bytes()), [mail], "a bare mail is never split");
    }

    #[test]
    fn line_ends_of_both_kinds() {
        let mbox = b"From a@b Fri Sep 22 13:01:02 2023\r\nSubject: a\r\n\r\nx\r\n\r\n\
                     From a@b Fri Sep 22 13:01:02 2023\r\nSubject: b\r\n\r\ny\r\n";
        assert_eq!(
            texts(mbox),
            ["Subject: a\r\n\r\nx\r\n", "Subject: b\r\n\r\ny\r\n"]
        );
    }

    #[test]
    fn places_count_mails_and_lines() {
        let one = "From a@b Fri Sep 22 13:01:02 2023\nSubject: a\n\nx\n\n";
        let mails = split("f", format!("{one}{one}").as_bytes()).expect("two");
        assert_eq!(mails[1].place, Place::new("f", 2, 7));
    }
}
