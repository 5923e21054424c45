//! Events: what an agent reports about an attempt.

use serde::{Deserialize, Serialize};

use crate::{BuildId, Digest, Failure, Fence, RunId, Step, TrialFacts, TrialIndex, WorkloadName};

/// By what the running kernel was recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityProof {
    /// By the GNU build-id in `/sys/kernel/notes`.
    BuildId(BuildId),
    /// By the digest of the image that was booted, because one side has no build-id.
    ImageDigest(Digest),
}

/// What is known about the kernel that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What `uname -r` prints.
    pub release: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// By what it was recognised.
    pub proof: IdentityProof,
}

/// How much the agent itself disturbed a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Perturbation {
    /// Times the agent slept and was woken: voluntary context switches.
    pub wakeups: u64,
    /// Times the agent was pushed off its CPU.
    pub preemptions: u64,
    /// CPU time of the agent in microseconds.
    pub cpu_us: u64,
    /// Resident memory of the agent at the end of the trial, in KiB.
    #[serde(default)]
    pub rss_kib: u64,
}

/// What one trial gave, besides its artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Which trial.
    pub index: TrialIndex,
    /// Which workload.
    pub workload: WorkloadName,
    /// How it failed; `None` if it ended well.
    pub failure: Option<Failure>,
    /// From start to end of the workload, in milliseconds.
    pub duration_ms: u64,
    /// What the agent itself cost.
    pub perturbation: Perturbation,
    /// The environment it ran in.
    pub facts: TrialFacts,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventBody {
    /// A step began.
    StepStarted(Step),
    /// The kernel under test was proved to run.
    Proved(Identity),
    /// A trial ended.
    TrialEnded(TrialResult),
    /// Something people should know.
    Note(String),
    /// The attempt ended; the known-good kernel runs again.
    Finished {
        /// Why it failed; `None` if every trial was done.
        failure: Option<Failure>,
    },
    /// The attempt was ended because the controller said so.
    Cancelled,
}

/// An event with its place in the history of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvent {
    /// The run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The fencing token of the attempt's order.
    pub fence: Fence,
    /// Counts up from 1 within the attempt; a number seen before is a repeat.
    pub seq: u64,
    /// The board's own clock in microseconds since 1970: not to be trusted for order.
    pub board_time_us: i64,
    /// What happened.
    pub body: EventBody,
}
