//! Bytes to numbered lines.

use std::borrow::Cow;

use klab_model::ResultFormat;

use crate::error::Trouble;
use crate::{ErrorKind, ParseError};

/// A text and whether its last line is ended.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Each line with its number, without line ends; bytes that are not UTF-8 are
    /// replaced.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, Cow<'a, str>)> + use<'a> {
        let body = self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes);
        body.split(|b| *b == b'\n')
            .enumerate()
            .map(|(index, line)| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (index + 1, String::from_utf8_lossy(line))
            })
    }

    /// Number of the last line, and the line.
    pub(crate) fn last(&self) -> (usize, Cow<'a, str>) {
        // Splitting gives at least one, perhaps empty, line.
        self.numbered().last().unwrap_or((1, Cow::Borrowed("")))
    }

    /// Whether the last line has its end.
    pub(crate) fn ended(&self) -> bool {
        self.bytes.ends_with(b"\n")
    }

    /// The error for a text that ends too early.
    pub(crate) fn cut(&self, format: ResultFormat, expected: impl Into<String>) -> ParseError {
        let (line, found) = self.last();
        Trouble::new(format, ErrorKind::Cut, line)
            .found(found)
            .expected(expected)
    }
}

/// The bytes as text.
pub(crate) fn utf8(format: ResultFormat, bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        Trouble::new(format, ErrorKind::Malformed, line)
            .found(format!("byte 0x{:02x}", bytes[error.valid_up_to()]))
            .expected("UTF-8 text")
    })
}
