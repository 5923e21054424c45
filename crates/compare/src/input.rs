//! What a comparison is made from.

use klab_model::{
    ArtifactId, BoardName, Outcome, Run, RunId, RunState, Sample, TrialIndex, VariantName,
};

use crate::SignificanceRule;

/// One sample and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The variant that ran.
    pub variant: VariantName,
    /// The run.
    pub run: RunId,
    /// The attempt of that run, from 1.
    pub attempt: u32,
    /// The round of the run.
    pub round: u32,
    /// The board.
    pub board: BoardName,
    /// The trial inside the run. It must have ended well: what a failed workload
    /// printed is not a measurement.
    pub trial: TrialIndex,
    /// The artifact that the sample was derived from.
    pub artifact: ArtifactId,
    /// The sample.
    pub sample: Sample,
}

/// What the comparison must know about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub run: RunId,
    /// Its variant.
    pub variant: VariantName,
    /// Its board; `None` while no board is bound.
    pub board: Option<BoardName>,
    /// How many attempts were begun; the last one is the one that counts.
    pub attempts: u32,
    /// How it ended; `None` while it can still go on.
    pub outcome: Option<Outcome>,
}

impl RunRecord {
    /// The record of `run`, whose slot in the job is bound to `board`.
    pub fn new(run: &Run, board: Option<BoardName>) -> Self {
        let attempts = match &run.state {
            RunState::Queued { next_attempt } => next_attempt.saturating_sub(1),
            RunState::Active { assignment, .. } => assignment.attempt,
            RunState::Ended { attempts, .. } => *attempts,
        };
        Self {
            run: run.id,
            variant: run.variant.clone(),
            board,
            attempts,
            outcome: run.state.outcome().cloned(),
        }
    }
}

/// Everything [`compare`](crate::compare) reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The variants in the order of the columns; the first is the reference.
    pub variants: Vec<VariantName>,
    /// Every run of the job.
    pub runs: Vec<RunRecord>,
    /// Every sample, also of attempts that will not count.
    pub observations: Vec<Observation>,
    /// When a change is marked.
    pub rule: SignificanceRule,
    /// Sentences for people that go with the comparison.
    pub notes: Vec<String>,
}
