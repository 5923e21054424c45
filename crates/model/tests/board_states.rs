//! The state machine of boards.

use klab_model::{
    BoardError, BoardState, Busy, Fence, InstanceId, RunId, Session, SessionId, Timestamp,
};
use newtype_uuid::GenericUuid;
use proptest::prelude::*;
use uuid::Uuid;

fn instance(number: u8) -> InstanceId {
    InstanceId::from_untyped_uuid(Uuid::from_bytes([number; 16]))
}

fn session(number: u8, holder: u8) -> Session {
    Session {
        id: SessionId::from_untyped_uuid(Uuid::from_bytes([number; 16])),
        instance: instance(holder),
    }
}

fn busy(number: u8) -> Busy {
    Busy {
        run: RunId::from_untyped_uuid(Uuid::from_bytes([number; 16])),
        fence: Fence(number.into()),
        lease_until: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn a_second_installation_is_refused_and_the_first_stays() {
    let online = BoardState::new()
        .connect(session(1, 1), None)
        .expect("free");
    let second = online.connect(session(2, 2), Some(instance(1)));
    assert_eq!(
        second,
        Err(BoardError::NameHeld {
            holder: instance(1)
        })
    );
    assert_eq!(online.session(), Some(&session(1, 1)));
}

#[test]
fn a_board_that_is_away_with_a_run_keeps_its_name() {
    let online = BoardState::new()
        .connect(session(1, 1), None)
        .expect("free");
    let away = online
        .assign(busy(1))
        .expect("idle")
        .disconnect(session(1, 1).id)
        .expect("it");
    assert!(away.connect(session(2, 2), Some(instance(1))).is_err());
    assert!(away.connect(session(3, 1), Some(instance(1))).is_ok());
}

#[test]
fn a_new_installation_takes_over_from_an_idle_board_that_is_gone() {
    let gone = BoardState::new();
    assert!(gone.connect(session(2, 2), Some(instance(1))).is_ok());
}

#[test]
fn a_replaced_connection_cannot_switch_the_board_off() {
    let first = BoardState::new()
        .connect(session(1, 1), None)
        .expect("free");
    let second = first
        .connect(session(2, 1), Some(instance(1)))
        .expect("same installation");
    let late = second.disconnect(session(1, 1).id);
    assert_eq!(
        late,
        Err(BoardError::StaleSession {
            found: session(1, 1).id
        })
    );
}

#[derive(Debug, Clone)]
enum Event {
    Connect(u8, u8),
    Disconnect(u8),
    Assign(u8),
    Release(u8),
    Extend(u8, i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (1u8..5, 1u8..3).prop_map(|(session, holder)| Event::Connect(session, holder)),
        (1u8..5).prop_map(Event::Disconnect),
        (1u8..6).prop_map(Event::Assign),
        (1u8..6).prop_map(Event::Release),
        (1u8..6, 0i64..100).prop_map(|(run, seconds)| Event::Extend(run, seconds)),
    ]
}

proptest! {
    /// No history gives a board a second run before the first is released.
    #[test]
    fn no_board_serves_two_runs(events in proptest::collection::vec(event(), 0..60)) {
        let mut state = BoardState::new();
        let mut serving: Option<u8> = None;
        for event in events {
            let next = match event {
                Event::Connect(id, holder) => state.connect(session(id, holder), None).ok(),
                Event::Disconnect(id) => state.disconnect(session(id, 1).id).ok(),
                Event::Assign(run) => {
                    let next = state.assign(busy(run)).ok();
                    prop_assert!(next.is_none() || serving.is_none(), "served {serving:?}");
                    serving = if next.is_some() { Some(run) } else { serving };
                    next
                }
                Event::Release(run) => {
                    if serving == Some(run) {
                        serving = None;
                    }
                    Some(state.release(Fence(run.into())))
                }
                Event::Extend(run, seconds) => {
                    let until = Timestamp::from_second(seconds).expect("in range");
                    Some(state.extend(Fence(run.into()), until))
                }
            };
            state = next.unwrap_or(state);
            prop_assert_eq!(state.busy.map(|b| b.fence), serving.map(|run| Fence(run.into())));
            prop_assert!(!state.is_free() || serving.is_none());
        }
    }
}
