//! The driver: asks the step machine what comes next and does it.
//!
//! Every fact goes into the journal before it is acted on or told, so that a kill at any
//! moment leads back to the same step. One thread does everything; while a trial runs it
//! sleeps in `poll`, without a connection, and nothing else of the agent is alive.
//!
//! `session` talks to the controller, `candidate` leads from an order to a proved kernel,
//! `trials` measures and leads home.

use std::time::Duration;

use klab_boot::BootMethod;
use klab_model::{AgentEvent, EventBody, Failure, InstanceId, Order, Step, to_micros};
use klab_proto::v1::session_request::Message as Up;
use klab_task::Backoff;
use tracing::{info, warn};

use crate::attempt::{Action, Attempt, next};
use crate::config::Config;
use crate::error::AgentError;
use crate::journal::{Journal, Record};
use crate::link::Link;
use crate::outside::Outside;
use crate::spool::Spool;

mod candidate;
mod session;
mod trials;

/// The pauses between tries to reach the controller.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The agent of one board.
pub struct Agent {
    config: Config,
    outside: Outside,
    instance: InstanceId,
    journal: Journal,
    attempt: Option<Attempt>,
    spool: Spool,
    boot: Box<dyn BootMethod>,
    link: Option<Link>,
    backoff: Backoff,
    armings: u32,
    /// The step that was told last in this life of the agent.
    told: Option<Step>,
}

impl Agent {
    /// Opens the state folder and finds out where things stand.
    ///
    /// # Errors
    /// [`AgentError`] if the folder cannot be used or another agent uses it.
    pub fn open(config: Config, outside: Outside) -> Result<Self, AgentError> {
        std::fs::create_dir_all(config.state.join("packages"))?;
        let (journal, records) = Journal::open(&config.state)?;
        let instance = crate::hello::instance(&config.state, &outside)?;
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
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
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
                    self.restore(&running).await?;
                    return Ok(());
                }
                Action::Finish => self.finish(&running).await?,
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
            board_time_us: to_micros(self.outside.clock.now()),
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
}
