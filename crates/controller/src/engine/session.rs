//! The conversation with one agent.

use std::collections::BTreeMap;
use std::time::Duration;

use klab_model::{
    AgentEvent, Arch, Board, BoardFacts, BoardName, BoardState, Digest, InstanceId, RunEvent,
    RunState, Session, SessionId,
};
use klab_proto::status::Reason;
use klab_store::{Recorded, Transition, Versioned};
use klab_task::CancellationToken;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::attempt::{is_last, may_still_run};
use super::{AttemptKey, Down, Engine, EngineError, GRACE, LEASE, decide, found};

/// What an agent says first.
#[derive(Debug, Clone)]
pub(crate) struct Hello {
    pub(crate) board: BoardName,
    pub(crate) instance: InstanceId,
    pub(crate) arch: Arch,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) facts: BoardFacts,
    /// The attempt in the agent's journal.
    pub(crate) current: Option<AttemptKey>,
    /// Of its known-good kernel's configuration file.
    pub(crate) config: Option<Digest>,
}

/// An open session.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) board: BoardName,
    pub(crate) session: SessionId,
    pub(crate) down: mpsc::UnboundedReceiver<Down>,
    /// Cancelled when the session is to end.
    pub(crate) end: CancellationToken,
}

/// What became of an event.
enum Told {
    /// It is stored; `stale` if its attempt is no longer in charge.
    Stored { stale: bool, again: bool },
    /// No such attempt was ever given to this board.
    Foreign,
}

impl Engine {
    /// An agent connects.
    pub(crate) async fn connect(&self, hello: Hello) -> Result<Connection, EngineError> {
        let _turn = self.turn().await;
        let session = self.new_id();
        let state = decide(|| self.try_connect(&hello, session)).await?;
        let end = self.shutdown.token().child_token();
        let down = self.sessions.open(&hello.board, session, end.clone());
        info!(board = %hello.board, %session, "agent connected");
        let welcome = Down::Welcome {
            session,
            wants_config: self.wants_config(&hello).await?,
        };
        self.sessions.send(&hello.board, welcome);
        if let Err(error) = self.resume(&hello.board, &state, hello.current).await {
            self.sessions.end(&hello.board);
            return Err(error);
        }
        self.leases.notify_one();
        self.assignable.notify_one();
        Ok(Connection {
            board: hello.board,
            session,
            down,
            end,
        })
    }

    async fn try_connect(
        &self,
        hello: &Hello,
        session: SessionId,
    ) -> Result<BoardState, EngineError> {
        let known = self.store.find_board(&hello.board).await?;
        let (old, holder) = known.as_ref().map_or((BoardState::new(), None), |board| {
            (board.value.state.clone(), board.value.holder)
        });
        let session = Session {
            id: session,
            instance: hello.instance,
        };
        let state = old
            .connect(session, holder)
            .map_err(|source| EngineError::Board {
                board: hello.board.clone(),
                source,
            })?;
        let state = match state.busy {
            Some(busy) => state.extend(busy.fence, self.in_future(LEASE)),
            None => state,
        };
        let board = Board {
            name: hello.board.clone(),
            arch: hello.arch,
            tags: hello.tags.clone(),
            facts: hello.facts.clone(),
            holder: Some(hello.instance),
            state: state.clone(),
            seen_at: self.now(),
        };
        self.store
            .upsert_board(&board, known.map(|board| board.version))
            .await?;
        Ok(state)
    }

    /// Brings what the agent works on and what it should work on together.
    async fn resume(
        &self,
        board: &BoardName,
        state: &BoardState,
        current: Option<AttemptKey>,
    ) -> Result<(), EngineError> {
        let Some(busy) = &state.busy else {
            if let Some(stale) = current {
                self.end_stale(board, stale).await?;
            }
            return Ok(());
        };
        let run = self.store.run(busy.run).await?;
        let wanted = AttemptKey::assigned(&run.value).filter(|key| key.fence == busy.fence);
        let cancelling = matches!(
            run.value.state,
            RunState::Active {
                cancelling: true,
                ..
            }
        );
        match (wanted, current) {
            (None, current) => {
                // The run went on without this board; only the board's row says otherwise.
                decide(|| self.release(board, busy.fence)).await?;
                if let Some(stale) = current {
                    self.end_stale(board, stale).await?;
                }
            }
            (Some(wanted), Some(current)) if wanted == current => {
                if cancelling {
                    self.sessions
                        .send(board, Down::Cancel(wanted, CANCELLED.into()));
                }
            }
            // Its order comes once the agent is rid of the old attempt.
            (Some(_), Some(stale)) => self.end_stale(board, stale).await?,
            (Some(wanted), None) if cancelling => {
                let event = RunEvent::Stopped {
                    fence: wanted.fence,
                };
                self.end_unheard(wanted, event).await?;
            }
            (Some(_), None) => {
                if let Some(order) = self.order_of(&run.value).await? {
                    self.sessions.send(board, Down::Order(Box::new(order)));
                }
            }
        }
        Ok(())
    }

    pub(super) async fn release(
        &self,
        name: &BoardName,
        fence: klab_model::Fence,
    ) -> Result<(), EngineError> {
        let board = self.store.board(name).await?;
        let released = board.value.state.release(fence);
        let transition = Transition::new(self.now()).board(&board, released);
        self.store.transition(&transition).await?;
        Ok(())
    }

    /// The agent works on an attempt that is over: it must end it before it gets another.
    async fn end_stale(&self, board: &BoardName, stale: AttemptKey) -> Result<(), EngineError> {
        self.sessions.set_stale(board, stale);
        let attempt = found(self.store.attempt(stale.run, stale.attempt).await)?;
        let outcome = attempt
            .as_ref()
            .filter(|attempt| attempt.fence == stale.fence)
            .and_then(|attempt| attempt.ended.as_ref())
            .map(|(_, outcome)| outcome);
        // An attempt whose end was heard is not cancelled: only the agent's last events are
        // on their way once more.
        if may_still_run(outcome) {
            self.sessions.send(board, Down::Cancel(stale, STALE.into()));
        }
        Ok(())
    }

    /// The attempt of a run ends without a word of its agent.
    pub(super) async fn end_unheard(
        &self,
        key: AttemptKey,
        event: RunEvent,
    ) -> Result<(), EngineError> {
        decide(|| async {
            let run = self.store.run(key.run).await?;
            let Ok(state) = run.value.state.apply(event.clone()) else {
                return Ok(());
            };
            let (failure, outcome) = match &event {
                RunEvent::LeaseEnded { reason, .. } => {
                    let failure = klab_model::Failure::infrastructure(reason.clone());
                    (Some(failure.clone()), klab_model::Outcome::Failed(failure))
                }
                _ => (None, klab_model::Outcome::Cancelled),
            };
            let transition = self.ending(&run, state, failure).await?.attempt_ended(
                key.run,
                key.attempt,
                outcome,
            );
            self.store.transition(&transition).await?;
            Ok(())
        })
        .await?;
        self.keep_console_or_later(key).await;
        self.feed_changed();
        self.assignable.notify_one();
        Ok(())
    }

    /// A connection ended.
    pub(crate) async fn disconnect(&self, board: &BoardName, session: SessionId) {
        let _turn = self.turn().await;
        self.sessions.close(board, session);
        let done = decide(|| async {
            let known = self.store.board(board).await?;
            // A session that was replaced has nothing to say any more.
            if let Ok(state) = known.value.state.disconnect(session) {
                let transition = Transition::new(self.now()).board(&known, state);
                self.store.transition(&transition).await?;
                info!(%board, %session, "agent disconnected");
            }
            Ok(())
        })
        .await;
        if let Err(error) = done {
            warn!(%board, %error, "failed to note that an agent disconnected");
        }
    }

    /// A sign of life.
    pub(crate) async fn heartbeat(
        &self,
        board: &BoardName,
        session: SessionId,
    ) -> Result<(), EngineError> {
        let _turn = self.turn().await;
        if !self.sessions.is_current(board, session) {
            return Ok(());
        }
        decide(|| async {
            let known = self.store.board(board).await?;
            match known.value.state.busy {
                Some(busy) => self.extend(&known, busy.fence, LEASE).await,
                None => Ok(self.store.board_seen(board, self.now()).await?),
            }
        })
        .await
    }

    async fn extend(
        &self,
        board: &Versioned<Board>,
        fence: klab_model::Fence,
        lease: Duration,
    ) -> Result<(), EngineError> {
        let new = Board {
            state: board.value.state.extend(fence, self.in_future(lease)),
            seen_at: self.now(),
            ..board.value.clone()
        };
        let transition = Transition::new(self.now()).whole_board(new, Some(board.version));
        self.store.transition(&transition).await?;
        Ok(())
    }

    /// The agent asks to be silent for a while.
    pub(crate) async fn quiet(
        &self,
        board: &BoardName,
        key: AttemptKey,
        silence: Duration,
    ) -> Result<(), EngineError> {
        let _turn = self.turn().await;
        let lease = silence.min(LONGEST_SILENCE) + GRACE;
        let granted = decide(|| async {
            let known = self.store.board(board).await?;
            let busy = known.value.state.busy;
            let in_charge = busy.is_some_and(|b| b.fence == key.fence && b.run == key.run);
            if in_charge {
                self.extend(&known, key.fence, lease).await?;
            }
            Ok(in_charge)
        })
        .await?;
        if granted {
            self.sessions.send(board, Down::QuietGranted(key));
        } else {
            self.end_stale(board, key).await?;
        }
        self.leases.notify_one();
        Ok(())
    }

    /// The agent reports something about an attempt.
    pub(crate) async fn agent_event(
        &self,
        board: &BoardName,
        event: AgentEvent,
    ) -> Result<(), EngineError> {
        let _turn = self.turn().await;
        let key = AttemptKey::of(&event);
        if is_last(&event) {
            self.keep_console_of(board, key).await?;
        }
        let told = decide(|| self.try_event(board, &event)).await?;
        // What is foreign is acknowledged as well, or the agent would keep it for ever.
        self.sessions.send(board, Down::Ack(key, event.seq));
        let stale = match told {
            Told::Foreign => {
                warn!(%board, run = %key.run, attempt = key.attempt, "event of a foreign attempt");
                true
            }
            Told::Stored { stale, again } => stale && !again,
        };
        if is_last(&event) {
            self.after_last(board, key).await?;
        } else if stale {
            self.end_stale(board, key).await?;
        }
        self.feed_changed();
        Ok(())
    }

    /// The agent has nothing to do any more.
    async fn after_last(&self, board: &BoardName, key: AttemptKey) -> Result<(), EngineError> {
        if self.sessions.clear_stale(board, key) {
            let state = self.store.board(board).await?.value.state;
            self.resume(board, &state, None).await?;
        }
        self.leases.notify_one();
        self.assignable.notify_one();
        Ok(())
    }

    async fn try_event(&self, board: &BoardName, event: &AgentEvent) -> Result<Told, EngineError> {
        let attempt = found(self.store.attempt(event.run, event.attempt).await)?;
        if !attempt.is_some_and(|a| a.board == *board && a.fence == event.fence) {
            return Ok(Told::Foreign);
        }
        let last = self.store.last_agent_seq(event.run, event.attempt).await?;
        if event.seq > last + 1 {
            return Err(EngineError::refused(
                Reason::WrongOffset,
                format!(
                    "event {} of attempt {} of run {} came after event {last}: send the events \
                     between them first",
                    event.seq, event.attempt, event.run
                ),
            ));
        }
        let run = self.store.run(event.run).await?;
        let assignment = run.value.state.assignment().cloned();
        let effect = self.effect_of(&run, event, assignment.as_ref()).await?;
        let recorded = self
            .store
            .record_agent_event(event, &effect.transition)
            .await?;
        Ok(Told::Stored {
            stale: effect.stale,
            again: recorded == Recorded::Again,
        })
    }
}

/// The longest silence an agent gets: no trial may take longer than a span.
const LONGEST_SILENCE: Duration = Duration::from_secs(8 * 24 * 3600);
pub(super) const CANCELLED: &str = "the job was cancelled";
const STALE: &str = "the attempt is no longer in charge of its run";
