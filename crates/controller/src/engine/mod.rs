//! The core of the controller: reads model state, lets the state machines of the model
//! decide, saves what they said, tells those who wait.
//!
//! ```text
//! services -> submit | session | ingest | cancel | console | report
//!                 \       |        /
//!            one transaction per transition (store)
//!                         |
//!          scheduling (on every change)   leases (at the earliest end)
//!                         |
//!              orders to the connected sessions
//!
//!            builds: the same for kernels, builders and their logs
//! ```
//!
//! Whatever changes a run or a board holds the *turn*, so that every decision sees the result
//! of the one before. A database has one controller, the store's lock sees to that; versions
//! of rows are the second line: what was changed all the same since it was read is a
//! conflict, and is read and decided again.

mod attempt;
mod board_config;
mod builds;
mod cancel;
mod console;
mod error;
mod ingest;
mod kernel_reports;
mod kernels;
mod lease;
mod report;
mod schedule;
mod session;
mod sessions;
mod staged;
mod submit;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use klab_model::{BuildProgress, BuildTaskId, Fence, RunId, Timestamp};
use klab_store::{Store, StoreError};
use klab_task::{Clock, Ids, Shutdown};
use newtype_uuid::GenericUuid;
use tokio::sync::{Mutex, MutexGuard, Notify, watch};

pub(crate) use builds::{BuildUpload, BuilderConnection, BuilderDown, BuilderHello, Wanted};
pub(crate) use error::{EngineError, store_status};
pub(crate) use ingest::{Upload, UploadStat};
pub(crate) use kernels::KernelUpload;
pub(crate) use session::{Connection, Hello};
pub(crate) use sessions::Down;
pub(crate) use submit::Submission;

use builds::Builds;
use console::Consoles;
use sessions::Sessions;

/// How long a board that is connected and at work may be silent.
pub(crate) const LEASE: Duration = Duration::from_secs(60);
/// What a lease lasts longer than the silence an agent asked for.
pub(crate) const GRACE: Duration = Duration::from_secs(60);
/// How often agents are asked to give a sign of life; several fit into a lease.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Names one attempt as an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttemptKey {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    pub(crate) fence: Fence,
}

/// The state of one controller.
#[derive(Debug)]
pub(crate) struct Engine {
    store: Store,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    shutdown: Shutdown,
    sessions: Sessions,
    consoles: Consoles,
    builds: Builds,
    turn: Mutex<()>,
    /// Held while a kernel package is verified.
    verifying: Arc<Mutex<()>>,
    /// Counts changes of feeds.
    feed: watch::Sender<u64>,
    /// Something may have become assignable.
    assignable: Notify,
    /// A lease may end earlier than before.
    leases: Notify,
}

impl Engine {
    /// Takes over a store: no agent is connected, and boards at work get time to come back.
    pub(crate) async fn open(
        store: Store,
        folder: &Path,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>),
        shutdown: Shutdown,
    ) -> Result<Arc<Self>, EngineError> {
        let engine = Arc::new(Self {
            store,
            folder: folder.to_owned(),
            clock,
            ids,
            shutdown,
            sessions: Sessions::default(),
            consoles: Consoles::open(folder).await?,
            builds: Builds::open(folder).await?,
            turn: Mutex::new(()),
            verifying: Arc::default(),
            feed: watch::Sender::new(0),
            assignable: Notify::new(),
            leases: Notify::new(),
        });
        engine.take_over().await?;
        engine.take_builds_over().await?;
        engine.discard_left_over().await?;
        Ok(engine)
    }

    /// Starts the work that no caller waits for.
    pub(crate) fn start(self: &Arc<Self>) {
        let engine = Arc::clone(self);
        self.shutdown
            .spawn_until_requested("scheduler", async move { engine.schedule_loop().await });
        let engine = Arc::clone(self);
        self.shutdown
            .spawn_until_requested("leases", async move { engine.lease_loop().await });
        let engine = Arc::clone(self);
        self.shutdown
            .spawn_until_requested("parser", async move { engine.parse_left_over().await });
        let engine = Arc::clone(self);
        self.shutdown
            .spawn_until_requested("consoles", async move { engine.console_loop().await });
        let engine = Arc::clone(self);
        self.shutdown
            .spawn_until_requested("builds", async move { engine.builds_loop().await });
        self.assignable.notify_one();
        self.builds.assignable.notify_one();
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// How far the builder of a build is.
    pub(crate) fn build_progress(&self, build: BuildTaskId) -> Option<BuildProgress> {
        self.builds.progress_of(build)
    }

    /// A receiver that changes whenever a feed got longer.
    pub(crate) fn feed_changes(&self) -> watch::Receiver<u64> {
        self.feed.subscribe()
    }

    fn feed_changed(&self) {
        self.feed
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    fn new_id<T: GenericUuid>(&self) -> T {
        T::from_untyped_uuid(self.ids.next())
    }

    async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The time after `duration` from now.
    fn in_future(&self, duration: Duration) -> Timestamp {
        self.now().checked_add(duration).unwrap_or(Timestamp::MAX)
    }
}

/// How often a decision is made again because what it was made from has changed.
const TRIES: u32 = 20;

/// Decides again as long as somebody else was faster.
async fn decide<T, F>(mut decision: impl FnMut() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    for _ in 1..TRIES {
        match decision().await {
            Err(error) if error.is_conflict() => tokio::task::yield_now().await,
            result => return result,
        }
    }
    decision().await
}

/// Whether an error says that the named thing does not exist; then `None`.
fn found<T>(result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
