//! Why an artifact gave no samples.

use std::fmt;

use klab_model::ResultFormat;
use thiserror::Error;

/// An artifact that cannot be turned into samples.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ParseError {
    /// The format that was asked for.
    pub format: ResultFormat,
    /// Line in the artifact, from 1.
    pub line: usize,
    /// Column in that line, from 1, where it is known.
    pub column: Option<usize>,
    /// What kind of trouble it is.
    pub kind: ErrorKind,
    /// What stood there, cut to 80 characters.
    pub found: String,
    /// What should have stood there.
    pub expected: String,
    /// What to do about it.
    pub mend: String,
}

/// Kinds of trouble, for whoever decides what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file is of another format.
    Foreign,
    /// The file ends too early: the tool was stopped or the copy is not whole.
    Cut,
    /// A line or value cannot be read.
    Malformed,
    /// The file contradicts itself.
    Inconsistent,
    /// The file is whole, but nothing was measured.
    NothingMeasured,
    /// The tool says that it failed.
    Failed,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.format, self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(
            f,
            ": found {:?}, expected {}; {}",
            self.found, self.expected, self.mend
        )
    }
}

/// Fills in an error piece by piece.
pub(crate) struct Trouble {
    error: ParseError,
}

impl Trouble {
    pub(crate) fn new(format: ResultFormat, kind: ErrorKind, line: usize) -> Self {
        let mend = match kind {
            ErrorKind::Foreign => "name the format of the file in the plan as it is",
            ErrorKind::Cut => "let the tool end by itself and run the trial again",
            ErrorKind::Malformed => "check that nothing else writes into this file",
            ErrorKind::Inconsistent => "run the trial again; do not edit results",
            ErrorKind::NothingMeasured => "let the trial run longer",
            ErrorKind::Failed => "read the log of the trial for the reason",
        };
        Self {
            error: ParseError {
                format,
                line,
                column: None,
                kind,
                found: String::new(),
                expected: String::new(),
                mend: mend.to_owned(),
            },
        }
    }

    pub(crate) fn column(mut self, column: usize) -> Self {
        self.error.column = Some(column);
        self
    }

    pub(crate) fn found(mut self, found: impl AsRef<str>) -> Self {
        self.error.found = found.as_ref().chars().take(80).collect();
        self
    }

    pub(crate) fn mend(mut self, mend: impl Into<String>) -> Self {
        self.error.mend = mend.into();
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> ParseError {
        self.error.expected = expected.into();
        self.error
    }
}
