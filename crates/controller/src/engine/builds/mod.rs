//! Builds: accepted, given to builders, followed, ended.
//!
//! ```text
//! create    wish -> checked -> series stored -> names of kernels given       (user)
//! assign    on every change: free builders <- queued builds (sched)
//! report    key -> verdict: known, or build; built -> kernel and key kept    (builder)
//! wanted    kernels that jobs wait for; runs whose kernel never comes end
//! ```
//!
//! A builder keeps nothing that counts: when its stream ends, its attempt has ended. What it
//! built before is known by its key and is not built again.

mod assign;
mod builders;
mod claims;
mod create;
mod log;
mod report;
mod wanted;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use klab_model::{BuildProgress, BuildRef, BuildState, BuildTaskId, Digest};
use tokio::sync::Notify;

pub(crate) use builders::{BuilderConnection, BuilderDown, BuilderHello};
pub(crate) use create::BuildUpload;
pub(crate) use wanted::Wanted;

use super::EngineError;
use builders::Builders;
use claims::Claims;
use log::Logs;

/// What the controller keeps about builds besides rows.
#[derive(Debug)]
pub(super) struct Builds {
    builders: Builders,
    logs: Logs,
    claims: Mutex<Claims>,
    progress: Mutex<HashMap<BuildTaskId, BuildProgress>>,
    /// Something may have become assignable.
    pub(super) assignable: Notify,
}

impl Builds {
    pub(super) async fn open(folder: &Path) -> Result<Self, EngineError> {
        Ok(Self {
            builders: Builders::default(),
            logs: Logs::open(folder).await?,
            claims: Mutex::default(),
            progress: Mutex::default(),
            assignable: Notify::new(),
        })
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<BuildTaskId, BuildProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which of its targets the builder of a build works on, and how far it is.
    pub(super) fn progress_of(&self, build: BuildTaskId) -> Option<BuildProgress> {
        self.progress().get(&build).copied()
    }
}

/// The attempt at work on a build.
fn attempt_of(build: BuildTaskId, state: &BuildState) -> Option<BuildRef> {
    Some(BuildRef {
        build,
        attempt: state.attempt(),
        fence: state.fence()?,
    })
}

/// A target of an attempt that was told its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    at: BuildRef,
    index: u32,
    key: Digest,
}
