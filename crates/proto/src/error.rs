//! What can be wrong with a message from outside.

use klab_model::InvalidText;
use thiserror::Error;

/// A message that is not a legal model value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct ConvertError {
    /// The field, with dots and indices: `variants[1].name`.
    pub field: String,
    /// What is wrong with it and what is expected.
    pub problem: String,
}

impl ConvertError {
    /// A problem with one field.
    pub fn new(field: impl Into<String>, problem: impl ToString) -> Self {
        Self {
            field: field.into(),
            problem: problem.to_string(),
        }
    }

    /// The same problem, seen from the message around it.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// Attaches the field's name to an [`InvalidText`].
pub(crate) trait InField<T> {
    fn in_field(self, field: &str) -> Result<T, ConvertError>;
}

impl<T> InField<T> for Result<T, InvalidText> {
    fn in_field(self, field: &str) -> Result<T, ConvertError> {
        self.map_err(|error| ConvertError::new(field, error))
    }
}

pub(crate) fn required<T>(field: &str, value: Option<T>) -> Result<T, ConvertError> {
    value.ok_or_else(|| ConvertError::new(field, "is missing"))
}
