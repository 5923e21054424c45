//! The three kinds of bad, which are never mixed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};

/// Who is to blame when a run does not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FailureClass {
    /// The lab failed: network, disk, agent, controller. Retried, never in statistics.
    Infrastructure,
    /// The kernel failed: it did not boot, panicked, hung or lost the network.
    Kernel,
    /// The workload failed: it could not run or did not finish properly.
    Workload,
}

impl FailureClass {
    /// The word used in tables, JSON and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureClass::Infrastructure => "infrastructure",
            FailureClass::Kernel => "kernel",
            FailureClass::Workload => "workload",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// [`InvalidText`] for any other word.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        match text {
            "infrastructure" => Ok(Self::Infrastructure),
            "kernel" => Ok(Self::Kernel),
            "workload" => Ok(Self::Workload),
            _ => Err(InvalidText::new(
                "failure class",
                text,
                "infrastructure, kernel or workload",
            )),
        }
    }

    /// Whether another attempt of the same run makes sense.
    pub const fn is_retried(self) -> bool {
        matches!(self, FailureClass::Infrastructure)
    }
}

text_type!(FailureClass);
display_as_str!(FailureClass);

/// Why a run, or an attempt of it, failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Who is to blame.
    pub class: FailureClass,
    /// One line for people: what happened and, where it helps, what to do.
    pub reason: String,
}

impl Failure {
    /// The lab failed.
    pub fn infrastructure(reason: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Infrastructure,
            reason: reason.into(),
        }
    }

    /// The kernel failed.
    pub fn kernel(reason: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Kernel,
            reason: reason.into(),
        }
    }

    /// The workload failed.
    pub fn workload(reason: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Workload,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failure: {}", self.class, self.reason)
    }
}
