//! From an order to a candidate kernel that is proved to run.

use std::path::PathBuf;
use std::time::Duration;

use klab_boot::{CameBack, Expected, Running, came_back};
use klab_model::{EventBody, Failure, OrderKernel, Step};
use tracing::warn;

use super::Agent;
use crate::error::AgentError;
use crate::journal::Record;
use crate::transfer::{TransferError, fetch_kernel};
use crate::trial::preflight;

/// How long an installation may take before the controller gives the board up.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);
/// A board that is told to reboot this often and does not is broken.
const MAX_ARMINGS: u32 = 3;
/// Packages that stay on disk, so that the rounds of a job fetch each kernel once.
const KEPT_PACKAGES: usize = 3;

impl Agent {
    pub(super) fn package(&self, kernel: &OrderKernel) -> PathBuf {
        self.config
            .state
            .join("packages")
            .join(format!("{}.tar.zst", kernel.digest))
    }

    pub(super) async fn fetch(&mut self) -> Result<(), AgentError> {
        self.tell_step(Step::Fetch).await?;
        if let Err(failure) = preflight(&self.config, self.boot.as_ref(), self.order()) {
            return self.fail(failure);
        }
        let kernel = self.order().kernel.clone();
        let path = self.package(&kernel);
        crate::packages::prune(&self.config.state.join("packages"), &path, KEPT_PACKAGES)?;
        self.connect(None).await?;
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        match fetch_kernel(link, &kernel, &path).await {
            Ok(()) => self.write(Record::Fetched),
            Err(TransferError::Disk(error)) => self.fail(Failure::infrastructure(format!(
                "cannot keep the kernel package on the board: {error}"
            ))),
            Err(error) => {
                warn!(%error, "fetching goes on");
                self.link = None;
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(())
            }
        }
    }

    pub(super) async fn install(&mut self) -> Result<(), AgentError> {
        self.tell_step(Step::Install).await?;
        if !self.agree_on_quiet(INSTALL_LIMIT, None).await? {
            return Ok(());
        }
        let kernel = self.order().kernel.clone();
        match self.boot.install(&kernel, &self.package(&kernel)) {
            Ok(installed) => {
                for note in &installed.notes {
                    self.emit(EventBody::Note(note.clone())).await?;
                }
                self.write(Record::Installed(Box::new(installed)))
            }
            Err(error) => self.fail(Failure::infrastructure(format!(
                "cannot install kernel {}: {error}",
                kernel.name
            ))),
        }
    }

    /// `true` if the board goes down.
    pub(super) async fn boot_candidate(&mut self, running: &Running) -> Result<bool, AgentError> {
        self.tell_step(Step::Boot).await?;
        if self.armings == MAX_ARMINGS {
            self.fail(Failure::infrastructure(
                "the board does not reboot when it is told to",
            ))?;
            return Ok(false);
        }
        let limit = self.order().plan.time_limits.boot.as_duration();
        if !self.agree_on_quiet(limit, None).await? {
            return Ok(false);
        }
        self.armings += 1;
        self.write(Record::Armed(Box::new(running.clone())))?;
        let attempt = self.attempt.as_ref().expect("an attempt is at hand");
        let installed = attempt
            .installed
            .as_ref()
            .expect("armed only after installing");
        let armed = self.boot.arm_once(installed, &attempt.marker());
        match armed.and_then(|()| self.boot.reboot()) {
            Ok(()) => Ok(true),
            Err(error) => {
                let reason = format!("cannot boot the candidate: {error}");
                self.fail(Failure::infrastructure(reason))?;
                Ok(false)
            }
        }
    }

    pub(super) async fn prove(&mut self, running: &Running) -> Result<(), AgentError> {
        self.tell_step(Step::Prove).await?;
        let attempt = self.attempt.as_ref().expect("an attempt is at hand");
        let (Some(known_good), Some(installed)) = (&attempt.armed, &attempt.installed) else {
            return self.fail(Failure::infrastructure("the journal lacks what was armed"));
        };
        let marks = self.boot.capabilities().marks_cmdline;
        let expected = Expected {
            kernel: &attempt.order.kernel,
            image_digest: installed.image_digest,
            boot_id_before: &known_good.boot_id,
            marker: marks.then(|| attempt.marker()),
        };
        let settle = attempt.order.plan.time_limits.settle.as_duration();
        match came_back(&expected, known_good, running) {
            CameBack::Candidate(identity) => {
                let boot_id = identity.boot_id.clone();
                self.emit(EventBody::Proved(identity)).await?;
                self.write(Record::Proved { boot_id })?;
                tokio::time::sleep(settle).await;
                Ok(())
            }
            other => {
                let unclear = || Failure::kernel("the candidate did not come up");
                self.fail(other.failure().unwrap_or_else(unclear))
            }
        }
    }
}
