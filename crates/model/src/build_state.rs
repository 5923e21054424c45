//! The state machine of builds.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{BuilderName, Failure, Fence, ObjectId};

/// Where one target of a build stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetState {
    /// Nothing is known yet.
    Waiting,
    /// The kernel is in the lab.
    Built {
        /// The same content had been built before.
        cached: bool,
    },
    /// There will be no kernel: the compiler's first error, the hunk that does not apply, or
    /// what kept the lab from building.
    Failed(Failure),
}

impl TargetState {
    /// The word used in tables, JSON and rows.
    pub const fn as_str(&self) -> &'static str {
        match self {
            TargetState::Waiting => "waiting",
            TargetState::Built { cached: false } => "built",
            TargetState::Built { cached: true } => "cached",
            TargetState::Failed(_) => "failed",
        }
    }

    const fn is_waiting(&self) -> bool {
        matches!(self, TargetState::Waiting)
    }
}

/// How a build ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildOutcome {
    /// Every target is built.
    Done,
    /// Some target is not.
    Failed(Failure),
    /// Somebody cancelled it.
    Cancelled,
}

/// Who works on a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildPhase {
    /// Waits for a builder.
    Queued {
        /// The attempt that comes next, from 1.
        next_attempt: u32,
    },
    /// A builder works on it.
    Active {
        /// Which one.
        builder: BuilderName,
        /// The attempt, from 1.
        attempt: u32,
        /// The token of this attempt.
        fence: Fence,
        /// Whether the builder has been asked to stop.
        cancelling: bool,
    },
    /// It is over.
    Ended {
        /// The number of attempts that were made.
        attempts: u32,
        /// How it ended.
        outcome: BuildOutcome,
    },
}

/// The state of a build. It is live until its phase is [`BuildPhase::Ended`]; then no target
/// waits any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildState {
    /// Who works on it.
    pub phase: BuildPhase,
    /// One state for each target, in their order.
    pub targets: Vec<TargetState>,
    /// The commit that the series is applied to, once a builder has found it. It is the same
    /// for all attempts.
    #[serde(default)]
    pub base: Option<ObjectId>,
}

/// What can happen to a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildChange {
    /// A builder was found.
    Assigned {
        /// The builder.
        builder: BuilderName,
        /// The token for this attempt.
        fence: Fence,
    },
    /// The base is known.
    Base {
        /// The token that the builder showed.
        fence: Fence,
        /// Its commit.
        commit: ObjectId,
    },
    /// A target has become something.
    Target {
        /// The token that the builder showed.
        fence: Fence,
        /// Which target.
        index: u32,
        /// What became of it.
        state: TargetState,
    },
    /// The builder has nothing left to do.
    Finished {
        /// The token that the builder showed.
        fence: Fence,
        /// Why it could not go on, if so.
        failure: Option<Failure>,
    },
    /// The builder stopped because it was told to.
    Stopped {
        /// The token that the builder showed.
        fence: Fence,
    },
    /// The builder went away and did not come back.
    Lost {
        /// The token of the attempt.
        fence: Fence,
        /// What is known, for people.
        reason: String,
    },
    /// Somebody wants it cancelled.
    Cancel,
}

/// A change that does not fit the state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildTransitionError {
    /// It comes from an attempt that is no longer in charge.
    #[error("fence {found:?} is stale: the build is in the charge of {expected:?}")]
    Stale {
        /// The token that was shown.
        found: Fence,
        /// The token in charge, if any.
        expected: Option<Fence>,
    },
    /// A builder works on it already.
    #[error("the build is already assigned to builder {builder}")]
    AlreadyAssigned {
        /// That builder.
        builder: BuilderName,
    },
    /// There are not so many targets.
    #[error("the build has {count} targets, there is no number {index}")]
    NoTarget {
        /// The index, from 0.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// The build has ended.
    #[error("the build has ended")]
    Ended,
}

impl BuildState {
    /// How many attempts a build gets before an infrastructure failure is final.
    pub const MAX_ATTEMPTS: u32 = 3;

    /// The state of a build that was just made.
    pub fn new(targets: usize) -> Self {
        Self {
            phase: BuildPhase::Queued { next_attempt: 1 },
            targets: vec![TargetState::Waiting; targets],
            base: None,
        }
    }

    /// Whether something can still happen.
    pub const fn is_live(&self) -> bool {
        !matches!(self.phase, BuildPhase::Ended { .. })
    }

    /// The token of the attempt in charge.
    pub const fn fence(&self) -> Option<Fence> {
        match &self.phase {
            BuildPhase::Active { fence, .. } => Some(*fence),
            _ => None,
        }
    }

    /// The builder at work.
    pub const fn builder(&self) -> Option<&BuilderName> {
        match &self.phase {
            BuildPhase::Active { builder, .. } => Some(builder),
            _ => None,
        }
    }

    /// The attempt that is at work, or the number of those that were made.
    pub const fn attempt(&self) -> u32 {
        match &self.phase {
            BuildPhase::Queued { next_attempt } => next_attempt.saturating_sub(1),
            BuildPhase::Active { attempt, .. } => *attempt,
            BuildPhase::Ended { attempts, .. } => *attempts,
        }
    }

    /// How it ended, if it has.
    pub const fn outcome(&self) -> Option<&BuildOutcome> {
        match &self.phase {
            BuildPhase::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// The word used in tables, JSON and rows.
    pub const fn as_str(&self) -> &'static str {
        match &self.phase {
            BuildPhase::Queued { .. } => "queued",
            BuildPhase::Active {
                cancelling: true, ..
            } => "cancelling",
            BuildPhase::Active { .. } => "building",
            BuildPhase::Ended { outcome, .. } => match outcome {
                BuildOutcome::Done => "done",
                BuildOutcome::Failed(_) => "failed",
                BuildOutcome::Cancelled => "cancelled",
            },
        }
    }

    /// The state after a change.
    ///
    /// # Errors
    /// [`BuildTransitionError`] if it does not fit; the state stays as it was.
    pub fn apply(&self, change: BuildChange) -> Result<Self, BuildTransitionError> {
        match &self.phase {
            BuildPhase::Ended { .. } => Err(BuildTransitionError::Ended),
            BuildPhase::Queued { next_attempt } => self.queued(*next_attempt, change),
            BuildPhase::Active { .. } => self.active(change),
        }
    }

    fn queued(&self, next_attempt: u32, change: BuildChange) -> Result<Self, BuildTransitionError> {
        match change {
            BuildChange::Assigned { builder, fence } => Ok(self.in_phase(BuildPhase::Active {
                builder,
                attempt: next_attempt,
                fence,
                cancelling: false,
            })),
            BuildChange::Cancel => Ok(self.cancelled(next_attempt.saturating_sub(1))),
            BuildChange::Base { fence, .. }
            | BuildChange::Target { fence, .. }
            | BuildChange::Finished { fence, .. }
            | BuildChange::Stopped { fence }
            | BuildChange::Lost { fence, .. } => Err(BuildTransitionError::Stale {
                found: fence,
                expected: None,
            }),
        }
    }

    fn active(&self, change: BuildChange) -> Result<Self, BuildTransitionError> {
        let BuildPhase::Active {
            builder,
            attempt,
            fence,
            cancelling,
        } = &self.phase
        else {
            return Err(BuildTransitionError::Ended);
        };
        let in_charge = |found: Fence| match found == *fence {
            true => Ok(()),
            false => Err(BuildTransitionError::Stale {
                found,
                expected: Some(*fence),
            }),
        };
        match change {
            BuildChange::Assigned { .. } => Err(BuildTransitionError::AlreadyAssigned {
                builder: builder.clone(),
            }),
            BuildChange::Base { fence, commit } => {
                in_charge(fence)?;
                let mut after = self.clone();
                after.base.get_or_insert(commit);
                Ok(after)
            }
            BuildChange::Target {
                fence,
                index,
                state,
            } => {
                in_charge(fence)?;
                self.with_target(index, state)
            }
            BuildChange::Finished { fence, failure } => {
                in_charge(fence)?;
                Ok(self.after_attempt(*attempt, *cancelling, failure))
            }
            BuildChange::Lost { fence, reason } => {
                in_charge(fence)?;
                let failure = Failure::infrastructure(reason);
                Ok(self.after_attempt(*attempt, *cancelling, Some(failure)))
            }
            BuildChange::Stopped { fence } => {
                in_charge(fence)?;
                Ok(self.after_attempt(*attempt, true, None))
            }
            BuildChange::Cancel => Ok(self.in_phase(BuildPhase::Active {
                builder: builder.clone(),
                attempt: *attempt,
                fence: *fence,
                cancelling: true,
            })),
        }
    }

    /// The first word about a target stands; a builder that says it again changes nothing.
    fn with_target(&self, index: u32, state: TargetState) -> Result<Self, BuildTransitionError> {
        let mut after = self.clone();
        let count = after.targets.len();
        let target = after
            .targets
            .get_mut(index as usize)
            .ok_or(BuildTransitionError::NoTarget { index, count })?;
        if target.is_waiting() {
            *target = state;
        }
        Ok(after)
    }

    fn after_attempt(&self, attempt: u32, cancelling: bool, failure: Option<Failure>) -> Self {
        if !self.targets.iter().any(TargetState::is_waiting) {
            let phase = BuildPhase::Ended {
                attempts: attempt,
                outcome: self.of_targets(),
            };
            return self.in_phase(phase);
        }
        let failure = failure.unwrap_or_else(|| {
            Failure::infrastructure("the builder stopped before it came to every target")
        });
        if cancelling {
            self.cancelled(attempt)
        } else if failure.class.is_retried() && attempt < Self::MAX_ATTEMPTS {
            self.in_phase(BuildPhase::Queued {
                next_attempt: attempt + 1,
            })
        } else {
            let outcome = BuildOutcome::Failed(failure.clone());
            self.ended(attempt, outcome, &failure)
        }
    }

    /// How a build ends none of whose targets waits.
    fn of_targets(&self) -> BuildOutcome {
        let failed = self.targets.iter().find_map(|target| match target {
            TargetState::Failed(failure) => Some(failure.clone()),
            _ => None,
        });
        failed.map_or(BuildOutcome::Done, BuildOutcome::Failed)
    }

    fn in_phase(&self, phase: BuildPhase) -> Self {
        Self {
            phase,
            ..self.clone()
        }
    }

    fn cancelled(&self, attempts: u32) -> Self {
        // Nothing is said about the kernels that were not built.
        let failure = Failure::infrastructure("the build was cancelled");
        self.ended(attempts, BuildOutcome::Cancelled, &failure)
    }

    /// Ended; targets that still wait fail with this.
    fn ended(&self, attempts: u32, outcome: BuildOutcome, failure: &Failure) -> Self {
        let mut after = self.in_phase(BuildPhase::Ended { attempts, outcome });
        for target in &mut after.targets {
            if target.is_waiting() {
                *target = TargetState::Failed(failure.clone());
            }
        }
        after
    }
}
