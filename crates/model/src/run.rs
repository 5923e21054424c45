//! Runs and their state machine.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{BoardName, Failure, FailureClass, Fence, JobId, RunId, Step, VariantName};

/// Who works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The board.
    pub board: BoardName,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The fencing token.
    pub fence: Fence,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every trial was done.
    Done,
    /// It failed.
    Failed(Failure),
    /// Somebody cancelled it.
    Cancelled,
}

/// The state of a run. A run is live until it is [`RunState::Ended`], and ended for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Waits for a board.
    Queued {
        /// The attempt that comes next, from 1.
        next_attempt: u32,
    },
    /// An agent works on it, or has been told to.
    Active {
        /// Who.
        assignment: Assignment,
        /// The step it reported last; `None` before the first word.
        step: Option<Step>,
        /// Whether the agent has been asked to stop.
        cancelling: bool,
    },
    /// It is over.
    Ended {
        /// The number of attempts that were made.
        attempts: u32,
        /// How it ended.
        outcome: Outcome,
    },
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// A board was found.
    Assigned {
        /// The board.
        board: BoardName,
        /// The token for this attempt.
        fence: Fence,
    },
    /// The agent began a step.
    Stepped {
        /// The token the agent showed.
        fence: Fence,
        /// The step.
        step: Step,
    },
    /// The attempt ended.
    Finished {
        /// The token the agent showed.
        fence: Fence,
        /// Why it failed, if it did.
        failure: Option<Failure>,
    },
    /// The agent says that it stopped because it was told to.
    Stopped {
        /// The token the agent showed.
        fence: Fence,
    },
    /// Nothing was heard for longer than was agreed.
    LeaseEnded {
        /// The token of the lease.
        fence: Fence,
        /// What was last known, for people.
        reason: String,
    },
    /// Somebody wants it cancelled.
    Cancel,
    /// There will be no kernel for it.
    NotBuilt {
        /// Why.
        failure: Failure,
    },
}

/// An event that does not fit the state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransitionError {
    /// The event comes from an attempt that is no longer in charge.
    #[error("fence {found:?} is stale: the run is in the charge of {expected:?}")]
    Stale {
        /// The token that was shown.
        found: Fence,
        /// The token in charge, if any.
        expected: Option<Fence>,
    },
    /// The run has already a board.
    #[error("the run is already assigned to board {board}")]
    AlreadyAssigned {
        /// That board.
        board: BoardName,
    },
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
}

impl RunState {
    /// How many attempts a run gets before an infrastructure failure is final.
    pub const MAX_ATTEMPTS: u32 = 3;

    /// The state of a run that was just made.
    pub const fn new() -> Self {
        RunState::Queued { next_attempt: 1 }
    }

    /// Whether something can still happen.
    pub const fn is_live(&self) -> bool {
        !matches!(self, RunState::Ended { .. })
    }

    /// Who works on it.
    pub const fn assignment(&self) -> Option<&Assignment> {
        match self {
            RunState::Active { assignment, .. } => Some(assignment),
            _ => None,
        }
    }

    /// How it ended, if it has.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            RunState::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// The word used in tables, JSON and rows.
    pub const fn as_str(&self) -> &'static str {
        match self {
            RunState::Queued { .. } => "queued",
            RunState::Active {
                cancelling: true, ..
            } => "cancelling",
            RunState::Active { step: None, .. } => "assigned",
            RunState::Active { .. } => "running",
            RunState::Ended {
                outcome: Outcome::Done,
                ..
            } => "done",
            RunState::Ended {
                outcome: Outcome::Failed(_),
                ..
            } => "failed",
            RunState::Ended {
                outcome: Outcome::Cancelled,
                ..
            } => "cancelled",
        }
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// [`TransitionError`] if the event does not fit; the state stays as it was.
    pub fn apply(&self, event: RunEvent) -> Result<RunState, TransitionError> {
        match self {
            RunState::Queued { next_attempt } => Self::queued(*next_attempt, event),
            RunState::Active {
                assignment,
                step,
                cancelling,
            } => Self::active(assignment, *step, *cancelling, event),
            RunState::Ended { .. } => Err(TransitionError::Ended),
        }
    }

    fn queued(next_attempt: u32, event: RunEvent) -> Result<RunState, TransitionError> {
        match event {
            RunEvent::Assigned { board, fence } => Ok(RunState::Active {
                assignment: Assignment {
                    board,
                    attempt: next_attempt,
                    fence,
                },
                step: None,
                cancelling: false,
            }),
            RunEvent::Cancel => Ok(RunState::Ended {
                attempts: next_attempt - 1,
                outcome: Outcome::Cancelled,
            }),
            RunEvent::NotBuilt { failure } => Ok(RunState::Ended {
                attempts: next_attempt - 1,
                outcome: Outcome::Failed(failure),
            }),
            RunEvent::Stepped { fence, .. }
            | RunEvent::Finished { fence, .. }
            | RunEvent::Stopped { fence }
            | RunEvent::LeaseEnded { fence, .. } => Err(TransitionError::Stale {
                found: fence,
                expected: None,
            }),
        }
    }

    fn active(
        assignment: &Assignment,
        old_step: Option<Step>,
        cancelling: bool,
        event: RunEvent,
    ) -> Result<RunState, TransitionError> {
        let in_charge = |found: Fence| {
            if found == assignment.fence {
                Ok(())
            } else {
                Err(TransitionError::Stale {
                    found,
                    expected: Some(assignment.fence),
                })
            }
        };
        let active = |step, cancelling| RunState::Active {
            assignment: assignment.clone(),
            step,
            cancelling,
        };
        match event {
            // A run that has a board has a kernel.
            RunEvent::Assigned { .. } | RunEvent::NotBuilt { .. } => {
                Err(TransitionError::AlreadyAssigned {
                    board: assignment.board.clone(),
                })
            }
            RunEvent::Stepped { fence, step } => {
                in_charge(fence).map(|()| active(Some(step), cancelling))
            }
            RunEvent::Finished { fence, failure } => {
                in_charge(fence).map(|()| Self::after_attempt(assignment, cancelling, failure))
            }
            RunEvent::Stopped { fence } => in_charge(fence).map(|()| RunState::Ended {
                attempts: assignment.attempt,
                outcome: Outcome::Cancelled,
            }),
            RunEvent::LeaseEnded { fence, reason } => in_charge(fence).map(|()| {
                let failure = Failure::infrastructure(reason);
                Self::after_attempt(assignment, cancelling, Some(failure))
            }),
            RunEvent::Cancel => Ok(active(old_step, true)),
        }
    }

    fn after_attempt(
        assignment: &Assignment,
        cancelling: bool,
        failure: Option<Failure>,
    ) -> RunState {
        let ended = |outcome| RunState::Ended {
            attempts: assignment.attempt,
            outcome,
        };
        match failure {
            None => ended(Outcome::Done),
            Some(_) if cancelling => ended(Outcome::Cancelled),
            Some(Failure {
                class: FailureClass::Infrastructure,
                ..
            }) if assignment.attempt < Self::MAX_ATTEMPTS => RunState::Queued {
                next_attempt: assignment.attempt + 1,
            },
            Some(failure) => ended(Outcome::Failed(failure)),
        }
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self::new()
    }
}

/// One boot of one variant on one board that executes the plan once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The job it belongs to.
    pub job: JobId,
    /// Which board of the job: an index into [`crate::Job::boards`].
    pub slot: u32,
    /// The round, from 0.
    pub round: u32,
    /// Its place in the order of execution on its board, from 0.
    pub position: u32,
    /// The variant.
    pub variant: VariantName,
    /// Where it stands.
    pub state: RunState,
}
