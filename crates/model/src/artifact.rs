//! Artifacts: files from a trial or a run, stored under their digest, never changed.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};
use crate::{ArtifactId, Digest, ResultFormat, RunId, Timestamp, TrialIndex};

/// The file name of an artifact inside its trial or run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName(String);

impl ArtifactName {
    /// Reads a file name.
    ///
    /// # Errors
    /// [`InvalidText`] unless it is a plain file name of at most 100 characters.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if (1..=100).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('.') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "artifact name",
                text,
                "a file name of letters, digits, '.', '_' and '-', at most 100 characters",
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_type!(ArtifactName);
display_as_str!(ArtifactName);

/// What an artifact is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ArtifactKind {
    /// Output of a workload or load that a parser turns into samples.
    Result(ResultFormat),
    /// The text of a latency tracer.
    Trace,
    /// Facts about board and trial, as JSON.
    Facts,
    /// The serial console.
    Console,
    /// What the kernel logged while it ran, as dmesg prints it.
    KernelLog,
    /// Anything else, such as standard output.
    Log,
}

impl ArtifactKind {
    /// The word used in JSON and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Result(format) => format.as_str(),
            ArtifactKind::Trace => "trace",
            ArtifactKind::Facts => "facts",
            ArtifactKind::Console => "console",
            ArtifactKind::KernelLog => "kernel-log",
            ArtifactKind::Log => "log",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// [`InvalidText`] for any other word.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        match text {
            "trace" => Ok(Self::Trace),
            "facts" => Ok(Self::Facts),
            "console" => Ok(Self::Console),
            "kernel-log" => Ok(Self::KernelLog),
            "log" => Ok(Self::Log),
            other => ResultFormat::parse(other).map(Self::Result),
        }
    }
}

text_type!(ArtifactKind);
display_as_str!(ArtifactKind);

/// The record of one artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its id.
    pub id: ArtifactId,
    /// The run it belongs to.
    pub run: RunId,
    /// The attempt of that run, from 1.
    pub attempt: u32,
    /// The trial; `None` for artifacts of the whole run.
    pub trial: Option<TrialIndex>,
    /// Its file name.
    pub name: ArtifactName,
    /// What it is for.
    pub kind: ArtifactKind,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// When the controller recorded it.
    pub created_at: Timestamp,
}
