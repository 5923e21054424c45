//! What a builder says about its build.

use klab_model::{
    BuildChange, BuildEventBody, BuildPhase, BuildRef, BuildReport, BuildState, BuildTaskId,
    BuildTransitionError, BuilderName, Digest, Failure, Kernel, ObjectId, TargetState,
};
use klab_proto::status::Reason;
use klab_store::{BuildRecord, BuildTransition};
use tracing::{info, warn};

use super::super::{Engine, EngineError, decide, found};
use super::claims::Claim;
use super::{Asked, BuilderDown};

impl Engine {
    /// A builder said something. A refusal ends its connection.
    pub(crate) async fn build_report(
        &self,
        builder: &BuilderName,
        at: BuildRef,
        report: BuildReport,
    ) -> Result<(), EngineError> {
        let record = self.in_charge(builder, at).await?;
        match report {
            BuildReport::Log(bytes) => return self.builds.logs.append(at.build, bytes).await,
            BuildReport::Progress(progress) => {
                self.builds.progress().insert(at.build, progress);
            }
            BuildReport::Note(text) => {
                self.tell(at, |_| BuildEventBody::Note { text: text.clone() })
                    .await?;
            }
            BuildReport::BaseFound(commit) => self.base_found(at, commit).await?,
            BuildReport::TargetStarted { index } => {
                let target = record.build.targets.get(index as usize);
                let variant = target.ok_or_else(no_target)?.variant.clone();
                let started = || BuildEventBody::TargetStarted {
                    variant: variant.clone(),
                };
                self.tell(at, |_| started()).await?;
            }
            BuildReport::TargetKey { index, key } => {
                return self.answer(Asked { at, index, key }).await;
            }
            BuildReport::TargetBuilt {
                index,
                key,
                duration_ms,
            } => {
                self.kernel_arrived(&record, index).await?;
                let state = TargetState::Built { cached: false };
                let asked = Asked { at, index, key };
                self.target_ended(asked, state, duration_ms).await?;
            }
            BuildReport::TargetFailed {
                index,
                reason,
                duration_ms,
            } => {
                let state = TargetState::Failed(Failure::kernel(reason));
                self.target_failed(at, index, state, duration_ms).await?;
            }
            BuildReport::Finished { failure } => {
                let change = BuildChange::Finished {
                    fence: at.fence,
                    failure,
                };
                return self.end_work(builder, at, change).await;
            }
            BuildReport::Stopped => {
                let change = BuildChange::Stopped { fence: at.fence };
                return self.end_work(builder, at, change).await;
            }
        }
        self.feed_changed();
        Ok(())
    }

    /// The build, if this builder's attempt is in charge of it.
    async fn in_charge(
        &self,
        builder: &BuilderName,
        at: BuildRef,
    ) -> Result<BuildRecord, EngineError> {
        let record = self.store.build(at.build).await?;
        let state = &record.state.value;
        if state.fence() == Some(at.fence) && state.builder() == Some(builder) {
            return Ok(record);
        }
        Err(EngineError::refused(
            Reason::StaleAttempt,
            format!(
                "attempt {} of build {} is no longer in charge: stop it",
                at.attempt, at.build
            ),
        ))
    }

    /// Adds to the feed of a build without changing it.
    async fn tell(
        &self,
        at: BuildRef,
        body: impl Fn(&BuildRecord) -> BuildEventBody,
    ) -> Result<(), EngineError> {
        decide(|| async {
            let record = self.store.build(at.build).await?;
            let state = record.state.value.clone();
            let transition = BuildTransition::new(&record, state, self.now()).event(body(&record));
            self.store.change_build(&transition).await?;
            Ok(())
        })
        .await
    }

    /// The base is the same for all attempts, so the first word about it stands.
    async fn base_found(&self, at: BuildRef, commit: ObjectId) -> Result<(), EngineError> {
        decide(|| async {
            let record = self.store.build(at.build).await?;
            let before = &record.state.value;
            let change = BuildChange::Base {
                fence: at.fence,
                commit: commit.clone(),
            };
            let state = before.apply(change).map_err(stale)?;
            if state == *before {
                return Ok(());
            }
            let event = BuildEventBody::BaseFound {
                commit: commit.clone(),
            };
            let transition = BuildTransition::new(&record, state, self.now()).event(event);
            self.store.change_build(&transition).await?;
            Ok(())
        })
        .await
    }

    /// Says what to do about a target, now or when the attempt that builds the same is done.
    pub(super) async fn answer(&self, asked: Asked) -> Result<(), EngineError> {
        // Claimed before it is looked up: what another one builds meanwhile is not missed.
        let claim = self.builds.claims().ask(asked);
        if claim == Claim::Granted {
            let known = self.reuse(asked).await?;
            self.verdict(asked, known);
        }
        Ok(())
    }

    fn verdict(&self, asked: Asked, known: bool) {
        let Asked { at, index, .. } = asked;
        let builders = &self.builds.builders;
        builders.send(at, BuilderDown::Verdict { at, index, known });
    }

    /// Answers those who waited for an attempt that is done with a key.
    async fn answer_all(&self, waited: Vec<Asked>) -> Result<(), EngineError> {
        for asked in waited {
            self.answer(asked).await?;
        }
        Ok(())
    }

    /// Adds the kernel that the same inputs gave before under the name of this target.
    async fn reuse(&self, asked: Asked) -> Result<bool, EngineError> {
        let Some(name) = self.store.kernel_of_key(&asked.key).await? else {
            return Ok(false);
        };
        let Some(known) = found(self.store.kernel(&name).await)? else {
            return Ok(false);
        };
        let record = self.store.build(asked.at.build).await?;
        let target = record.build.targets.get(asked.index as usize);
        let kernel = Kernel {
            name: target.ok_or_else(no_target)?.kernel.clone(),
            offer: known.offer,
            added_at: self.now(),
        };
        self.store.add_kernel(&kernel).await?;
        let state = TargetState::Built { cached: true };
        self.target_ended(asked, state, 0).await?;
        self.feed_changed();
        Ok(true)
    }

    /// That the kernel of a target is there, and of the right kind.
    async fn kernel_arrived(&self, record: &BuildRecord, index: u32) -> Result<(), EngineError> {
        let target = record.build.targets.get(index as usize);
        let name = &target.ok_or_else(no_target)?.kernel;
        let arch = record.build.arch;
        match found(self.store.kernel(name).await)? {
            Some(kernel) if kernel.offer.arch == arch => Ok(()),
            Some(kernel) => Err(EngineError::field(
                "target_built.index",
                format!(
                    "kernel {name} is {}, {arch} was asked for",
                    kernel.offer.arch
                ),
            )),
            None => Err(EngineError::field(
                "target_built.index",
                format!("kernel {name} was not added"),
            )),
        }
    }

    async fn target_ended(
        &self,
        asked: Asked,
        state: TargetState,
        duration_ms: u64,
    ) -> Result<(), EngineError> {
        let Asked { at, index, key } = asked;
        self.save_target(at, index, &state, duration_ms, Some(key))
            .await?;
        let waited = self.builds.claims().release(at, &key);
        self.assignable.notify_one();
        // Those who waited are other attempts: this cannot go in circles.
        Box::pin(self.answer_all(waited)).await
    }

    async fn target_failed(
        &self,
        at: BuildRef,
        index: u32,
        state: TargetState,
        duration_ms: u64,
    ) -> Result<(), EngineError> {
        self.save_target(at, index, &state, duration_ms, None)
            .await?;
        self.assignable.notify_one();
        Ok(())
    }

    async fn save_target(
        &self,
        at: BuildRef,
        index: u32,
        target_state: &TargetState,
        duration_ms: u64,
        key: Option<Digest>,
    ) -> Result<(), EngineError> {
        decide(|| async {
            let record = self.store.build(at.build).await?;
            let target = record.build.targets.get(index as usize);
            let target = target.ok_or_else(no_target)?;
            let change = BuildChange::Target {
                fence: at.fence,
                index,
                state: target_state.clone(),
            };
            let before = &record.state.value;
            let state = before.apply(change).map_err(stale)?;
            if state == *before {
                return Ok(());
            }
            let mut transition = BuildTransition::new(&record, state, self.now()).event(
                BuildEventBody::TargetEnded {
                    variant: target.variant.clone(),
                    state: target_state.clone(),
                    duration_ms,
                },
            );
            if let Some(key) = key {
                transition = transition.key(key, target.kernel.clone());
            }
            self.store.change_build(&transition).await?;
            Ok(())
        })
        .await
    }

    /// The builder of an attempt has nothing to do any more.
    async fn end_work(
        &self,
        builder: &BuilderName,
        at: BuildRef,
        change: BuildChange,
    ) -> Result<(), EngineError> {
        self.end_attempt(at, change).await?;
        self.builds.builders.end_work(builder, at);
        self.builds.assignable.notify_one();
        Ok(())
    }

    /// An attempt is over, and maybe its build.
    pub(super) async fn end_attempt(
        &self,
        at: BuildRef,
        change: BuildChange,
    ) -> Result<(), EngineError> {
        let ended = decide(|| self.try_end_attempt(at, &change)).await?;
        self.builds.progress().remove(&at.build);
        if ended {
            self.build_ended(at.build).await;
        }
        self.feed_changed();
        let waited = self.builds.claims().end(at);
        self.answer_all(waited).await?;
        self.builds.assignable.notify_one();
        Ok(())
    }

    /// Whether the build has ended with the attempt.
    async fn try_end_attempt(
        &self,
        at: BuildRef,
        change: &BuildChange,
    ) -> Result<bool, EngineError> {
        let record = self.store.build(at.build).await?;
        let Ok(state) = record.state.value.apply(change.clone()) else {
            return Ok(false);
        };
        let mut transition = BuildTransition::new(&record, state.clone(), self.now());
        if let Some(failure) = failure_of(change, &state) {
            transition = transition.event(BuildEventBody::AttemptFailed {
                attempt: at.attempt,
                failure,
                retry: matches!(state.phase, BuildPhase::Queued { .. }),
            });
        }
        let outcome = state.outcome().cloned();
        if let Some(outcome) = outcome.clone() {
            transition = transition.event(BuildEventBody::Ended { outcome });
        }
        self.store.change_build(&transition).await?;
        info!(build = %at.build, attempt = at.attempt, state = state.as_str(), "attempt ended");
        Ok(outcome.is_some())
    }

    /// What is left to do for a build that has ended: its log, and jobs that waited.
    pub(super) async fn build_ended(&self, build: BuildTaskId) {
        if let Err(error) = self.keep_build_log(build).await {
            // It stays readable where it is.
            warn!(%build, %error, "failed to keep the log of a build");
        }
        self.assignable.notify_one();
    }
}

/// Why the attempt failed, where that is not what the targets say.
fn failure_of(change: &BuildChange, after: &BuildState) -> Option<Failure> {
    match (change, &after.phase) {
        (BuildChange::Lost { reason, .. }, _) => Some(Failure::infrastructure(reason.clone())),
        (BuildChange::Finished { failure: None, .. }, BuildPhase::Queued { .. }) => Some(
            Failure::infrastructure("the builder stopped before it came to every target"),
        ),
        (BuildChange::Finished { failure, .. }, _) => failure.clone(),
        _ => None,
    }
}

fn stale(error: BuildTransitionError) -> EngineError {
    EngineError::refused(Reason::StaleAttempt, error.to_string())
}

fn no_target() -> EngineError {
    EngineError::field("index", "the build has no such target")
}
