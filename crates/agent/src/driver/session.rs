//! Talking to the controller, and falling silent.

use std::time::Duration;

use klab_proto::v1;
use klab_proto::v1::session_request::Message as Up;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Agent;
use crate::attempt::Attempt;
use crate::error::AgentError;
use crate::hello::{hello, known_good_config};
use crate::journal::Record;
use crate::link::{Link, LinkError, Word};

/// The pause after a refusal: trying again soon is of no use.
const REFUSED: Duration = Duration::from_secs(30);
/// How long a connection may take to close before a trial begins all the same.
const CLOSING: Duration = Duration::from_secs(2);

impl Agent {
    /// Opens the link if there is none, again and again until `deadline`; `false` if it
    /// could not be had.
    pub(super) async fn connect(&mut self, deadline: Option<Instant>) -> Result<bool, AgentError> {
        while self.link.is_none() {
            match self.try_connect().await {
                Ok(link) => {
                    self.link = Some(link);
                    self.backoff.reset();
                }
                Err(error) => {
                    let mut pause = self.backoff.next((self.outside.random)());
                    if error.is_refusal() {
                        pause = pause.max(REFUSED);
                    }
                    warn!(%error, ?pause, "no link");
                    if deadline.is_some_and(|deadline| Instant::now() + pause > deadline) {
                        return Ok(false);
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Ok(true)
    }

    pub(super) async fn try_connect(&mut self) -> Result<Link, LinkError> {
        let order = self.attempt.as_ref().map(|attempt| &attempt.order);
        let hello = hello(&self.config, self.instance, self.boot.as_ref(), order)?;
        let link = Link::open(&self.config.controller, self.outside.dial.clone(), hello).await?;
        info!(controller = %self.config.controller, "connected");
        if link.wants_config() {
            self.send_config(&link).await?;
        }
        if let Some(attempt) = &self.attempt {
            for event in &attempt.events {
                link.send(Up::Event(event.clone().into())).await?;
            }
        }
        Ok(link)
    }

    async fn send_config(&self, link: &Link) -> Result<(), LinkError> {
        let order = self.attempt.as_ref().map(|attempt| &attempt.order);
        let Some(content) = known_good_config(&self.config, order) else {
            return Ok(());
        };
        let facts = klab_measure::board_facts(&self.config.sysroot, "", Vec::new());
        let release = facts.release;
        let content = content.into();
        let file = v1::KernelConfigFile { release, content };
        link.send(Up::KernelConfig(file)).await
    }

    pub(super) async fn hear_waiting_words(&mut self) -> Result<(), AgentError> {
        while let Some(link) = &mut self.link {
            match tokio::time::timeout(Duration::from_millis(1), link.receive()).await {
                Ok(word) => self.take_word(word)?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Writes down what the controller said; gives back a granted silence.
    pub(super) fn take_word(&mut self, word: Result<Word, LinkError>) -> Result<(), AgentError> {
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

    pub(super) async fn wait_for_order(&mut self) -> Result<(), AgentError> {
        self.connect(None).await?;
        if let Some(link) = &mut self.link {
            let word = link.receive().await;
            self.take_word(word)?;
        }
        Ok(())
    }

    /// Agrees on a silence of `length`; `false` if nobody could be asked before `deadline`
    /// or the attempt was cancelled meanwhile.
    pub(super) async fn agree_on_quiet(
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

    /// Ends the link. The trial blocks this thread, so the connection is closed before it; an
    /// open one would be kept alive by the controller and wake the board.
    pub(super) async fn fall_silent(&mut self) {
        if let Some(link) = self.link.take() {
            link.close(CLOSING).await;
        }
    }
}
