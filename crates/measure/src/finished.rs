//! What is left of a trial: its result, its files, and `facts.json`.

use std::fs;
use std::time::Duration;

use klab_model::{Failure, Perturbation, TrialFacts, TrialIndex, TrialResult, WorkloadName};
use serde::{Deserialize, Serialize};

use crate::{ProducedFile, TraceCapture, Trial, collect};

/// How a command of a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The name of the workload or load.
    pub name: WorkloadName,
    /// Program and arguments as they stand in the plan.
    pub command: Vec<String>,
    /// The raw status, such as `exit status: 0` or `signal: 2 (SIGINT)`.
    pub status: String,
}

/// A trial that is over; everything is undone.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it failed; `None` if it ended well.
    pub failure: Option<Failure>,
    /// Whether it was ended through the abort descriptor.
    pub aborted: bool,
    /// From start to end of the workload; zero if it did not start.
    pub duration: Duration,
    /// What this process cost while the workload ran.
    pub perturbation: Perturbation,
    /// The environment, with notes about what was missing or changed.
    pub facts: TrialFacts,
    /// What the tracer recorded.
    pub trace: Option<TraceCapture>,
    /// How the commands ended: loads in their order, then the workload.
    pub commands: Vec<CommandEnd>,
    /// What was left. Not synced yet.
    pub files: Vec<ProducedFile>,
}

impl Finished {
    /// The result as it goes to the controller.
    #[must_use]
    pub fn result(&self, index: TrialIndex, workload: WorkloadName) -> TrialResult {
        TrialResult {
            index,
            workload,
            failure: self.failure.clone(),
            duration_ms: millis(self.duration),
            perturbation: self.perturbation,
            facts: self.facts.clone(),
        }
    }
}

/// The content of `facts.json`.
#[derive(Serialize)]
struct Record<'a> {
    facts: &'a TrialFacts,
    duration_ms: u64,
    perturbation: Perturbation,
    trace: &'a Option<TraceCapture>,
    commands: &'a [CommandEnd],
}

/// What happened while commands ran.
#[derive(Default)]
pub(crate) struct Execution {
    pub(crate) failure: Option<Failure>,
    pub(crate) aborted: bool,
    pub(crate) duration: Duration,
    pub(crate) perturbation: Perturbation,
    pub(crate) commands: Vec<CommandEnd>,
}

impl Execution {
    /// Writes `facts.json` and looks for the files of the trial, which is over.
    pub(crate) fn finish(
        self,
        trial: &Trial,
        facts: TrialFacts,
        trace: Option<TraceCapture>,
    ) -> Finished {
        let mut failure = self.failure;
        let record = Record {
            facts: &facts,
            duration_ms: millis(self.duration),
            perturbation: self.perturbation,
            trace: &trace,
            commands: &self.commands,
        };
        if let Err(unwritten) = record.write(trial) {
            failure.get_or_insert(unwritten);
        }
        let collected = collect::collect(&trial.folder, &trial.workload, &trial.loads);
        if let Some((owner, file)) = collected.missing.first() {
            let reason = format!(
                "{owner} left no file {file}: its command must write {{out}}/{file}, see the plan"
            );
            failure.get_or_insert(Failure::workload(reason));
        }
        Finished {
            failure,
            aborted: self.aborted,
            duration: self.duration,
            perturbation: self.perturbation,
            facts,
            trace,
            commands: self.commands,
            files: collected.files,
        }
    }
}

impl Record<'_> {
    fn write(&self, trial: &Trial) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(self)
            .expect("a record has text keys and no floats, so it is always JSON");
        let folder = &trial.folder;
        fs::write(folder.join(collect::FACTS), json).map_err(|error| {
            Failure::infrastructure(format!(
                "cannot write {} in {}: {error}",
                collect::FACTS,
                folder.display()
            ))
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
