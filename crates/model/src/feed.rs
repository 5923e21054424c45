//! The feed of a job: everything that happened to it, in order, from the start.

use serde::{Deserialize, Serialize};

use crate::{
    ArtifactKind, ArtifactName, BoardName, Failure, Identity, JobState, Outcome, RunId, Step,
    Timestamp, TrialIndex, TrialResult, WorkloadName,
};

/// The end of a trial without its facts: what a person who watches wants to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialSummary {
    /// Which trial.
    pub index: TrialIndex,
    /// Which workload.
    pub workload: WorkloadName,
    /// How it failed; `None` if it ended well.
    pub failure: Option<Failure>,
    /// From start to end of the workload, in milliseconds.
    pub duration_ms: u64,
}

impl From<&TrialResult> for TrialSummary {
    fn from(result: &TrialResult) -> Self {
        Self {
            index: result.index,
            workload: result.workload.clone(),
            failure: result.failure.clone(),
            duration_ms: result.duration_ms,
        }
    }
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobEventBody {
    /// The job was accepted.
    Submitted {
        /// How many runs it has.
        runs: u32,
    },
    /// A board was found for a run.
    RunAssigned {
        /// The attempt that begins, from 1.
        attempt: u32,
    },
    /// The agent began a step.
    StepStarted {
        /// The step.
        step: Step,
    },
    /// The kernel under test was proved to run.
    Proved {
        /// What runs.
        identity: Identity,
    },
    /// A trial ended.
    TrialEnded {
        /// How.
        summary: TrialSummary,
    },
    /// Something people should know.
    Note {
        /// One line.
        text: String,
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
    /// A run ended.
    RunEnded {
        /// How.
        outcome: Outcome,
    },
    /// An artifact arrived and was stored.
    ArtifactStored {
        /// Its file name.
        name: ArtifactName,
        /// What it is for.
        kind: ArtifactKind,
        /// Its trial; `None` for artifacts of the whole run.
        trial: Option<TrialIndex>,
    },
    /// Every run of the job has ended.
    JobEnded {
        /// How.
        state: JobState,
    },
    /// Somebody asked for the job to be cancelled.
    CancelRequested,
}

/// One entry of the feed of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEvent {
    /// Its place in the feed of its job: 1, 2, 3 ... without gaps.
    pub seq: u64,
    /// When the controller recorded it.
    pub at: Timestamp,
    /// The run it is about; `None` if it is about the whole job.
    pub run: Option<RunId>,
    /// The board that the run was on.
    pub board: Option<BoardName>,
    /// What happened.
    pub body: JobEventBody,
}
