//! The feed of a build: everything that happened to it, in order, from the start.

use serde::{Deserialize, Serialize};

use crate::{BuildOutcome, BuilderName, Failure, ObjectId, TargetState, Timestamp, VariantName};

/// What happened to a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildEventBody {
    /// The build was accepted.
    Submitted {
        /// How many targets it has.
        targets: u32,
    },
    /// A builder was found.
    Assigned {
        /// Which one.
        builder: BuilderName,
        /// The attempt that begins, from 1.
        attempt: u32,
    },
    /// Something people should know: the base that was found, lines that did not take.
    Note {
        /// One line.
        text: String,
    },
    /// The base is known.
    BaseFound {
        /// Its commit.
        commit: ObjectId,
    },
    /// The builder came to a target.
    TargetStarted {
        /// Its variant.
        variant: VariantName,
    },
    /// A target has become something.
    TargetEnded {
        /// Its variant.
        variant: VariantName,
        /// What it has become.
        state: TargetState,
        /// From the start of the target, in milliseconds.
        duration_ms: u64,
    },
    /// An attempt failed.
    AttemptFailed {
        /// Which one, from 1.
        attempt: u32,
        /// Why.
        failure: Failure,
        /// Whether another attempt follows.
        retry: bool,
    },
    /// Nothing more will happen.
    Ended {
        /// How.
        outcome: BuildOutcome,
    },
    /// Somebody asked for the build to be cancelled.
    CancelRequested,
}

/// One entry of the feed of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildEvent {
    /// Its place in the feed of its build: 1, 2, 3 ... without gaps.
    pub seq: u64,
    /// When the controller recorded it.
    pub at: Timestamp,
    /// What happened.
    pub body: BuildEventBody,
}
