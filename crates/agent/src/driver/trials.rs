//! Measuring, handing over, and the way home.

use std::time::Duration;

use klab_boot::Running;
use klab_model::{ArtifactKind, ArtifactName, EventBody, Failure, Step, TrialIndex};
use tokio::time::Instant;
use tracing::warn;

use super::Agent;
use crate::error::AgentError;
use crate::journal::Record;
use crate::transfer::{TransferError, upload};
use crate::trial::{TrialOutput, run_trial};

/// The log of the candidate, as an artifact of the run.
const KERNEL_LOG: &str = "dmesg.log";

impl Agent {
    pub(super) async fn trial(&mut self, index: TrialIndex) -> Result<(), AgentError> {
        self.tell_step(Step::Trial(index)).await?;
        let order = self.order().clone();
        let Some(trial) = order.plan.trials().find(|trial| trial.index == index) else {
            return self.fail(Failure::infrastructure(format!(
                "the plan has no trial {index}"
            )));
        };
        let limit = order.plan.trial_limit(trial.workload);
        let patience = order.plan.time_limits.no_network.as_duration();
        let deadline = Instant::now() + patience;
        if !self.agree_on_quiet(limit, Some(deadline)).await? {
            let cancelled = self
                .attempt
                .as_ref()
                .is_some_and(|attempt| attempt.cancelled);
            let silent = Failure::kernel("no network under the candidate: see console.log");
            return if cancelled { Ok(()) } else { self.fail(silent) };
        }
        self.write(Record::TrialBegan(index))?;
        self.fall_silent().await;
        let TrialOutput { result, files } = run_trial(&self.config, &order.plan, &trial);
        for (path, name, kind) in files {
            let file = self.spool.take(&path, Some(index), name, kind)?;
            self.write(Record::Spooled(file))?;
        }
        let failure = result.failure.clone();
        self.emit(EventBody::TrialEnded(result)).await?;
        self.write(Record::TrialDone(index))?;
        match failure {
            Some(failure) => self.fail(failure),
            None => Ok(()),
        }
    }

    /// Sends the spool; `false` if that was not possible before `deadline`.
    pub(super) async fn collect(&mut self, deadline: Option<Instant>) -> Result<bool, AgentError> {
        while let Some(file) = self.attempt.as_ref().and_then(|a| a.files.first()).cloned() {
            if !self.connect(deadline).await? {
                return Ok(false);
            }
            let order = self.order().clone();
            let Some(link) = &mut self.link else { continue };
            match upload(link, &order, &self.spool, &file).await {
                Ok(()) => {
                    self.write(Record::Uploaded(file.clone()))?;
                    self.spool.remove(&file)?;
                }
                Err(TransferError::Disk(error)) => {
                    warn!(%error, file = %file.name, "lost on the board's disk");
                    self.write(Record::Uploaded(file.clone()))?;
                    let reason = format!("{} was lost on the board's disk: {error}", file.name);
                    self.fail(Failure::infrastructure(reason))?;
                }
                Err(error) => {
                    warn!(%error, file = %file.name, "sending goes on");
                    self.link = None;
                    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                        return Ok(false);
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
        Ok(true)
    }

    pub(super) async fn restore(&mut self, running: &Running) -> Result<(), AgentError> {
        let limits = self.order().plan.time_limits.clone();
        let deadline = Instant::now() + limits.no_network.as_duration();
        self.tell_step(Step::Collect).await?;
        self.keep_kernel_log().await?;
        self.collect(Some(deadline)).await?;
        self.tell_step(Step::Restore).await?;
        // Without a word from the controller the way home is still the right one.
        self.agree_on_quiet(limits.boot.as_duration(), Some(deadline))
            .await?;
        self.write(Record::Restoring {
            boot_id: running.boot_id.clone(),
        })?;
        self.boot.restore().map_err(AgentError::Boot)
    }

    /// Puts the log of the kernel that runs into the spool, once: it would be another one when
    /// it is read again.
    async fn keep_kernel_log(&mut self) -> Result<(), AgentError> {
        if self.attempt.as_ref().is_some_and(|a| a.kernel_log) {
            return Ok(());
        }
        let path = self.config.state.join(KERNEL_LOG);
        match klab_measure::kernel_log(&self.config.sysroot, &path) {
            Ok(true) => {
                let name = ArtifactName::parse(KERNEL_LOG).expect("this is a plain file name");
                let kind = ArtifactKind::KernelLog;
                let file = self.spool.take(&path, None, name, kind)?;
                self.write(Record::Spooled(file))
            }
            Ok(false) => Ok(()),
            Err(error) => {
                let note = format!("the kernel's log could not be kept: {error}");
                self.emit(EventBody::Note(note)).await
            }
        }
    }

    pub(super) async fn finish(&mut self, running: &Running) -> Result<(), AgentError> {
        self.boot.disarm()?;
        let attempt = self.attempt.as_ref().expect("an attempt is at hand");
        let note = attempt.homecoming(running);
        if let (false, Some(note)) = (attempt.closing, note) {
            self.emit(EventBody::Note(note)).await?;
        }
        self.tell_step(Step::Collect).await?;
        self.collect(None).await?;
        let attempt = self.attempt.as_ref().expect("an attempt is at hand");
        if !attempt.closing {
            let body = match (&attempt.failure, attempt.cancelled) {
                (None, true) => EventBody::Cancelled,
                (failure, _) => EventBody::Finished {
                    failure: failure.clone(),
                },
            };
            self.emit(body).await?;
        }
        while self
            .attempt
            .as_ref()
            .is_some_and(|attempt| !attempt.events.is_empty())
        {
            self.connect(None).await?;
            if let Some(link) = &mut self.link {
                let word = link.receive().await;
                self.take_word(word)?;
            }
        }
        self.journal.append(&Record::Closed)?;
        self.attempt = None;
        self.journal.clear()?;
        self.spool.clear()?;
        Ok(())
    }
}
