//! One trial: prepared while the agent may still talk, run in silence, finished.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use klab_model::{
    Failure, IfMissing, Load, Perturbation, Plan, TracePlan, TrialFacts, TrialIndex, TrialResult,
    Workload, WorkloadName,
};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::child::WRAPPER_FAILED;
use crate::facts::Condition;
use crate::group::{Group, Start, end, wait_any};
use crate::perturb::Window;
use crate::preflight::package_of;
use crate::tracer::Tracer;
use crate::{
    Cgroups, Host, MeasureError, ProducedFile, TraceCapture, TracerState, clean, collect,
    find_program, tracer_state, trial_facts,
};

/// How long loads may take to write their results after SIGINT.
const LOAD_GRACE: Duration = Duration::from_secs(10);
/// How long a workload may take to end after SIGTERM.
const WORK_GRACE: Duration = Duration::from_secs(2);

/// What one trial executes.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The trial folder, `{out}` in commands. Made new; one left by an earlier try is replaced.
    pub folder: PathBuf,
    /// What is measured.
    pub workload: Workload,
    /// What runs beside it.
    pub loads: Vec<Load>,
    /// The tracer.
    pub trace: Option<TracePlan>,
}

impl Trial {
    /// The trial of a plan's workload, in `folder`.
    #[must_use]
    pub fn new(plan: &Plan, workload: &Workload, folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            workload: workload.clone(),
            loads: plan.loads.clone(),
            trace: plan.trace.clone(),
        }
    }

    /// Makes the folder and the cgroups, records the environment and sets the tracer up.
    ///
    /// # Errors
    /// [`MeasureError`]; nothing is left running or set.
    pub fn prepare(self, host: &Host) -> Result<Prepared, MeasureError> {
        self.check_programs()?;
        self.make_folder(host)?;
        let mut facts = trial_facts(&host.sysroot);
        let cgroups = match &host.cgroup_root {
            None => Err("no cgroups v2: processes are kept together by process groups".to_owned()),
            Some(root) => Cgroups::make(root).map_err(|error| {
                format!("cgroups cannot be used, process groups must do: {error}")
            }),
        };
        let cgroups = cgroups.map_err(|note| facts.notes.push(note)).ok();
        let tracer = match &self.trace {
            Some(plan) => set_up_tracer(host, plan, &mut facts)?,
            None => None,
        };
        let before = Condition::read(&host.sysroot);
        Ok(Prepared {
            trial: self,
            host: host.clone(),
            facts,
            cgroups,
            tracer,
            before,
        })
    }

    fn check_programs(&self) -> Result<(), MeasureError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let commands = self.loads.iter().map(|load| &load.command);
        for command in commands.chain([&self.workload.command]) {
            let program = command.first().map_or("", String::as_str);
            if find_program(program, &path, Path::new("/")).is_none() {
                let package = package_of(program);
                return Err(MeasureError::MissingProgram {
                    program: program.to_owned(),
                    package,
                });
            }
        }
        Ok(())
    }

    fn make_folder(&self, host: &Host) -> Result<(), MeasureError> {
        let folder = &self.folder;
        if clean::is_trial(folder) {
            fs::remove_dir_all(folder).map_err(MeasureError::io("remove", folder))?;
        }
        let in_use = || io::Error::new(io::ErrorKind::AlreadyExists, "it is not empty");
        let make = || -> io::Result<()> {
            fs::create_dir_all(folder)?;
            if fs::read_dir(folder)?.next().is_some() {
                return Err(in_use());
            }
            clean::begin(folder, &host.boot_id())
        };
        make().map_err(MeasureError::io("make the trial folder", folder))
    }
}

fn set_up_tracer(
    host: &Host,
    plan: &TracePlan,
    facts: &mut TrialFacts,
) -> Result<Option<Tracer>, MeasureError> {
    match (tracer_state(&host.tracefs, &plan.tracer), plan.if_missing) {
        (TracerState::Available, _) => Tracer::set_up(&host.tracefs, plan).map(Some),
        (state, IfMissing::Note) => {
            facts
                .notes
                .push(format!("not traced with {}: {state}", plan.tracer));
            Ok(None)
        }
        (state, IfMissing::Fail) => Err(MeasureError::MissingTracer {
            tracer: plan.tracer.clone(),
            state: state.to_string(),
        }),
    }
}

/// A trial that can start. Dropping it undoes the preparation.
#[derive(Debug)]
pub struct Prepared {
    trial: Trial,
    host: Host,
    facts: TrialFacts,
    cgroups: Option<Cgroups>,
    tracer: Option<Tracer>,
    before: Condition,
}

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
struct Execution {
    failure: Option<Failure>,
    aborted: bool,
    duration: Duration,
    perturbation: Perturbation,
    commands: Vec<CommandEnd>,
}

/// Why the waiting ended.
enum Wake {
    Workload,
    Load(usize),
    Abort,
    Time,
}

impl Prepared {
    /// What could not be had so far, one sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.facts.notes
    }

    /// Runs the trial on this thread and blocks until it is over, at most the lead of the
    /// loads, the time limit of the workload and some seconds for ending them.
    ///
    /// `abort` ends the trial as soon as it is readable.
    #[must_use]
    pub fn run(mut self, abort: Option<BorrowedFd<'_>>) -> Finished {
        let mut execution = self.execute(abort);
        let trace = self.take_trace(&mut execution);
        if let Some(cgroups) = &self.cgroups
            && let Err(error) = cgroups.remove()
        {
            self.facts
                .notes
                .push(format!("cgroups of the trial: {error}"));
        }
        let after = Condition::read(&self.host.sysroot);
        self.facts.notes.extend(self.before.changes(&after));
        self.finish(execution, trace)
    }

    fn execute(&mut self, abort: Option<BorrowedFd<'_>>) -> Execution {
        let mut execution = Execution::default();
        let mut loads = Vec::new();
        let mut work = Vec::new();
        if let Err(failure) = self.run_commands(&mut execution, &mut loads, &mut work, abort) {
            execution.failure = Some(failure);
        }
        // First of all, so that ending the loads is not traced.
        let stopped = self.tracer.as_ref().map_or(Ok(()), Tracer::off);
        let ended = end(&mut work, Signal::TERM, WORK_GRACE)
            .and(end(&mut loads, Signal::INT, LOAD_GRACE))
            .map_err(|error| Failure::infrastructure(format!("cannot end the trial: {error}")));
        let stopped = stopped.map_err(|error| error.failure());
        let judged = self.judge(&execution, &loads, &work);
        execution.commands = self.ends(&loads, &work);
        let failure = execution.failure.take();
        execution.failure = judged.or(failure).or(ended.err()).or(stopped.err());
        execution
    }

    /// Starts everything and waits. What is started goes into `loads` and `work`, whatever
    /// happens.
    fn run_commands(
        &self,
        execution: &mut Execution,
        loads: &mut Vec<Group>,
        work: &mut Vec<Group>,
        abort: Option<BorrowedFd<'_>>,
    ) -> Result<(), Failure> {
        let cgroups = self.cgroups.as_ref();
        for load in &self.trial.loads {
            let folder = cgroups.map(Cgroups::load);
            loads.push(self.start(&load.name, &load.command, folder.as_deref())?);
            match wait(&[], loads, abort, load.lead.as_duration())? {
                Wake::Time => {}
                wake => return Err(self.early(&wake, execution)),
            }
        }
        if let Some(tracer) = &self.tracer {
            tracer.on().map_err(|error| error.failure())?;
        }
        let folder = cgroups.map(Cgroups::work);
        let workload = &self.trial.workload;
        let start = Instant::now();
        work.push(self.start(&workload.name, &workload.command, folder.as_deref())?);
        let window = Window::open();
        let wake = wait(work, loads, abort, workload.time_limit.as_duration());
        execution.perturbation = window.close();
        execution.duration = start.elapsed();
        match wake? {
            Wake::Workload => Ok(()),
            wake => Err(self.early(&wake, execution)),
        }
    }

    fn start(
        &self,
        name: &WorkloadName,
        command: &[String],
        cgroup: Option<&Path>,
    ) -> Result<Group, Failure> {
        let start = Start {
            name: name.as_str(),
            command,
            folder: &self.trial.folder,
            cgroup,
            wrapper: &self.host.wrapper,
        };
        let failed = |error| Failure::infrastructure(format!("cannot start {name}: {error}"));
        let group = Group::start(&start).map_err(failed)?;
        clean::record(&self.trial.folder, group.pid()).map_err(failed)?;
        Ok(group)
    }

    /// The failure of a trial that did not go on to the end of its workload.
    fn early(&self, wake: &Wake, execution: &mut Execution) -> Failure {
        let workload = &self.trial.workload;
        match wake {
            Wake::Abort => {
                execution.aborted = true;
                Failure::infrastructure("the trial was ended before it was over")
            }
            Wake::Load(n) => {
                // The status follows once the load has been reaped.
                let name = self
                    .trial
                    .loads
                    .get(*n)
                    .map_or("?", |load| load.name.as_str());
                Failure::workload(format!("load {name} ended before the workload"))
            }
            Wake::Workload | Wake::Time => Failure::workload(format!(
                "workload {} did not end within its time limit of {}",
                workload.name, workload.time_limit
            )),
        }
    }

    /// The failure that statuses show, or the one known so far with more about it.
    fn judge(&self, execution: &Execution, loads: &[Group], work: &[Group]) -> Option<Failure> {
        let known = execution.failure.as_ref();
        let status = |group: &Group| {
            let status = group
                .status()
                .map_or_else(|| "no status".to_owned(), |s| s.to_string());
            match group.last_words() {
                Some(words) => format!("{status}: {words}"),
                None => status,
            }
        };
        let wrapped = !self.host.wrapper.is_empty();
        for (group, name) in self.named(loads, work) {
            if wrapped && group.status().and_then(|s| s.code()) == Some(WRAPPER_FAILED) {
                let reason = format!("cannot start {name}: {}", status(group));
                return Some(Failure::infrastructure(reason));
            }
        }
        let Some(known) = known else {
            let group = work
                .first()
                .filter(|g| !g.status().is_some_and(|s| s.success()))?;
            let name = &self.trial.workload.name;
            return Some(Failure::workload(format!(
                "workload {name} failed: {}",
                status(group)
            )));
        };
        for (group, name) in self.named(loads, &[]) {
            if known.reason == format!("load {name} ended before the workload") {
                let reason = format!("{}: {}", known.reason, status(group));
                return Some(Failure {
                    class: known.class,
                    reason,
                });
            }
        }
        None
    }

    fn named<'a>(
        &'a self,
        loads: &'a [Group],
        work: &'a [Group],
    ) -> impl Iterator<Item = (&'a Group, &'a WorkloadName)> {
        let names = self.trial.loads.iter().map(|load| &load.name);
        loads
            .iter()
            .zip(names)
            .chain(work.iter().map(|group| (group, &self.trial.workload.name)))
    }

    fn ends(&self, loads: &[Group], work: &[Group]) -> Vec<CommandEnd> {
        let commands = self.trial.loads.iter().map(|load| &load.command);
        let commands = commands
            .take(loads.len())
            .chain([&self.trial.workload.command]);
        self.named(loads, work)
            .zip(commands)
            .map(|((group, name), command)| CommandEnd {
                name: name.clone(),
                command: command.clone(),
                status: group
                    .status()
                    .map_or_else(String::new, |status| status.to_string()),
            })
            .collect()
    }

    /// Reads the trace and switches the tracer off.
    fn take_trace(&mut self, execution: &mut Execution) -> Option<TraceCapture> {
        let tracer = self.tracer.take()?;
        let out = self.trial.folder.join(collect::TRACE);
        match tracer.capture(&out, self.host.trace_cap) {
            Ok(capture) => {
                self.facts.notes.extend(capture.notes());
                Some(capture)
            }
            Err(error) => {
                execution.failure.get_or_insert_with(|| error.failure());
                None
            }
        }
    }

    fn finish(self, execution: Execution, trace: Option<TraceCapture>) -> Finished {
        let folder = &self.trial.folder;
        let mut failure = execution.failure;
        let record = Record {
            facts: &self.facts,
            duration_ms: millis(execution.duration),
            perturbation: execution.perturbation,
            trace: &trace,
            commands: &execution.commands,
        };
        let json = serde_json::to_vec_pretty(&record)
            .expect("a record has text keys and no floats, so it is always JSON");
        if let Err(error) = fs::write(folder.join(collect::FACTS), json) {
            let reason = format!(
                "cannot write {} in {}: {error}",
                collect::FACTS,
                folder.display()
            );
            failure.get_or_insert(Failure::infrastructure(reason));
        }
        let collected = collect::collect(folder, &self.trial.workload, &self.trial.loads);
        if let Some((owner, file)) = collected.missing.first() {
            let reason = format!(
                "{owner} left no file {file}: its command must write {{out}}/{file}, see the plan"
            );
            failure.get_or_insert(Failure::workload(reason));
        }
        Finished {
            failure,
            aborted: execution.aborted,
            duration: execution.duration,
            perturbation: execution.perturbation,
            facts: self.facts,
            trace,
            commands: execution.commands,
            files: collected.files,
        }
    }
}

/// Sleeps until something ends or `time` is over.
fn wait(
    work: &[Group],
    loads: &[Group],
    abort: Option<BorrowedFd<'_>>,
    time: Duration,
) -> Result<Wake, Failure> {
    let deadline = Instant::now() + time;
    let fds: Vec<BorrowedFd<'_>> = work
        .iter()
        .chain(loads)
        .map(Group::pidfd)
        .chain(abort)
        .collect();
    let ready = wait_any(&fds, Some(deadline))
        .map_err(|error| Failure::infrastructure(format!("cannot wait for the trial: {error}")))?;
    Ok(match ready {
        None => Wake::Time,
        Some(n) if n < work.len() => Wake::Workload,
        Some(n) if n < work.len() + loads.len() => Wake::Load(n - work.len()),
        Some(_) => Wake::Abort,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
