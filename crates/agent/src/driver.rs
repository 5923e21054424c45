//! The driver: asks the step machine what comes next and does it.
//!
//! Every fact goes into the journal before it is acted on or told, so that a kill at any
//! moment leads back to the same step. One thread does everything; while a trial runs it
//! sleeps in `poll`, without a connection, and nothing else of the agent is alive.

use std::path::PathBuf;
use std::time::Duration;

use klab_boot::{BootMethod, CameBack, Expected, Running, came_back};
use klab_model::{
    AgentEvent, EventBody, Failure, InstanceId, Order, OrderKernel, Step, TrialIndex, to_micros,
};
use klab_proto::v1::session_request::Message as Up;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::attempt::{Action, Attempt, next};
use crate::config::Config;
use crate::error::AgentError;
use crate::hello::hello;
use crate::journal::{Journal, Record};
use crate::link::{Link, LinkError, Word};
use crate::outside::Outside;
use crate::spool::Spool;
use crate::transfer::{TransferError, fetch_kernel, upload};
use crate::trial::{TrialOutput, preflight, run_trial};

/// How long an installation may take before the controller gives the board up.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);
/// A board that is told to reboot this often and does not is broken.
const MAX_ARMINGS: u32 = 3;
/// Packages that stay on disk, so that the rounds of a job fetch each kernel once.
const KEPT_PACKAGES: usize = 3;

/// The agent of one board.
pub struct Agent {
    config: Config,
    outside: Box<dyn Outside>,
    instance: InstanceId,
    journal: Journal,
    attempt: Option<Attempt>,
    spool: Spool,
    boot: Box<dyn BootMethod>,
    link: Option<Link>,
    armings: u32,
    /// The step that was told last in this life of the agent.
    told: Option<Step>,
}

impl Agent {
    /// Opens the state folder and finds out where things stand.
    ///
    /// # Errors
    /// [`AgentError`] if the folder cannot be used or another agent uses it.
    pub fn open(config: Config, outside: Box<dyn Outside>) -> Result<Self, AgentError> {
        std::fs::create_dir_all(config.state.join("packages"))?;
        let (journal, records) = Journal::open(&config.state)?;
        let instance = crate::hello::instance(&config.state, outside.as_ref())?;
        let spool = Spool::open(&config.state)?;
        let boot = config.boot.build(&config.sysroot)?;
        let attempt = Attempt::replay(records);
        Ok(Self {
            config,
            outside,
            instance,
            journal,
            attempt,
            spool,
            boot,
            link: None,
            armings: 0,
            told: None,
        })
    }

    /// Works until the board goes down for a reboot.
    ///
    /// # Errors
    /// [`AgentError`] if the agent cannot go on; its supervisor starts it again.
    pub async fn run(&mut self) -> Result<(), AgentError> {
        crate::trial::clean_up(&self.config);
        loop {
            self.hear_waiting_words().await?;
            let Some(attempt) = &self.attempt else {
                self.wait_for_order().await?;
                continue;
            };
            let running = klab_boot::running(&self.config.sysroot)?;
            let action = next(attempt, &running);
            info!(?action, release = %running.release, "next");
            match action {
                Action::Fetch => self.fetch().await?,
                Action::Install => self.install().await?,
                Action::Boot => {
                    if self.boot_candidate(&running).await? {
                        return Ok(());
                    }
                }
                Action::Prove => self.prove(&running).await?,
                Action::Trial(index) => self.trial(index).await?,
                Action::Fail(failure) => self.fail(failure)?,
                Action::Restore => {
                    self.restore().await?;
                    return Ok(());
                }
                Action::Finish => self.finish().await?,
            }
        }
    }

    fn order(&self) -> &Order {
        &self
            .attempt
            .as_ref()
            .expect("steps are only taken within an attempt")
            .order
    }

    fn write(&mut self, record: Record) -> Result<(), AgentError> {
        self.journal.append(&record)?;
        if let Some(attempt) = &mut self.attempt {
            attempt.apply(record);
        }
        Ok(())
    }

    fn fail(&mut self, failure: Failure) -> Result<(), AgentError> {
        warn!(%failure, "the attempt fails");
        self.write(Record::Failed(failure))
    }

    async fn emit(&mut self, body: EventBody) -> Result<(), AgentError> {
        let Some(attempt) = &self.attempt else {
            return Ok(());
        };
        let event = AgentEvent {
            run: attempt.order.run,
            attempt: attempt.order.attempt,
            fence: attempt.order.fence,
            seq: attempt.last_seq + 1,
            board_time_us: to_micros(self.outside.now()),
            body,
        };
        self.write(Record::Event(Box::new(event.clone())))?;
        if let Some(link) = &self.link
            && link.send(Up::Event(event.into())).await.is_err()
        {
            self.link = None;
        }
        Ok(())
    }

    async fn tell_step(&mut self, step: Step) -> Result<(), AgentError> {
        if self.told == Some(step) {
            return Ok(());
        }
        self.told = Some(step);
        self.emit(EventBody::StepStarted(step)).await
    }

    /// Opens the link if there is none, again and again until `deadline`; `false` if it
    /// could not be had.
    async fn connect(&mut self, deadline: Option<Instant>) -> Result<bool, AgentError> {
        let mut wait = Duration::from_millis(250);
        while self.link.is_none() {
            match self.try_connect().await {
                Ok(link) => self.link = Some(link),
                Err(error) => {
                    warn!(%error, "no link");
                    let longest = if error.is_refusal() { 30 } else { 5 };
                    wait = (wait * 2).min(Duration::from_secs(longest));
                    let pause = wait.mul_f64(0.75 + 0.5 * self.outside.chance());
                    if deadline.is_some_and(|deadline| Instant::now() + pause > deadline) {
                        return Ok(false);
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Ok(true)
    }

    async fn try_connect(&mut self) -> Result<Link, LinkError> {
        let order = self.attempt.as_ref().map(|attempt| &attempt.order);
        let hello = hello(&self.config, self.instance, self.boot.as_ref(), order)?;
        let link = Link::open(&self.config.controller, hello).await?;
        info!(controller = %self.config.controller, "connected");
        if let Some(attempt) = &self.attempt {
            for event in &attempt.events {
                link.send(Up::Event(event.clone().into())).await?;
            }
        }
        Ok(link)
    }

    async fn hear_waiting_words(&mut self) -> Result<(), AgentError> {
        while let Some(link) = &mut self.link {
            match tokio::time::timeout(Duration::from_millis(1), link.receive()).await {
                Ok(word) => self.take_word(word)?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Writes down what the controller said; gives back a granted silence.
    fn take_word(&mut self, word: Result<Word, LinkError>) -> Result<(), AgentError> {
        let current = self.attempt.as_ref().map(|attempt| attempt.order.fence);
        match word {
            Ok(Word::Order(order)) if current.is_none() => {
                info!(run = %order.run, attempt = order.attempt, variant = %order.variant, "order");
                self.spool.clear()?;
                self.journal.append(&Record::Accepted(order.clone()))?;
                self.attempt = Some(Attempt::new(*order));
                self.armings = 0;
                self.told = None;
            }
            // The controller repeats it after the attempt at hand is closed.
            Ok(Word::Order(_)) => {}
            Ok(Word::Ack { fence, seq, .. }) if current == Some(fence) => {
                self.write(Record::Acked { seq })?;
            }
            Ok(Word::Cancel(fence)) if current == Some(fence) => {
                warn!("the controller wants the attempt ended");
                self.write(Record::CancelAsked)?;
            }
            Ok(Word::Ack { .. } | Word::Cancel(_) | Word::QuietGranted(_)) => {}
            Err(error) => {
                warn!(%error, "the link broke");
                self.link = None;
            }
        }
        Ok(())
    }

    async fn wait_for_order(&mut self) -> Result<(), AgentError> {
        self.connect(None).await?;
        if let Some(link) = &mut self.link {
            let word = link.receive().await;
            self.take_word(word)?;
        }
        Ok(())
    }

    /// Agrees on a silence of `length`; `false` if nobody could be asked before `deadline`
    /// or the attempt was cancelled meanwhile.
    async fn agree_on_quiet(
        &mut self,
        length: Duration,
        deadline: Option<Instant>,
    ) -> Result<bool, AgentError> {
        loop {
            if !self.connect(deadline).await? {
                return Ok(false);
            }
            let order = self.order().clone();
            let Some(link) = &mut self.link else { continue };
            if link.ask_quiet(&order, length).await.is_err() {
                self.link = None;
                continue;
            }
            while let Some(link) = &mut self.link {
                let patience = Duration::from_secs(10);
                match tokio::time::timeout(patience, link.receive()).await {
                    Ok(Ok(Word::QuietGranted(fence))) if fence == order.fence => {
                        let cancelled = self.attempt.as_ref().is_some_and(|a| a.cancelled);
                        return Ok(!cancelled);
                    }
                    Ok(word) => self.take_word(word)?,
                    Err(_) => self.link = None,
                }
            }
        }
    }

    /// Ends the link. The trial blocks this thread, so the connection gets a moment to close
    /// before it; an open one would be kept alive by the controller and wake the board.
    async fn fall_silent(&mut self) {
        if self.link.take().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn package(&self, kernel: &OrderKernel) -> PathBuf {
        self.config
            .state
            .join("packages")
            .join(format!("{}.tar.zst", kernel.digest))
    }

    async fn fetch(&mut self) -> Result<(), AgentError> {
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

    async fn install(&mut self) -> Result<(), AgentError> {
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
    async fn boot_candidate(&mut self, running: &Running) -> Result<bool, AgentError> {
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

    async fn prove(&mut self, running: &Running) -> Result<(), AgentError> {
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

    async fn trial(&mut self, index: TrialIndex) -> Result<(), AgentError> {
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
    async fn collect(&mut self, deadline: Option<Instant>) -> Result<bool, AgentError> {
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

    async fn restore(&mut self) -> Result<(), AgentError> {
        let limits = self.order().plan.time_limits.clone();
        let deadline = Instant::now() + limits.no_network.as_duration();
        self.tell_step(Step::Collect).await?;
        self.collect(Some(deadline)).await?;
        self.tell_step(Step::Restore).await?;
        // Without a word from the controller the way home is still the right one.
        self.agree_on_quiet(limits.boot.as_duration(), Some(deadline))
            .await?;
        self.boot.restore().map_err(AgentError::Boot)
    }

    async fn finish(&mut self) -> Result<(), AgentError> {
        self.boot.disarm()?;
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
