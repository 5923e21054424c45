//! Builders that connect and go away, and the builds that they get.

use std::sync::Arc;
use std::time::Duration;

use klab_model::{BuildChange, BuildEventBody, BuildRef, BuilderName};
use klab_proto::status::Reason;
use klab_sched::assign_builds;
use klab_store::{BuildRecord, BuildTransition};
use tracing::{error, info, warn};

use super::super::{Engine, EngineError, decide, found};
use super::{BuilderConnection, BuilderDown, BuilderHello, attempt_of};

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

impl Engine {
    /// At the start nobody is connected: what was being built is not any more.
    pub(in crate::engine) async fn take_builds_over(&self) -> Result<(), EngineError> {
        for record in self.store.live_builds().await? {
            if let Some(at) = attempt_of(record.build.id, &record.state.value) {
                self.lose(at, "the controller was started again").await?;
            }
        }
        Ok(())
    }

    /// A builder connects.
    pub(crate) async fn connect_builder(
        &self,
        hello: BuilderHello,
    ) -> Result<BuilderConnection, EngineError> {
        let end = self.shutdown.token().child_token();
        let Some(connection) = self.builds.builders.open(&hello, end) else {
            return Err(EngineError::refused(
                Reason::AlreadyExists,
                format!(
                    "a builder {} is connected already: give this one another name",
                    hello.builder
                ),
            ));
        };
        info!(builder = %hello.builder, toolchains = ?hello.toolchains, "builder connected");
        self.builds.builders.welcome(&hello.builder);
        self.builds.assignable.notify_one();
        Ok(connection)
    }

    /// A builder went away; its attempt has ended.
    pub(crate) async fn disconnect_builder(&self, builder: &BuilderName, number: u64) {
        let work = self.builds.builders.close(builder, number);
        info!(%builder, "builder disconnected");
        let Some(at) = work else {
            return;
        };
        let reason = format!("builder {builder} went away in the middle of it");
        if let Err(error) = self.lose(at, &reason).await {
            error!(build = %at.build, %error, "failed to end the attempt of a builder that went away");
        }
    }

    /// An attempt ended without a word of its builder.
    async fn lose(&self, at: BuildRef, reason: &str) -> Result<(), EngineError> {
        let change = BuildChange::Lost {
            fence: at.fence,
            reason: reason.to_owned(),
        };
        self.end_attempt(at, change).await
    }

    pub(in crate::engine) async fn builds_loop(self: Arc<Self>) {
        loop {
            self.builds.assignable.notified().await;
            if let Err(error) = self.assign_builds().await {
                error!(%error, "failed to give builds away");
                self.clock.sleep(PAUSE_AFTER_ERROR).await;
                self.builds.assignable.notify_one();
            }
        }
    }

    async fn assign_builds(&self) -> Result<(), EngineError> {
        let _turn = self.turn().await;
        let live = self.store.live_builds().await?;
        let queued = live
            .iter()
            .filter(|record| record.state.value.fence().is_none());
        let waiting: Vec<_> = queued
            .map(|record| (record.build.id, record.build.arch))
            .collect();
        for (build, builder) in assign_builds(&waiting, &self.builds.builders.free()) {
            let record = live.iter().find(|record| record.build.id == build);
            if let Some(record) = record {
                self.give(record, &builder).await?;
            }
        }
        Ok(())
    }

    /// Gives a build to a builder.
    async fn give(&self, record: &BuildRecord, builder: &BuilderName) -> Result<(), EngineError> {
        let build = &record.build;
        let Some(tree) = found(self.store.tree(&build.tree).await)? else {
            warn!(build = %build.id, tree = %build.tree, "the tree of a build is gone");
            return Ok(());
        };
        let fence = self.store.next_fence().await?;
        let change = BuildChange::Assigned {
            builder: builder.clone(),
            fence,
        };
        let Ok(state) = record.state.value.apply(change) else {
            return Ok(());
        };
        let at = BuildRef {
            build: build.id,
            attempt: state.attempt(),
            fence,
        };
        if !self.builds.builders.begin(builder, at) {
            return Ok(());
        }
        let assigned = BuildEventBody::Assigned {
            builder: builder.clone(),
            attempt: at.attempt,
        };
        let transition = BuildTransition::new(record, state.clone(), self.now()).event(assigned);
        if let Err(error) = self.store.change_build(&transition).await {
            self.builds.builders.end_work(builder, at);
            return Err(error.into());
        }
        info!(build = %build.id, attempt = at.attempt, %builder, "build begins");
        self.feed_changed();
        let order = BuilderDown::Order {
            at,
            tree,
            build: Box::new(build.clone()),
            state,
        };
        self.builds.builders.send(at, order);
        Ok(())
    }

    /// Cancels a build: one that waits ends at once, a builder at work is told to stop. A
    /// build that has ended stays as it is.
    pub(crate) async fn cancel_build(
        &self,
        id: klab_model::BuildTaskId,
    ) -> Result<BuildRecord, EngineError> {
        let _turn = self.turn().await;
        let stopped = decide(|| self.try_cancel_build(id)).await?;
        let record = self.store.build(id).await?;
        if let Some(at) = stopped {
            let reason = "the build was cancelled".to_owned();
            let builders = &self.builds.builders;
            builders.send(at, BuilderDown::Cancel { at, reason });
        } else if !record.state.value.is_live() {
            self.build_ended(id).await;
        }
        self.feed_changed();
        Ok(record)
    }

    /// The attempt whose builder has to be told.
    async fn try_cancel_build(
        &self,
        id: klab_model::BuildTaskId,
    ) -> Result<Option<BuildRef>, EngineError> {
        let record = self.store.build(id).await?;
        let Ok(state) = record.state.value.apply(BuildChange::Cancel) else {
            return Ok(None);
        };
        let at = attempt_of(id, &state);
        let ended = state.outcome().cloned();
        let mut transition =
            BuildTransition::new(&record, state, self.now()).event(BuildEventBody::CancelRequested);
        if let Some(outcome) = ended {
            transition = transition.event(BuildEventBody::Ended { outcome });
        }
        self.store.change_build(&transition).await?;
        Ok(at)
    }
}
