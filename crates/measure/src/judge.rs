//! Who is to blame for how the commands of a trial ended.

use klab_model::{Failure, WorkloadName};

use crate::child::WRAPPER_FAILED;
use crate::group::Group;
use crate::{CommandEnd, Trial};

/// Why a trial did not go on to the end of its workload.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A load, by its place, ended on its own.
    Load(usize),
    /// The time is over.
    Time,
    /// The abort descriptor became readable.
    Abort,
    /// Something could not be done.
    Failed(Failure),
}

/// The commands of a trial that have been started.
#[derive(Debug)]
pub(crate) struct Commands<'a> {
    trial: &'a Trial,
    /// The loads, in their order.
    pub(crate) loads: Vec<Group>,
    /// The workload, once it has been started.
    pub(crate) work: Vec<Group>,
}

impl<'a> Commands<'a> {
    pub(crate) const fn new(trial: &'a Trial) -> Self {
        Self {
            trial,
            loads: Vec::new(),
            work: Vec::new(),
        }
    }

    /// The failure of the trial, after everything has ended. `wrapped` says that the commands
    /// were started through a wrapper, whose own failure is the lab's.
    pub(crate) fn judge(&self, stop: Option<Stop>, wrapped: bool) -> Option<Failure> {
        if wrapped && let Some(failure) = self.wrapper_failure() {
            return Some(failure);
        }
        let workload = &self.trial.workload;
        match stop {
            None => {
                let group = self.work.first()?;
                let well = group.status().is_some_and(|status| status.success());
                let reason = || format!("workload {} failed: {}", workload.name, told(group));
                (!well).then(|| Failure::workload(reason()))
            }
            Some(Stop::Load(n)) => {
                let name = self.trial.loads.get(n).map_or("?", |l| l.name.as_str());
                let end = self.loads.get(n).map_or_else(String::new, told);
                let reason = format!("load {name} ended before the workload: {end}");
                Some(Failure::workload(reason))
            }
            Some(Stop::Time) => Some(Failure::workload(format!(
                "workload {} did not end within its time limit of {}",
                workload.name, workload.time_limit
            ))),
            Some(Stop::Abort) => Some(Failure::infrastructure(
                "the trial was ended before it was over",
            )),
            Some(Stop::Failed(failure)) => Some(failure),
        }
    }

    fn wrapper_failure(&self) -> Option<Failure> {
        let failed = |group: &Group| group.status().and_then(|s| s.code()) == Some(WRAPPER_FAILED);
        let (group, name, _) = self.started().find(|(group, ..)| failed(group))?;
        let reason = format!("cannot start {name}: {}", told(group));
        Some(Failure::infrastructure(reason))
    }

    /// How the commands ended: loads in their order, then the workload.
    pub(crate) fn ends(&self) -> Vec<CommandEnd> {
        self.started()
            .map(|(group, name, command)| CommandEnd {
                name: name.clone(),
                command: command.to_vec(),
                status: group
                    .status()
                    .map_or_else(String::new, |status| status.to_string()),
            })
            .collect()
    }

    fn started(&self) -> impl Iterator<Item = (&Group, &WorkloadName, &[String])> {
        let loads = self.trial.loads.iter().map(|l| (&l.name, &*l.command));
        let workload = &self.trial.workload;
        let work = [(&workload.name, &*workload.command)];
        let loads = self.loads.iter().zip(loads);
        loads
            .chain(self.work.iter().zip(work))
            .map(|(group, (name, command))| (group, name, command))
    }
}

/// The status of a command with its last words.
fn told(group: &Group) -> String {
    let status = group
        .status()
        .map_or_else(|| "no status".to_owned(), |status| status.to_string());
    match group.last_words() {
        Some(words) => format!("{status}: {words}"),
        None => status,
    }
}
