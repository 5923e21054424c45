//! The attempt at hand, as the journal tells it, and what comes next.
//!
//! [`Attempt`] is the fold of the journal's records. [`next`] is the whole step machine:
//! a pure function of that fold and of what runs now. There is no second path for
//! "resume": after a reboot, a crash or a power cut the same question gets its answer.

use klab_boot::{BootMarker, Installed, Running};
use klab_model::{AgentEvent, BuildId, EventBody, Failure, Order, TrialIndex};
use serde::{Deserialize, Serialize};

use crate::journal::Record;
use crate::spool::SpoolFile;

/// The kernel that ran when the one boot was armed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownGood {
    /// Its boot id.
    pub boot_id: String,
    /// Its release.
    pub release: String,
    /// Its build-id.
    pub build_id: Option<BuildId>,
}

impl KnownGood {
    /// The kernel that runs now.
    pub fn of(running: &Running) -> Self {
        Self {
            boot_id: running.boot_id.clone(),
            release: running.release.clone(),
            build_id: running.build_id.clone(),
        }
    }

    fn is_like(&self, running: &Running) -> bool {
        self.release == running.release && self.build_id == running.build_id
    }
}

/// What the journal says about the attempt at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What was ordered.
    pub order: Order,
    /// Whether the package is complete.
    pub fetched: bool,
    /// The kernel as the boot method installed it.
    pub installed: Option<Installed>,
    /// What ran when the one boot was armed.
    pub armed: Option<KnownGood>,
    /// The boot id under which the candidate was proved.
    pub proved: Option<String>,
    /// Trials that are over.
    pub done: Vec<TrialIndex>,
    /// Files that wait for the controller.
    pub files: Vec<SpoolFile>,
    /// Events that wait for the controller's acknowledgement, oldest first.
    pub events: Vec<AgentEvent>,
    /// The number of the last event.
    pub last_seq: u64,
    /// Why the attempt cannot go on.
    pub failure: Option<Failure>,
    /// Whether the controller wants it ended.
    pub cancelled: bool,
    /// Whether the last word was raised.
    pub closing: bool,
}

impl Attempt {
    /// The attempt in the journal, if one is open.
    pub fn replay(records: Vec<Record>) -> Option<Attempt> {
        let mut attempt = None;
        for record in records {
            match (record, &mut attempt) {
                (Record::Accepted(order), _) => attempt = Some(Attempt::new(*order)),
                (Record::Closed, _) => attempt = None,
                (record, Some(attempt)) => attempt.apply(record),
                (_, None) => {}
            }
        }
        attempt
    }

    /// An attempt that has just been accepted.
    pub fn new(order: Order) -> Attempt {
        Attempt {
            order,
            fetched: false,
            installed: None,
            armed: None,
            proved: None,
            done: Vec::new(),
            files: Vec::new(),
            events: Vec::new(),
            last_seq: 0,
            failure: None,
            cancelled: false,
            closing: false,
        }
    }

    /// Takes one record in.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Fetched => self.fetched = true,
            Record::Installed(installed) => self.installed = Some(*installed),
            Record::Armed(known_good) => self.armed = Some(known_good),
            Record::Proved { boot_id } => self.proved = Some(boot_id),
            Record::TrialDone(index) if !self.done.contains(&index) => self.done.push(index),
            Record::Spooled(file) => {
                // A repeated trial writes the same names again; the newer file counts.
                self.files
                    .retain(|old| old.trial != file.trial || old.name != file.name);
                self.files.push(file);
            }
            Record::Uploaded(file) => self.files.retain(|waiting| *waiting != file),
            Record::Event(event) => {
                self.last_seq = self.last_seq.max(event.seq);
                self.closing |= matches!(
                    event.body,
                    EventBody::Finished { .. } | EventBody::Cancelled
                );
                self.events.push(*event);
            }
            Record::Acked { seq } => self.events.retain(|event| event.seq > seq),
            // The first failure is the cause; what follows it is a consequence.
            Record::Failed(failure) => {
                self.failure.get_or_insert(failure);
            }
            Record::CancelAsked => self.cancelled = true,
            Record::TrialBegan(_) | Record::TrialDone(_) | Record::Accepted(_) | Record::Closed => {
            }
        }
    }

    /// The mark that the candidate's command line carries.
    pub fn marker(&self) -> BootMarker {
        BootMarker {
            run: self.order.run,
            attempt: self.order.attempt,
        }
    }

    /// Whether something else than the known-good kernel runs because of this attempt.
    pub fn is_away(&self, running: &Running) -> bool {
        let Some(known_good) = &self.armed else {
            return false;
        };
        running.boot_id != known_good.boot_id
            && (running.marker.is_some()
                || self.proved.as_ref() == Some(&running.boot_id)
                || !known_good.is_like(running))
    }

    /// The next trial that is not over.
    fn next_trial(&self) -> Option<TrialIndex> {
        let mut trials = self.order.plan.trials();
        trials
            .find(|trial| !self.done.contains(&trial.index))
            .map(|trial| trial.index)
    }
}

/// What the agent does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Check the board, then fetch the package.
    Fetch,
    /// Install the kernel.
    Install,
    /// Arm the one boot and reboot.
    Boot,
    /// Something else than before the reboot runs: compare what runs with what was ordered.
    Prove,
    /// Execute a trial.
    Trial(TrialIndex),
    /// The attempt cannot go on for this reason; write it down.
    Fail(Failure),
    /// Send what waits, then return to the known-good kernel.
    Restore,
    /// The known-good kernel runs: send what waits and say the last word.
    Finish,
}

/// The step machine.
pub fn next(attempt: &Attempt, running: &Running) -> Action {
    if attempt.failure.is_some() || attempt.cancelled || attempt.next_trial().is_none() {
        return if attempt.is_away(running) {
            Action::Restore
        } else {
            Action::Finish
        };
    }
    if let Some(proved) = &attempt.proved {
        return match attempt.next_trial() {
            Some(index) if *proved == running.boot_id => Action::Trial(index),
            _ => Action::Fail(Failure::kernel(
                "the board rebooted by itself under the candidate: see console.log",
            )),
        };
    }
    match &attempt.armed {
        Some(known_good) if known_good.boot_id != running.boot_id => Action::Prove,
        None if !attempt.fetched => Action::Fetch,
        None if attempt.installed.is_none() => Action::Install,
        _ => Action::Boot,
    }
}
