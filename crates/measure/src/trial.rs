//! One trial, and its preparation while the agent may still talk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klab_model::{IfMissing, Load, Plan, TracePlan, TrialFacts, Workload};

use crate::facts::Condition;
use crate::preflight::package_of;
use crate::tracer::Tracer;
use crate::{
    Cgroups, Host, MeasureError, Prepared, TracerState, clean, find_program, tracer_state,
    trial_facts,
};

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
        // What may fail comes first, so that nothing is left then.
        let tracer = match &self.trace {
            Some(plan) => set_up_tracer(host, plan, &mut facts)?,
            None => None,
        };
        let cgroups = match &host.cgroup_root {
            None => Err("no cgroups v2: processes are kept together by process groups".to_owned()),
            Some(root) => Cgroups::make(root).map_err(|error| {
                format!("cgroups cannot be used, process groups must do: {error}")
            }),
        };
        let cgroups = cgroups.map_err(|note| facts.notes.push(note)).ok();
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
