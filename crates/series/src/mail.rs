//! One mail: header, decoded text, and what the text was encoded as.

use klab_model::Timestamp;
use mail_parser::{Encoding, HeaderValue, Message, MessageParser};

use crate::body::Body;
use crate::display::defuse;
use crate::error::SeriesError;
use crate::limits::MAX_HEADER;
use crate::mbox::{RawMail, is_header, lines};
use crate::place::Place;
use crate::subject::Subject;

/// A name and an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Person {
    /// The name; may be empty.
    pub name: String,
    /// The address; may be empty.
    pub email: String,
}

impl Person {
    /// Reads `Name <address>`.
    pub(crate) fn parse(text: &str) -> Self {
        let (name, rest) = text.split_once('<').unwrap_or(("", text));
        let email = rest.split('>').next().unwrap_or_default();
        Self {
            name: name.trim().trim_matches('"').to_owned(),
            email: email.trim().to_owned(),
        }
    }

    /// `Name <address>`, safe to print.
    pub fn shown(&self) -> String {
        let (name, email) = (defuse(&self.name), defuse(&self.email));
        match (name.is_empty(), email.is_empty()) {
            (true, _) => email,
            (_, true) => name,
            _ => format!("{name} <{email}>"),
        }
    }
}

/// A mail, read.
#[derive(Debug, Clone)]
pub(crate) struct Mail {
    pub(crate) place: Place,
    pub(crate) raw: Vec<u8>,
    pub(crate) subject: Subject,
    pub(crate) author: Person,
    /// When it was sent, if the header says so.
    pub(crate) date: Option<Timestamp>,
    /// Message-IDs of the mails it answers, nearest first.
    pub(crate) parents: Vec<String>,
    pub(crate) body: Body,
    /// Line of the source in which the text begins, if the text stands there as it is.
    pub(crate) text_line: Option<usize>,
    /// Git wrote the source, in the order of the patches.
    pub(crate) ordered: bool,
}

impl Mail {
    /// Reads a mail.
    ///
    /// # Errors
    /// [`SeriesError::NoHeader`] and [`SeriesError::LongHeader`].
    pub(crate) fn read(raw: RawMail) -> Result<Self, SeriesError> {
        let mut place = raw.place;
        check_header(&raw.bytes, &place)?;
        let parser = MessageParser::default();
        let Some(message) = parser.parse(&raw.bytes) else {
            return Err(SeriesError::NoHeader { place });
        };
        place.message_id = message.message_id().map(str::to_owned);
        let body = Body::read(&message, &raw.bytes, has_crlf_header(&raw.bytes));
        let author = message.from().and_then(|from| from.first());
        let part = |value: Option<&str>| value.unwrap_or_default().to_owned();
        Ok(Self {
            subject: Subject::parse(message.subject().unwrap_or_default()),
            author: Person {
                name: part(author.and_then(|author| author.name())),
                email: part(author.and_then(|author| author.address())),
            },
            date: message
                .date()
                .and_then(|date| Timestamp::from_second(date.to_timestamp()).ok()),
            parents: parents(&message),
            text_line: text_line(&message, &raw.bytes, place.line).filter(|_| !body.flowed),
            body,
            ordered: raw.ordered,
            place,
            raw: raw.bytes,
        })
    }

    /// Line of the source (or of the decoded text) for a line of the text, counted from 0.
    pub(crate) fn line(&self, line: usize) -> LineAt {
        match self.text_line {
            Some(begins) => LineAt::Source(begins + line),
            None => LineAt::Decoded(line + 1),
        }
    }

    /// Lines of a file with CR ends inside of a mail with LF ends: `git am` drops the CR
    /// unless it is told not to.
    pub(crate) fn has_inner_cr(&self) -> bool {
        !has_crlf_header(&self.raw) && lines(&self.raw).any(|line| line.ends_with(b"\r\n"))
    }
}

/// Whether the mail's own line ends are CRLF, as mail programs save it.
pub(crate) fn has_crlf_header(raw: &[u8]) -> bool {
    lines(raw)
        .next()
        .is_some_and(|line| line.ends_with(b"\r\n"))
}

/// A line, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineAt {
    /// Of the source.
    Source(usize),
    /// Of the mail's decoded text.
    Decoded(usize),
}

impl std::fmt::Display for LineAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Source(line) => write!(f, "line {line}"),
            Self::Decoded(line) => write!(f, "line {line} of its decoded text"),
        }
    }
}

fn check_header(bytes: &[u8], place: &Place) -> Result<(), SeriesError> {
    let place = || place.clone();
    let mut size = 0;
    for (index, line) in lines(bytes).enumerate() {
        if line.trim_ascii().is_empty() {
            break;
        }
        if index == 0 && !is_header(line) {
            return Err(SeriesError::NoHeader { place: place() });
        }
        size += line.len();
        if size > MAX_HEADER {
            return Err(SeriesError::LongHeader { place: place() });
        }
    }
    if size == 0 {
        return Err(SeriesError::NoHeader { place: place() });
    }
    Ok(())
}

/// The line in which the text begins, if there is one part and it is not encoded.
fn text_line(message: &Message<'_>, raw: &[u8], first: usize) -> Option<usize> {
    let [part] = message.parts.as_slice() else {
        return None;
    };
    let header = raw.get(..part.offset_body as usize)?;
    let plain = part.encoding == Encoding::None && !part.is_encoding_problem;
    plain.then(|| first + header.iter().filter(|byte| **byte == b'\n').count())
}

fn parents(message: &Message<'_>) -> Vec<String> {
    let mut parents: Vec<String> = ids(message.in_reply_to());
    parents.extend(ids(message.references()).into_iter().rev());
    parents
}

fn ids(value: &HeaderValue<'_>) -> Vec<String> {
    match value {
        HeaderValue::Text(id) => vec![id.to_string()],
        HeaderValue::TextList(ids) => ids.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::PatchProblem;

    fn mail(text: &str) -> Mail {
        let place = Place::new("m", 1, 11);
        Mail::read(RawMail {
            place,
            bytes: text.as_bytes().to_vec(),
            ordered: false,
        })
        .expect("a mail")
    }

    #[test]
    fn encoded_words_and_charsets() {
        let latin = mail(
            "Subject: =?iso-8859-1?q?=5BPATCH=5D_mm=3A_f=FCr?=\n\
             From: =?utf-8?b?SsO8cmdlbg==?= <j@example.org>\n\
             Message-ID: <a@b>\nIn-Reply-To: <p@b>\nReferences: <r@b> <p@b>\n\
             Content-Type: text/plain; charset=iso-8859-1\n\
             Content-Transfer-Encoding: quoted-printable\n\nf=FCr=\n alle\n",
        );
        assert_eq!(latin.subject.title, "mm: für");
        assert_eq!(latin.author.shown(), "Jürgen <j@example.org>");
        assert_eq!(latin.body.text.trim_end(), "für alle");
        assert_eq!(latin.parents, ["p@b", "p@b", "r@b"]);
        assert_eq!(latin.place.message_id.as_deref(), Some("a@b"));
        assert_eq!(latin.line(0), LineAt::Decoded(1));
        assert_eq!(mail("Subject: a\n\nx\n").line(0), LineAt::Source(13));
    }

    #[test]
    fn damaged_base64_is_noticed() {
        let with = |body: &str| {
            mail(&format!("Content-Transfer-Encoding: base64\n\n{body}\n"))
                .body
                .damage
        };
        assert_eq!(with("aGVsbG8K"), None);
        for bad in ["aGVsbG8", "aGVs\n-- list footer"] {
            assert!(
                matches!(with(bad), Some(PatchProblem::Base64 { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn people() {
        assert_eq!(Person::parse("\"A, B\" <a@b>").shown(), "A, B <a@b>");
        assert_eq!(Person::parse("a@b").shown(), "a@b");
    }
}
