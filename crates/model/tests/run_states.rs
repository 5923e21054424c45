//! The state machine of runs: a table, and properties over whole histories.

use klab_model::{
    Assignment, BoardName, Failure, FailureClass, Fence, Outcome, RunEvent, RunState, Step,
    TransitionError, TrialIndex,
};
use proptest::prelude::*;

fn board() -> BoardName {
    BoardName::parse("b1").expect("a legal name")
}

fn assigned(fence: u64) -> RunEvent {
    RunEvent::Assigned {
        board: board(),
        fence: Fence(fence),
    }
}

fn finished(fence: u64, failure: Option<Failure>) -> RunEvent {
    RunEvent::Finished {
        fence: Fence(fence),
        failure,
    }
}

fn active(attempt: u32, fence: u64, step: Option<Step>, cancelling: bool) -> RunState {
    let assignment = Assignment {
        board: board(),
        attempt,
        fence: Fence(fence),
    };
    RunState::Active {
        assignment,
        step,
        cancelling,
    }
}

fn ended(attempts: u32, outcome: Outcome) -> RunState {
    RunState::Ended { attempts, outcome }
}

#[test]
fn the_table_of_transitions() {
    let queued = |next_attempt| RunState::Queued { next_attempt };
    let fetch = Some(Step::Fetch);
    let panic = Failure::kernel("panic");
    let lost = Failure::infrastructure("lost");
    let stepped = RunEvent::Stepped {
        fence: Fence(7),
        step: Step::Fetch,
    };
    let stopped = RunEvent::Stopped { fence: Fence(7) };
    let lease = RunEvent::LeaseEnded {
        fence: Fence(7),
        reason: "lost".into(),
    };
    let table = [
        (queued(1), assigned(7), active(1, 7, None, false)),
        (queued(2), assigned(9), active(2, 9, None, false)),
        (queued(1), RunEvent::Cancel, ended(0, Outcome::Cancelled)),
        (queued(3), RunEvent::Cancel, ended(2, Outcome::Cancelled)),
        (
            queued(1),
            RunEvent::NotBuilt {
                failure: panic.clone(),
            },
            ended(0, Outcome::Failed(panic.clone())),
        ),
        (
            active(1, 7, None, false),
            stepped.clone(),
            active(1, 7, fetch, false),
        ),
        (active(1, 7, None, true), stepped, active(1, 7, fetch, true)),
        (
            active(1, 7, fetch, false),
            finished(7, None),
            ended(1, Outcome::Done),
        ),
        (
            active(1, 7, fetch, false),
            finished(7, Some(panic.clone())),
            ended(1, Outcome::Failed(panic)),
        ),
        (
            active(1, 7, fetch, false),
            finished(7, Some(lost.clone())),
            queued(2),
        ),
        (
            active(3, 7, fetch, false),
            finished(7, Some(lost.clone())),
            ended(3, Outcome::Failed(lost.clone())),
        ),
        (
            active(1, 7, fetch, true),
            finished(7, None),
            ended(1, Outcome::Done),
        ),
        (
            active(1, 7, fetch, true),
            finished(7, Some(lost)),
            ended(1, Outcome::Cancelled),
        ),
        (
            active(2, 7, fetch, true),
            stopped,
            ended(2, Outcome::Cancelled),
        ),
        (active(1, 7, fetch, false), lease.clone(), queued(2)),
        (
            active(1, 7, fetch, true),
            lease,
            ended(1, Outcome::Cancelled),
        ),
        (
            active(1, 7, fetch, false),
            RunEvent::Cancel,
            active(1, 7, fetch, true),
        ),
    ];
    for (state, event, expected) in table {
        assert_eq!(
            state.apply(event.clone()),
            Ok(expected),
            "{state:?} + {event:?}"
        );
    }
}

#[test]
fn only_the_attempt_in_charge_is_heard() {
    let run = active(2, 8, None, false);
    let stale = TransitionError::Stale {
        found: Fence(7),
        expected: Some(Fence(8)),
    };
    assert_eq!(run.apply(finished(7, None)), Err(stale));
    let nobody = TransitionError::Stale {
        found: Fence(7),
        expected: None,
    };
    assert_eq!(RunState::new().apply(finished(7, None)), Err(nobody));
}

fn failure() -> impl Strategy<Value = Option<Failure>> {
    prop_oneof![
        Just(None),
        Just(Some(Failure::kernel("k"))),
        Just(Some(Failure::workload("w"))),
        Just(Some(Failure::infrastructure("i"))),
    ]
}

fn event() -> impl Strategy<Value = RunEvent> {
    let fence = || (1u64..6).prop_map(Fence);
    prop_oneof![
        fence().prop_map(|fence| RunEvent::Assigned {
            board: board(),
            fence
        }),
        (fence(), 0u32..4).prop_map(|(fence, trial)| RunEvent::Stepped {
            fence,
            step: Step::Trial(TrialIndex(trial)),
        }),
        (fence(), failure()).prop_map(|(fence, failure)| RunEvent::Finished { fence, failure }),
        fence().prop_map(|fence| RunEvent::Stopped { fence }),
        fence().prop_map(|fence| RunEvent::LeaseEnded {
            fence,
            reason: "silence".into()
        }),
        Just(RunEvent::Cancel),
    ]
}

proptest! {
    /// No history leads to a run that is neither live nor ended, an end is final, attempts
    /// only grow and never exceed the limit.
    #[test]
    fn every_history_is_live_or_ended(events in proptest::collection::vec(event(), 0..40)) {
        let mut state = RunState::new();
        let mut attempts_made = 0;
        for event in events {
            let before = state.clone();
            match state.apply(event) {
                Ok(after) => {
                    prop_assert!(before.is_live(), "{before:?} had ended");
                    state = after;
                }
                Err(error) => prop_assert!(before.is_live() || error == TransitionError::Ended),
            }
            prop_assert_eq!(state.is_live(), state.outcome().is_none());
            let attempt = match &state {
                RunState::Queued { next_attempt } => next_attempt - 1,
                RunState::Active { assignment, .. } => assignment.attempt,
                RunState::Ended { attempts, .. } => *attempts,
            };
            prop_assert!(attempt >= attempts_made && attempt <= RunState::MAX_ATTEMPTS);
            attempts_made = attempt;
        }
    }

    /// A kernel or workload failure ends a run at once; only the lab's own failures repeat it.
    #[test]
    fn only_infrastructure_failures_are_repeated(failure in failure()) {
        let state = active(1, 1, None, false).apply(finished(1, failure.clone())).expect("fits");
        let repeated = failure.is_some_and(|f| f.class == FailureClass::Infrastructure);
        prop_assert_eq!(matches!(state, RunState::Queued { .. }), repeated);
    }

    /// What is stored is what is read.
    #[test]
    fn states_survive_json(events in proptest::collection::vec(event(), 0..10)) {
        let state = events.into_iter().fold(RunState::new(), |state, event| {
            state.apply(event).unwrap_or(state)
        });
        let json = serde_json::to_string(&state).expect("serialises");
        prop_assert_eq!(serde_json::from_str::<RunState>(&json).expect("reads"), state);
    }
}
