//! The state machine of builds: a table, and properties over whole histories.

use klab_model::{
    BuildChange, BuildOutcome, BuildPhase, BuildState, BuildTransitionError, BuilderName, Failure,
    FailureClass, Fence, TargetState,
};
use proptest::prelude::*;

fn builder() -> BuilderName {
    BuilderName::parse("b1").expect("a legal name")
}

fn assigned(fence: u64) -> BuildChange {
    BuildChange::Assigned {
        builder: builder(),
        fence: Fence(fence),
    }
}

fn target(fence: u64, index: u32, state: TargetState) -> BuildChange {
    BuildChange::Target {
        fence: Fence(fence),
        index,
        state,
    }
}

fn finished(fence: u64, failure: Option<Failure>) -> BuildChange {
    BuildChange::Finished {
        fence: Fence(fence),
        failure,
    }
}

const BUILT: TargetState = TargetState::Built { cached: false };

fn broken() -> TargetState {
    TargetState::Failed(Failure::kernel("mm/madvise.c:1:1: error"))
}

/// The state after these changes, all of which fit.
fn after(changes: &[BuildChange]) -> BuildState {
    changes
        .iter()
        .cloned()
        .fold(BuildState::new(2), |state, change| {
            state.apply(change).expect("it fits")
        })
}

#[test]
fn histories_and_where_they_lead() {
    let lost = || BuildChange::Lost {
        fence: Fence(7),
        reason: "gone".into(),
    };
    let stopped = BuildChange::Stopped { fence: Fence(7) };
    let disk = Failure::infrastructure("disk");
    let done = [target(7, 0, BUILT), target(7, 1, BUILT), finished(7, None)];
    let half = [
        target(7, 0, BUILT),
        target(7, 1, broken()),
        finished(7, None),
    ];
    let table: Vec<(&str, Vec<BuildChange>)> = vec![
        ("queued", vec![]),
        ("building", vec![assigned(7)]),
        ("done", [vec![assigned(7)], done.to_vec()].concat()),
        ("failed", [vec![assigned(7)], half.to_vec()].concat()),
        ("queued", vec![assigned(7), finished(7, Some(disk))]),
        ("queued", vec![assigned(7), finished(7, None)]),
        ("queued", vec![assigned(7), lost()]),
        (
            "failed",
            vec![assigned(7), finished(7, Some(Failure::kernel("no base")))],
        ),
        ("cancelling", vec![assigned(7), BuildChange::Cancel]),
        ("cancelled", vec![BuildChange::Cancel]),
        ("cancelled", vec![assigned(7), BuildChange::Cancel, lost()]),
        ("cancelled", vec![assigned(7), stopped]),
        (
            "failed",
            vec![
                assigned(1),
                finished(1, None),
                assigned(2),
                finished(2, None),
                assigned(3),
                finished(3, None),
            ],
        ),
    ];
    for (expected, changes) in table {
        assert_eq!(after(&changes).as_str(), expected, "{changes:?}");
    }
}

#[test]
fn targets_that_fail_are_the_kernels_fault_and_the_others_stay() {
    let state = after(&[
        assigned(7),
        target(7, 0, BUILT),
        target(7, 1, broken()),
        finished(7, None),
    ]);
    assert_eq!(state.targets, [BUILT, broken()]);
    match state.outcome() {
        Some(BuildOutcome::Failed(failure)) => {
            assert_eq!(failure.class, FailureClass::Kernel);
            assert!(failure.reason.contains("madvise.c:1:1"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_later_attempt_keeps_what_an_earlier_one_built() {
    let gone = finished(7, Some(Failure::infrastructure("gone")));
    let state = after(&[assigned(7), target(7, 0, BUILT), gone, assigned(8)]);
    assert_eq!(state.targets, [BUILT, TargetState::Waiting]);
    // Said again by the new attempt, it is no news.
    let again = state.apply(target(8, 0, broken())).expect("it fits");
    assert_eq!(again, state);
    assert_eq!(
        state.apply(target(7, 1, BUILT)),
        Err(BuildTransitionError::Stale {
            found: Fence(7),
            expected: Some(Fence(8)),
        })
    );
    assert_eq!(
        state.apply(target(8, 2, BUILT)),
        Err(BuildTransitionError::NoTarget { index: 2, count: 2 })
    );
}

fn change() -> impl Strategy<Value = BuildChange> {
    let fence = || 1..3_u64;
    let state = prop_oneof![
        Just(BUILT),
        Just(TargetState::Built { cached: true }),
        Just(broken())
    ];
    let failure = prop_oneof![
        Just(None),
        Just(Some(Failure::kernel("k"))),
        Just(Some(Failure::infrastructure("i"))),
    ];
    prop_oneof![
        fence().prop_map(assigned),
        (fence(), 0..2_u32, state).prop_map(|(fence, index, state)| target(fence, index, state)),
        (fence(), failure).prop_map(|(fence, failure)| finished(fence, failure)),
        fence().prop_map(|fence| BuildChange::Stopped {
            fence: Fence(fence)
        }),
        fence().prop_map(|fence| BuildChange::Lost {
            fence: Fence(fence),
            reason: "lost".into()
        }),
        Just(BuildChange::Cancel),
    ]
}

proptest! {
    #[test]
    fn every_history_keeps_its_promises(changes in proptest::collection::vec(change(), 0..40)) {
        let mut state = BuildState::new(2);
        for change in changes {
            let before = state.clone();
            match state.apply(change) {
                Ok(next) => state = next,
                Err(_) => continue,
            }
            // What has become something stays so, and what has ended stays ended.
            prop_assert!(before.is_live());
            for (old, new) in before.targets.iter().zip(&state.targets) {
                prop_assert!(*old == TargetState::Waiting || old == new);
            }
            prop_assert!(state.attempt() <= BuildState::MAX_ATTEMPTS);
            prop_assert_eq!(state.is_live(), state.outcome().is_none());
            if let BuildPhase::Ended { outcome, .. } = &state.phase {
                prop_assert!(!state.targets.contains(&TargetState::Waiting));
                let failed = |t: &TargetState| matches!(t, TargetState::Failed(_));
                let all_built = !state.targets.iter().any(failed);
                prop_assert_eq!(*outcome == BuildOutcome::Done, all_built);
            }
        }
    }
}
