//! Leases: until when silence is no sign of death.

use std::sync::Arc;
use std::time::Duration;

use klab_model::{Board, BoardState, Presence, RunEvent, RunState, Timestamp};
use klab_store::{Transition, Versioned};
use tracing::{error, warn};

use super::{AttemptKey, Engine, EngineError, LEASE, decide};

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

impl Engine {
    /// At the start nobody is connected. Boards at work get a fresh lease: it was this
    /// controller that was silent, not they.
    pub(super) async fn take_over(&self) -> Result<(), EngineError> {
        let until = self.in_future(LEASE);
        for board in self.store.list_boards().await? {
            let mut state = BoardState {
                presence: Presence::Offline,
                busy: board.value.state.busy,
            };
            if let Some(busy) = state.busy {
                state = state.extend(busy.fence, busy.lease_until.max(until));
                let run = self.store.run(busy.run).await?;
                if let Some(key) = AttemptKey::assigned(&run.value) {
                    self.consoles.begin(&board.value.name, key);
                }
            }
            if state != board.value.state {
                let transition = Transition::new(self.now()).board(&board, state);
                self.store.transition(&transition).await?;
            }
        }
        Ok(())
    }

    /// Ends leases when their time has come.
    pub(super) async fn lease_loop(self: Arc<Self>) {
        loop {
            let next = match self.end_leases().await {
                Ok(next) => next.unwrap_or(Timestamp::MAX),
                Err(error) => {
                    error!(%error, "failed to look after the leases");
                    self.in_future(PAUSE_AFTER_ERROR)
                }
            };
            tokio::select! {
                () = self.leases.notified() => {}
                () = self.clock.sleep_until(next) => {}
            }
        }
    }

    /// Ends every lease whose time is over; when the next one ends.
    async fn end_leases(&self) -> Result<Option<Timestamp>, EngineError> {
        let _turn = self.turn().await;
        let now = self.now();
        let mut next: Option<Timestamp> = None;
        for board in self.store.list_boards().await? {
            let Some(busy) = board.value.state.busy else {
                continue;
            };
            if busy.lease_until > now {
                let until = busy.lease_until;
                next = Some(next.map_or(until, |next| next.min(until)));
            } else {
                self.end_lease(&board).await?;
            }
        }
        Ok(next)
    }

    async fn end_lease(&self, board: &Versioned<Board>) -> Result<(), EngineError> {
        let name = &board.value.name;
        let Some(busy) = board.value.state.busy else {
            return Ok(());
        };
        let run = self.store.run(busy.run).await?;
        let reason = format!(
            "board {name} was not heard for longer than was agreed; {}",
            last_known(&run.value.state)
        );
        warn!(board = %name, run = %busy.run, reason, "lease ended");
        // A session that gives no sign of life is no session: the agent has to connect
        // again before it gets anything else to do.
        self.sessions.end(name);
        decide(|| async {
            let board = self.store.board(name).await?;
            let state = BoardState {
                presence: Presence::Offline,
                busy: board.value.state.busy,
            };
            let transition = Transition::new(self.now()).board(&board, state);
            Ok(self.store.transition(&transition).await?)
        })
        .await?;
        match AttemptKey::assigned(&run.value).filter(|key| key.fence == busy.fence) {
            Some(key) => {
                let fence = busy.fence;
                self.end_unheard(key, RunEvent::LeaseEnded { fence, reason })
                    .await
            }
            None => self.release(name, busy.fence).await,
        }
    }
}

fn last_known(state: &RunState) -> String {
    match state {
        RunState::Active {
            step: Some(step), ..
        } => format!("the last step it began was {step}"),
        _ => "it never began the run".to_owned(),
    }
}
