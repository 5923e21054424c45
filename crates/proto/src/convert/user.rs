//! What users see: kernels, boards, jobs, runs, artifacts.

use klab_model as model;
use prost_types::Timestamp;

use super::common::tag_messages;
use crate::error::{ConvertError, required};
use crate::v1;

pub(super) fn timestamp(time: model::Timestamp) -> Timestamp {
    Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

/// A point in time from a message.
pub(super) fn time_of(
    field: &str,
    time: Option<Timestamp>,
) -> Result<model::Timestamp, ConvertError> {
    let time = required(field, time)?;
    model::Timestamp::new(time.seconds, time.nanos).map_err(|error| ConvertError::new(field, error))
}

/// A kernel as users see it.
pub fn kernel_message(kernel: model::Kernel) -> v1::Kernel {
    let offer = kernel.offer;
    v1::Kernel {
        name: kernel.name.into(),
        digest: offer.digest.as_bytes().to_vec().into(),
        size: offer.size,
        arch: v1::Arch::from(offer.arch).into(),
        release: offer.release,
        build_id: offer
            .build_id
            .map(|id| id.as_bytes().to_vec())
            .unwrap_or_default()
            .into(),
        image_digest: offer.image_digest.as_bytes().to_vec().into(),
        added_at: Some(timestamp(kernel.added_at)),
    }
}

impl From<model::Kernel> for v1::Kernel {
    fn from(kernel: model::Kernel) -> Self {
        kernel_message(kernel)
    }
}

impl From<model::Board> for v1::Board {
    fn from(board: model::Board) -> Self {
        v1::Board {
            name: board.name.into(),
            arch: v1::Arch::from(board.arch).into(),
            tags: tag_messages(board.tags),
            facts: Some(board.facts.into()),
            state: board.state.as_str().to_owned(),
            online: board.state.session().is_some(),
            run: board
                .state
                .busy
                .map(|busy| busy.run.to_string())
                .unwrap_or_default(),
            seen_at: Some(timestamp(board.seen_at)),
        }
    }
}

/// A board slot as users see it.
pub fn board_slot(slot: model::BoardSlot) -> v1::BoardSlot {
    match slot {
        model::BoardSlot::Bound(name) => v1::BoardSlot {
            board: name.into(),
            tags: Vec::new(),
        },
        model::BoardSlot::Open(selector) => v1::BoardSlot {
            board: String::new(),
            tags: selector
                .0
                .iter()
                .map(|tag| v1::Tag {
                    key: tag.key().into(),
                    value: tag.value().into(),
                })
                .collect(),
        },
    }
}

impl v1::Job {
    /// A job as users see it, with its state derived from its runs.
    pub fn of(job: model::Job, runs: &[model::Run]) -> v1::Job {
        let (state, failure_class) = job_state(model::JobState::of(runs));
        let ended = runs.iter().filter(|run| !run.state.is_live()).count();
        v1::Job {
            id: job.id.to_string(),
            owner: job.owner.into(),
            variants: job
                .variants
                .into_iter()
                .map(|variant| v1::Variant {
                    name: variant.name.into(),
                    kernels: variant.kernels.into_iter().map(Into::into).collect(),
                })
                .collect(),
            boards: job.boards.into_iter().map(board_slot).collect(),
            rounds: job.rounds,
            plan: job.plan.name.into(),
            created_at: Some(timestamp(job.created_at)),
            state: state.into(),
            failure_class: failure_class.into(),
            runs_total: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            runs_ended: u32::try_from(ended).unwrap_or(u32::MAX),
        }
    }
}

fn job_state(state: model::JobState) -> (v1::JobState, v1::FailureClass) {
    let none = v1::FailureClass::Unspecified;
    match state {
        model::JobState::Queued => (v1::JobState::Queued, none),
        model::JobState::Running => (v1::JobState::Running, none),
        model::JobState::Done => (v1::JobState::Done, none),
        model::JobState::Failed(class) => (v1::JobState::Failed, class.into()),
        model::JobState::Cancelled => (v1::JobState::Cancelled, none),
    }
}

impl From<model::JobState> for v1::job_event::JobEnded {
    fn from(state: model::JobState) -> Self {
        let (state, failure_class) = job_state(state);
        Self {
            state: state.into(),
            failure_class: failure_class.into(),
        }
    }
}

impl From<model::Run> for v1::Run {
    fn from(run: model::Run) -> Self {
        let state = run.state.as_str().to_owned();
        let assignment = run.state.assignment().cloned();
        let (step, attempts) = match &run.state {
            model::RunState::Queued { next_attempt } => (None, next_attempt - 1),
            model::RunState::Active {
                step, assignment, ..
            } => (*step, assignment.attempt),
            model::RunState::Ended { attempts, .. } => (None, *attempts),
        };
        let failure = match run.state.outcome() {
            Some(model::Outcome::Failed(failure)) => Some(failure.clone().into()),
            _ => None,
        };
        v1::Run {
            id: run.id.to_string(),
            slot: run.slot,
            round: run.round,
            position: run.position,
            variant: run.variant.into(),
            state,
            board: assignment.map(|a| a.board.into()).unwrap_or_default(),
            attempt: attempts,
            step: step.map(Into::into),
            failure,
        }
    }
}

impl From<model::Artifact> for v1::Artifact {
    fn from(artifact: model::Artifact) -> Self {
        v1::Artifact {
            id: artifact.id.to_string(),
            run: artifact.run.to_string(),
            attempt: artifact.attempt,
            trial: artifact.trial.map(|trial| trial.0),
            name: artifact.name.into(),
            kind: artifact.kind.into(),
            digest: artifact.digest.as_bytes().to_vec().into(),
            size: artifact.size,
            created_at: Some(timestamp(artifact.created_at)),
        }
    }
}
