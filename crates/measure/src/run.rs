//! A prepared trial is run: loads, lead, tracer on, workload, silence; then everything ends.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use klab_model::{Failure, TrialFacts, WorkloadName};
use rustix::process::Signal;

use crate::facts::Condition;
use crate::finished::Execution;
use crate::group::{Group, Start, end, wait_any};
use crate::judge::{Commands, Stop};
use crate::perturb::Window;
use crate::tracer::Tracer;
use crate::{Cgroups, Finished, Host, TraceCapture, Trial, clean, collect};

/// How long loads may take to write their results after SIGINT. Most programs that measure
/// take it for the user's Ctrl-C and end in order; stress-ng and cyclictest write their files.
const LOAD_GRACE: Duration = Duration::from_secs(10);
/// How long a workload may take to end after SIGTERM.
const WORK_GRACE: Duration = Duration::from_secs(2);

/// A trial that can start. Dropping it undoes the preparation.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) trial: Trial,
    pub(crate) host: Host,
    pub(crate) facts: TrialFacts,
    pub(crate) cgroups: Option<Cgroups>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) before: Condition,
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
        execution.finish(&self.trial, self.facts, trace)
    }

    fn execute(&self, abort: Option<BorrowedFd<'_>>) -> Execution {
        let mut execution = Execution::default();
        let mut commands = Commands::new(&self.trial);
        let stop = self
            .run_commands(&mut execution, &mut commands, abort)
            .err();
        // First of all, so that ending the loads is not traced.
        let tracer = self.tracer.as_ref().map_or(Ok(()), Tracer::off);
        let ended = end(&mut commands.work, Signal::TERM, WORK_GRACE)
            .and(end(&mut commands.loads, Signal::INT, LOAD_GRACE))
            .map_err(|error| Failure::infrastructure(format!("cannot end the trial: {error}")));
        execution.aborted = matches!(stop, Some(Stop::Abort));
        execution.commands = commands.ends();
        execution.failure = commands
            .judge(stop, !self.host.wrapper.is_empty())
            .or(ended.err())
            .or(tracer.err().map(|error| error.failure()));
        execution
    }

    /// Starts everything and waits for the end of the workload.
    fn run_commands(
        &self,
        execution: &mut Execution,
        commands: &mut Commands<'_>,
        abort: Option<BorrowedFd<'_>>,
    ) -> Result<(), Stop> {
        let cgroups = self.cgroups.as_ref();
        for load in &self.trial.loads {
            let folder = cgroups.map(Cgroups::load);
            let group = self.start(&load.name, &load.command, folder.as_deref())?;
            commands.loads.push(group);
            match commands.wait(abort, load.lead.as_duration()) {
                Err(Stop::Time) => {}
                other => return other,
            }
        }
        if let Some(tracer) = &self.tracer {
            tracer.on().map_err(|error| Stop::Failed(error.failure()))?;
        }
        let folder = cgroups.map(Cgroups::work);
        let workload = &self.trial.workload;
        let start = Instant::now();
        let group = self.start(&workload.name, &workload.command, folder.as_deref())?;
        commands.work.push(group);
        let window = Window::open();
        let waited = commands.wait(abort, workload.time_limit.as_duration());
        execution.perturbation = window.close();
        execution.duration = start.elapsed();
        waited
    }

    fn start(
        &self,
        name: &WorkloadName,
        command: &[String],
        cgroup: Option<&Path>,
    ) -> Result<Group, Stop> {
        let start = Start {
            name: name.as_str(),
            command,
            folder: &self.trial.folder,
            cgroup,
            wrapper: &self.host.wrapper,
        };
        let failed = |error| {
            Stop::Failed(Failure::infrastructure(format!(
                "cannot start {name}: {error}"
            )))
        };
        let group = Group::start(&start).map_err(failed)?;
        clean::record(&self.trial.folder, group.pid()).map_err(failed)?;
        Ok(group)
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
}

impl Commands<'_> {
    /// Sleeps until something ends or `time` is over; well only if the workload ended.
    fn wait(&self, abort: Option<BorrowedFd<'_>>, time: Duration) -> Result<(), Stop> {
        let deadline = Instant::now() + time;
        let fds: Vec<BorrowedFd<'_>> = self
            .work
            .iter()
            .chain(&self.loads)
            .map(Group::pidfd)
            .chain(abort)
            .collect();
        let (work, loads) = (self.work.len(), self.loads.len());
        match wait_any(&fds, Some(deadline)) {
            Ok(None) => Err(Stop::Time),
            Ok(Some(n)) if n < work => Ok(()),
            Ok(Some(n)) if n < work + loads => Err(Stop::Load(n - work)),
            Ok(Some(_)) => Err(Stop::Abort),
            Err(error) => Err(Stop::Failed(Failure::infrastructure(format!(
                "cannot wait for the trial: {error}"
            )))),
        }
    }
}
