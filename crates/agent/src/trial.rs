//! One trial on this board, and the look at the board before anything is booted.

use std::path::{Path, PathBuf};

use klab_boot::BootMethod;
use klab_measure::{Host, ProducedFile, Trial};
use klab_model::{
    ArtifactKind, ArtifactName, Failure, Order, Perturbation, Plan, TrialFacts, TrialPlan,
    TrialResult,
};
use tracing::{info, warn};

use crate::config::Config;

/// What a trial gave.
#[derive(Debug)]
pub struct TrialOutput {
    /// For the controller.
    pub result: TrialResult,
    /// Files for the spool, with their names as artifacts.
    pub files: Vec<(PathBuf, ArtifactName, ArtifactKind)>,
}

/// The board as `klab-measure` sees it.
fn host(config: &Config) -> Host {
    let mut host = Host::find(&config.sysroot);
    match std::env::current_exe() {
        Ok(own) => {
            host.wrapper = vec![own.display().to_string(), "exec-child".to_owned()];
        }
        Err(error) => warn!(%error, "children start without the wrapper"),
    }
    host
}

fn folder(config: &Config) -> PathBuf {
    config.state.join("trial")
}

/// Removes what an agent that died in a trial left running or set.
pub fn clean_up(config: &Config) {
    let done = klab_measure::clean_up(&host(config), Some(&folder(config)));
    if done.killed > 0 {
        info!(killed = done.killed, "ended what an earlier trial left");
    }
    for problem in done.problems {
        warn!(%problem, "cleaning up");
    }
}

/// Names everything that the board lacks for the order, before any reboot.
///
/// # Errors
/// The failure of the attempt.
pub fn preflight(config: &Config, boot: &dyn BootMethod, order: &Order) -> Result<(), Failure> {
    if let Some(arch) = config.arch
        && arch != order.kernel.arch
    {
        let reason = format!(
            "kernel {} is {}, the board is {arch}",
            order.kernel.name, order.kernel.arch
        );
        return Err(Failure::infrastructure(reason));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = klab_measure::preflight(&order.plan, &path, Path::new("/"));
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Err(Failure::infrastructure(format!(
            "board {} lacks what plan {} needs: {}; install it and submit again",
            config.board,
            order.plan.name,
            names.join(", ")
        )));
    }
    boot.preflight()
        .map_err(|error| Failure::infrastructure(error.to_string()))
}

/// Executes one trial on this thread; nothing else of the agent runs meanwhile.
pub fn run_trial(config: &Config, plan: &Plan, trial: &TrialPlan<'_>) -> TrialOutput {
    let host = host(config);
    if let Err(error) = remove(&folder(config)) {
        let reason = format!("cannot empty the trial folder: {error}");
        return failed(trial, Failure::infrastructure(reason));
    }
    let prepared = Trial::new(plan, trial.workload, &folder(config)).prepare(&host);
    let finished = match prepared {
        Ok(prepared) => prepared.run(None),
        Err(error) => return failed(trial, error.failure()),
    };
    let result = finished.result(trial.index, trial.workload.name.clone());
    let files = finished.files.into_iter();
    let files = files
        .map(|ProducedFile { name, path, kind }| (path, name, kind))
        .collect();
    TrialOutput { result, files }
}

/// Removes what an earlier trial left. An agent that died while it made or emptied the folder
/// leaves any part of it, which nobody but the agent can tell from a stranger's files.
fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn failed(trial: &TrialPlan<'_>, failure: Failure) -> TrialOutput {
    let result = TrialResult {
        index: trial.index,
        workload: trial.workload.name.clone(),
        failure: Some(failure),
        duration_ms: 0,
        perturbation: Perturbation::default(),
        facts: TrialFacts::default(),
    };
    TrialOutput {
        result,
        files: Vec::new(),
    }
}
