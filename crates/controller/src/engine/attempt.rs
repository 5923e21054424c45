//! Transitions of runs: which changes and which feed entries belong together.

use klab_model::{
    AgentEvent, Assignment, EventBody, Failure, JobEventBody, JobState, Order, OrderKernel,
    Outcome, Run, RunEvent, RunState, TransitionError, TrialSummary,
};
use klab_store::{NewEvent, StoreError, Transition, Versioned};

use super::{AttemptKey, Engine};

/// How an agent's event changes things.
pub(super) struct EventEffect {
    pub(super) transition: Transition,
    /// The attempt is no longer in charge of its run; the event is kept as history only.
    pub(super) stale: bool,
}

impl Engine {
    /// What an event of an agent changes.
    pub(super) async fn effect_of(
        &self,
        run: &Versioned<Run>,
        event: &AgentEvent,
        assignment: Option<&Assignment>,
    ) -> Result<EventEffect, StoreError> {
        let transition = Transition::new(self.now());
        let stale = |transition| EventEffect {
            transition,
            stale: true,
        };
        let Some(assignment) = assignment.filter(|a| a.fence == event.fence) else {
            return Ok(stale(transition));
        };
        let new_state = match run_event(event).map(|event| run.value.state.apply(event)) {
            None => None,
            Some(Ok(state)) => Some(state),
            Some(Err(
                TransitionError::Stale { .. }
                | TransitionError::Ended
                | TransitionError::AlreadyAssigned { .. },
            )) => return Ok(stale(transition)),
        };
        let feed = |body| {
            let board = Some(assignment.board.clone());
            NewEvent::of_run(run.value.job, run.value.id, board, body)
        };
        let transition = match (&event.body, new_state) {
            (EventBody::Finished { failure }, Some(state)) => {
                self.ending(run, state, failure.clone()).await?
            }
            (EventBody::Cancelled, Some(state)) => self.ending(run, state, None).await?,
            (EventBody::StepStarted(step), Some(state)) => transition
                .run(run, state)
                .event(feed(JobEventBody::StepStarted { step: *step })),
            (EventBody::Proved(identity), _) => transition.event(feed(JobEventBody::Proved {
                identity: identity.clone(),
            })),
            (EventBody::TrialEnded(result), _) => {
                transition.event(feed(JobEventBody::TrialEnded {
                    summary: TrialSummary::from(result),
                }))
            }
            (EventBody::Note(text), _) => {
                transition.event(feed(JobEventBody::Note { text: text.clone() }))
            }
            // These always come with a new state.
            (
                EventBody::Finished { .. } | EventBody::Cancelled | EventBody::StepStarted(_),
                None,
            ) => transition,
        };
        Ok(EventEffect {
            transition,
            stale: false,
        })
    }

    /// The end of the attempt that is in charge of `run`: the run gets `state`, the board is
    /// released, and the feed says what happened, up to the end of the job.
    pub(super) async fn ending(
        &self,
        run: &Versioned<Run>,
        state: RunState,
        failure: Option<Failure>,
    ) -> Result<Transition, StoreError> {
        let mut transition = Transition::new(self.now()).run(run, state.clone());
        let mut place = None;
        if let Some(assignment) = run.value.state.assignment() {
            let board = self.store.board(&assignment.board).await?;
            let released = board.value.state.release(assignment.fence);
            transition = transition.board(&board, released);
            place = Some(assignment.board.clone());
            if let Some(failure) = failure {
                let body = JobEventBody::AttemptFailed {
                    attempt: assignment.attempt,
                    failure,
                    retry: state.is_live(),
                };
                transition = transition.event(NewEvent::of_run(
                    run.value.job,
                    run.value.id,
                    place.clone(),
                    body,
                ));
            }
        }
        if let RunState::Ended { outcome, .. } = &state {
            let body = JobEventBody::RunEnded {
                outcome: outcome.clone(),
            };
            transition =
                transition.event(NewEvent::of_run(run.value.job, run.value.id, place, body));
            transition = self.maybe_job_end(transition, run, &state).await?;
        }
        Ok(transition)
    }

    /// Adds the end of the job if `run` was its last live one.
    async fn maybe_job_end(
        &self,
        transition: Transition,
        run: &Versioned<Run>,
        state: &RunState,
    ) -> Result<Transition, StoreError> {
        let mut runs: Vec<Run> = self
            .store
            .runs_of(run.value.job)
            .await?
            .into_iter()
            .map(|run| run.value)
            .collect();
        for other in runs.iter_mut().filter(|other| other.id == run.value.id) {
            other.state = state.clone();
        }
        let state = JobState::of(&runs);
        Ok(if state.is_live() {
            transition
        } else {
            transition.event(NewEvent::of_job(
                run.value.job,
                JobEventBody::JobEnded { state },
            ))
        })
    }

    /// The order for the attempt that is in charge of `run`; `None` if there is none.
    pub(super) async fn order_of(&self, run: &Run) -> Result<Option<Order>, StoreError> {
        let Some(assignment) = run.state.assignment() else {
            return Ok(None);
        };
        let job = self.store.job(run.job).await?.job;
        let Some(kernel) = self.kernel_of(&job, run).await? else {
            return Ok(None);
        };
        Ok(Some(Order {
            run: run.id,
            attempt: assignment.attempt,
            fence: assignment.fence,
            variant: run.variant.clone(),
            kernel: OrderKernel {
                name: kernel.name,
                digest: kernel.offer.digest,
                size: kernel.offer.size,
                arch: kernel.offer.arch,
                release: kernel.offer.release,
                build_id: kernel.offer.build_id,
                image_digest: kernel.offer.image_digest,
            },
            plan: job.plan,
        }))
    }
}

/// The event as the state machine of runs knows it; `None` if it changes no state.
fn run_event(event: &AgentEvent) -> Option<RunEvent> {
    let fence = event.fence;
    match &event.body {
        EventBody::StepStarted(step) => Some(RunEvent::Stepped { fence, step: *step }),
        EventBody::Finished { failure } => Some(RunEvent::Finished {
            fence,
            failure: failure.clone(),
        }),
        EventBody::Cancelled => Some(RunEvent::Stopped { fence }),
        EventBody::Proved(_) | EventBody::TrialEnded(_) | EventBody::Note(_) => None,
    }
}

/// Whether nothing comes after this event.
pub(super) const fn is_last(event: &AgentEvent) -> bool {
    matches!(
        event.body,
        EventBody::Finished { .. } | EventBody::Cancelled
    )
}

/// Whether an attempt that ended so may still be at work on its board: its lease ran out
/// before its agent said anything.
pub(super) const fn may_still_run(outcome: Option<&Outcome>) -> bool {
    match outcome {
        None => true,
        Some(Outcome::Failed(failure)) => failure.class.is_retried(),
        Some(Outcome::Done | Outcome::Cancelled) => false,
    }
}

impl AttemptKey {
    pub(super) const fn of(event: &AgentEvent) -> Self {
        Self {
            run: event.run,
            attempt: event.attempt,
            fence: event.fence,
        }
    }

    pub(super) fn assigned(run: &Run) -> Option<Self> {
        run.state.assignment().map(|assignment| Self {
            run: run.id,
            attempt: assignment.attempt,
            fence: assignment.fence,
        })
    }
}
