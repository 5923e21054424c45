//! A mail's text in two readings: as people read it, and as `git am` reads it.
//!
//! `git am` undoes the transfer encoding of every part and looks for diffs in the bytes;
//! it converts the character set of the commit message only. So the diff is read from the
//! bytes, too: a character set in which other text appears must not hide anything.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, Message, MessagePart, MimeHeaders, PartType};

use crate::diff::PatchProblem;
use crate::flowed::unflow;
use crate::mbox::{lines, with_lf};

/// The text of a mail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    /// The text parts, for people.
    pub(crate) text: String,
    /// All parts as `git am` sees them; bytes that are no UTF-8 are U+FFFD.
    pub(crate) patch: String,
    /// The mail program was told that it may wrap lines.
    pub(crate) flowed: bool,
    /// The encoded text has CRLF at all line ends, as some mail servers leave it.
    pub(crate) quoted_cr: bool,
    /// What is wrong with the transfer encoding.
    pub(crate) damage: Option<PatchProblem>,
}

impl Body {
    /// Reads all parts of `raw`. With `crlf` the mail's own line ends are CRLF.
    pub(crate) fn read(message: &Message<'_>, raw: &[u8], crlf: bool) -> Self {
        let mut body = Self::default();
        for part in &message.parts {
            let Some(bytes) = decoded(part, raw, crlf) else {
                continue;
            };
            let quoted_cr = part.encoding != Encoding::None && ends_in_crlf(&bytes);
            let mut patch = String::from_utf8_lossy(&bytes);
            if quoted_cr {
                patch = Cow::Owned(patch.replace("\r\n", "\n"));
            }
            let text = match &part.body {
                PartType::Text(text) => text.replace("\r\n", "\n"),
                _ => String::new(),
            };
            let flow = Flow::of(part);
            for (into, from) in [(&mut body.patch, &*patch), (&mut body.text, &*text)] {
                match &flow {
                    Some(flow) => append(into, &unflow(from, flow.delsp)),
                    None => append(into, from),
                }
            }
            body.quoted_cr |= quoted_cr;
            body.flowed |= flow.is_some();
            body.damage = body.damage.or_else(|| damage(part, raw));
        }
        body
    }
}

/// How a part was flowed.
struct Flow {
    delsp: bool,
}

impl Flow {
    fn of(part: &MessagePart<'_>) -> Option<Self> {
        let kind = part.content_type()?;
        let is = |name: &str, value: &str| {
            kind.attribute(name)
                .is_some_and(|found| found.eq_ignore_ascii_case(value))
        };
        is("format", "flowed").then(|| Self {
            delsp: is("delsp", "yes"),
        })
    }
}

fn append(into: &mut String, text: &str) {
    if !into.is_empty() && !into.ends_with('\n') {
        into.push('\n');
    }
    into.push_str(text);
}

/// The bytes of a part without their transfer encoding; none for a container of parts.
fn decoded<'a>(part: &MessagePart<'_>, raw: &'a [u8], crlf: bool) -> Option<Cow<'a, [u8]>> {
    if matches!(part.body, PartType::Multipart(_)) {
        return None;
    }
    let bytes = raw.get(part.offset_body as usize..part.offset_end as usize)?;
    let bytes = if crlf {
        with_lf(bytes)
    } else {
        Cow::Borrowed(bytes)
    };
    let decoded = match part.encoding {
        Encoding::None => None,
        Encoding::QuotedPrintable => quoted_printable_decode(&bytes),
        Encoding::Base64 => base64_decode(&bytes),
    };
    Some(decoded.map_or(bytes, Cow::Owned))
}

fn ends_in_crlf(bytes: &[u8]) -> bool {
    let mut ended = lines(bytes).filter(|line| line.ends_with(b"\n")).peekable();
    ended.peek().is_some() && ended.all(|line| line.ends_with(b"\r\n"))
}

fn damage(part: &MessagePart<'_>, raw: &[u8]) -> Option<PatchProblem> {
    if !matches!(part.body, PartType::Text(_)) {
        return None;
    }
    let encoding = part.content_transfer_encoding().unwrap_or_default();
    if encoding.eq_ignore_ascii_case("base64") {
        let range = part.offset_body as usize..part.offset_end as usize;
        let found = base64_damage(raw.get(range)?)?;
        return Some(PatchProblem::Base64 { found });
    }
    let quoted = encoding.eq_ignore_ascii_case("quoted-printable");
    (quoted && part.is_encoding_problem).then_some(PatchProblem::Encoding {
        encoding: "quoted-printable",
    })
}

fn base64_damage(encoded: &[u8]) -> Option<&'static str> {
    let mut characters = 0_usize;
    for byte in encoded.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        if !(byte.is_ascii_alphanumeric() || b"+/=".contains(byte)) {
            return Some("followed by other characters");
        }
        characters += 1;
    }
    (!characters.is_multiple_of(4)).then_some("cut in the middle of four characters")
}
