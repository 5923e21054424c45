//! Where something was found.

use std::fmt;

use crate::display::defuse;

/// A mail in a source: what an error points at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File, `standard input`, or the git range.
    pub source: String,
    /// Which mail of the source, counted from 1.
    pub mail: usize,
    /// Line of the source in which the mail begins, counted from 1.
    pub line: usize,
    /// The Message-ID, without angle brackets.
    pub message_id: Option<String>,
}

impl Place {
    pub(crate) fn new(source: &str, mail: usize, line: usize) -> Self {
        Self {
            source: source.to_owned(),
            mail,
            line,
            message_id: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mail, line, .. } = self;
        write!(f, "{}: mail {mail} (line {line}", defuse(&self.source))?;
        if let Some(id) = &self.message_id {
            write!(f, ", <{}>", defuse(id))?;
        }
        f.write_str(")")
    }
}
