//! The agents that are connected now.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use klab_model::{BoardName, Order, SessionId};
use klab_task::CancellationToken;
use tokio::sync::mpsc;

use super::AttemptKey;

/// What a controller says to an agent.
#[derive(Debug)]
pub(crate) enum Down {
    /// The session is accepted.
    Welcome {
        session: SessionId,
        wants_config: bool,
    },
    /// A run begins.
    Order(Box<Order>),
    /// Events up to this number are stored.
    Ack(AttemptKey, u64),
    /// The attempt is to be ended.
    Cancel(AttemptKey, String),
    /// The agent may be silent.
    QuietGranted(AttemptKey),
}

#[derive(Debug)]
struct Handle {
    id: SessionId,
    down: mpsc::UnboundedSender<Down>,
    end: CancellationToken,
    /// The agent still works on an attempt that is no longer in charge of its run.
    stale: Option<AttemptKey>,
}

/// The sessions by board. Locks are held for single look-ups only.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<BoardName, Handle>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<BoardName, Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session; one that was open for the board ends.
    pub(crate) fn open(
        &self,
        board: &BoardName,
        id: SessionId,
        end: CancellationToken,
    ) -> mpsc::UnboundedReceiver<Down> {
        let (down, receiver) = mpsc::unbounded_channel();
        let handle = Handle {
            id,
            down,
            end,
            stale: None,
        };
        if let Some(old) = self.lock().insert(board.clone(), handle) {
            old.end.cancel();
        }
        receiver
    }

    /// Forgets a session, unless another one has replaced it.
    pub(crate) fn close(&self, board: &BoardName, id: SessionId) {
        let mut sessions = self.lock();
        if sessions.get(board).is_some_and(|handle| handle.id == id) {
            sessions.remove(board);
        }
    }

    /// Ends the session of a board; its agent may connect again.
    pub(crate) fn end(&self, board: &BoardName) {
        if let Some(handle) = self.lock().remove(board) {
            handle.end.cancel();
        }
    }

    /// Whether this session is the board's current one.
    pub(crate) fn is_current(&self, board: &BoardName, id: SessionId) -> bool {
        self.lock().get(board).is_some_and(|handle| handle.id == id)
    }

    /// Says something to a board's agent. If it is not connected, it is told again what
    /// matters when it connects.
    pub(crate) fn send(&self, board: &BoardName, message: Down) {
        if let Some(handle) = self.lock().get(board) {
            // A receiver that is gone belongs to a session that ends.
            let _ = handle.down.send(message);
        }
    }

    /// Notes that the agent works on an attempt that is over.
    pub(crate) fn set_stale(&self, board: &BoardName, attempt: AttemptKey) {
        if let Some(handle) = self.lock().get_mut(board) {
            handle.stale = Some(attempt);
        }
    }

    /// Notes that the agent has ended a stale attempt; whether it was working on it.
    pub(crate) fn clear_stale(&self, board: &BoardName, attempt: AttemptKey) -> bool {
        self.lock()
            .get_mut(board)
            .and_then(|handle| handle.stale.take_if(|stale| *stale == attempt))
            .is_some()
    }

    /// Boards whose agents have not yet ended an attempt that is over.
    pub(crate) fn occupied(&self) -> BTreeSet<BoardName> {
        self.lock()
            .iter()
            .filter(|(_, handle)| handle.stale.is_some())
            .map(|(board, _)| board.clone())
            .collect()
    }
}
