//! The error that every parsing constructor of this crate returns.

use thiserror::Error;

/// Text from outside that is not a legal value of a model type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {found:?} is not valid: expected {expected}")]
pub struct InvalidText {
    /// What the text was meant to be, for example `board name`.
    pub what: &'static str,
    /// The text as it was found.
    pub found: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

impl InvalidText {
    pub(crate) fn new(what: &'static str, found: &str, expected: &'static str) -> Self {
        // Long garbage does not help the reader; 80 characters show where it goes wrong.
        let found = found.chars().take(80).collect();
        Self {
            what,
            found,
            expected,
        }
    }
}

/// Implements `FromStr`, `Display`, `TryFrom<String>` and serde-as-text on top of
/// `parse(&str) -> Result<Self, InvalidText>` and `as_str()`.
macro_rules! text_type {
    ($type:ty) => {
        impl std::str::FromStr for $type {
            type Err = $crate::text::InvalidText;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }
        impl TryFrom<String> for $type {
            type Error = $crate::text::InvalidText;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::parse(&text)
            }
        }
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}
pub(crate) use text_type;

/// Implements `Display` from `as_str()`.
macro_rules! display_as_str {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use display_as_str;
