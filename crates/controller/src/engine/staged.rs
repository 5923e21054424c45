//! Staged uploads that nobody will finish.

use klab_model::RunId;
use klab_store::{Objects, UploadKey};
use klab_task::Shutdown;
use tracing::{info, warn};

use super::attempt::may_still_run;
use super::ingest::attempt_of;
use super::{Engine, EngineError, found};

/// A staged upload that only its owner can finish: once it is dropped, also because a client
/// went away in the middle, nothing of it is kept.
#[derive(Debug)]
pub(super) struct Staged {
    objects: Objects,
    key: UploadKey,
    tasks: Shutdown,
    gone: bool,
}

impl Staged {
    pub(super) fn new(objects: &Objects, key: UploadKey, tasks: &Shutdown) -> Self {
        Self {
            objects: objects.clone(),
            key,
            tasks: tasks.clone(),
            gone: false,
        }
    }

    pub(super) const fn key(&self) -> &UploadKey {
        &self.key
    }

    /// Throws it away now; what was committed stays.
    pub(super) async fn discard(mut self) {
        discard(&self.objects, &self.key).await;
        // Only now: a caller that went away before leaves it to the drop.
        self.gone = true;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Without a runtime the process ends, and the next one throws it away.
        if self.gone || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (objects, key) = (self.objects.clone(), self.key.clone());
        self.tasks
            .spawn("discard", async move { discard(&objects, &key).await });
    }
}

async fn discard(objects: &Objects, key: &UploadKey) {
    if let Err(error) = objects.discard(key).await {
        warn!(key = key.as_str(), %error, "failed to throw a staged upload away");
    }
}

impl Engine {
    /// Throws away what a controller that was killed had staged and nobody goes on with:
    /// everything but the artifacts of attempts that may still send the rest.
    pub(super) async fn discard_left_over(&self) -> Result<(), EngineError> {
        let objects = self.store.objects();
        for upload in objects.uploads().await? {
            let wanted = match attempt_of(&upload.key) {
                Some((run, attempt)) => self.may_go_on(run, attempt).await?,
                None => false,
            };
            if !wanted {
                let (key, bytes) = (upload.key.as_str(), upload.length);
                info!(
                    key,
                    bytes, "nobody goes on with this upload: it is thrown away"
                );
                discard(objects, &upload.key).await;
            }
        }
        Ok(())
    }

    /// Whether an attempt may still send artifacts. One that comes back against this only
    /// begins its upload again.
    async fn may_go_on(&self, run: RunId, attempt: u32) -> Result<bool, EngineError> {
        let Some(attempt) = found(self.store.attempt(run, attempt).await)? else {
            return Ok(false);
        };
        let Some((_, outcome)) = &attempt.ended else {
            return Ok(true);
        };
        let live = self.store.run(run).await?.value.state.is_live();
        Ok(live && may_still_run(Some(outcome)))
    }
}
