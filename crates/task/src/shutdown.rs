//! Named tasks that stop together.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, debug, error_span, warn};

/// Starts tasks, tells them to stop, and waits for them. Clones share the tasks.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// No task yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The token that tasks watch.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Whether the tasks have been told to stop.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Tells every task to stop.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Ends when the tasks have been told to stop.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Starts a task that watches the token itself. Its log lines carry its name, and a
    /// panic in it is reported by the runtime and ends this task only.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let span = error_span!("task", name);
        self.tasks.spawn(task.instrument(span))
    }

    /// Starts a task that is dropped when the tasks are told to stop.
    pub fn spawn_until_requested<F>(&self, name: &'static str, task: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let token = self.token.clone();
        self.spawn(name, async move {
            if token.run_until_cancelled(task).await.is_none() {
                debug!("stopped");
            }
        })
    }

    /// Tells every task to stop and waits for them, at most for `longest`. `false` if some
    /// did not end in time.
    pub async fn finish(&self, longest: Duration) -> bool {
        self.request();
        self.tasks.close();
        let ended = tokio::time::timeout(longest, self.tasks.wait()).await;
        if ended.is_err() {
            warn!(left = self.tasks.len(), "tasks did not stop in time");
        }
        ended.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_are_told_to_stop_and_waited_for() {
        let shutdown = Shutdown::new();
        let token = shutdown.token().clone();
        shutdown.spawn("watcher", async move { token.cancelled().await });
        shutdown.spawn_until_requested("endless", std::future::pending());
        assert!(!shutdown.is_requested());
        assert!(shutdown.finish(Duration::from_secs(10)).await);
        assert!(shutdown.is_requested());
    }

    #[tokio::test]
    async fn a_task_that_does_not_stop_is_reported() {
        let shutdown = Shutdown::new();
        shutdown.spawn("deaf", std::future::pending());
        assert!(!shutdown.finish(Duration::from_millis(20)).await);
    }
}
