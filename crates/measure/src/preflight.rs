//! What a plan needs, looked for before anything is booted.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use klab_model::Plan;

use crate::sysfs;

/// A program of a plan that is not on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// The program.
    pub program: String,
    /// The Debian package that has it, if known.
    pub package: Option<&'static str>,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.package {
            Some(package) => write!(f, "{} (Debian package {package})", self.program),
            None => f.write_str(&self.program),
        }
    }
}

/// The programs of `plan` that are found neither in the folders of `path` nor, for those
/// with a slash, as a file.
#[must_use]
pub fn preflight(plan: &Plan, path: &OsStr, sysroot: &Path) -> Vec<MissingTool> {
    plan.programs()
        .into_iter()
        .filter(|program| find_program(program, path, sysroot).is_none())
        .map(|program| MissingTool {
            program: program.to_owned(),
            package: package_of(program),
        })
        .collect()
}

/// Where a program is, below `sysroot`.
#[must_use]
pub fn find_program(program: &str, path: &OsStr, sysroot: &Path) -> Option<PathBuf> {
    let below = |path: &Path| sysroot.join(path.strip_prefix("/").unwrap_or(path));
    let runs = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if program.contains('/') {
        return Some(below(Path::new(program))).filter(runs);
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| below(&folder).join(program))
        .find(runs)
}

/// The Debian package of a well-known measuring program.
pub(crate) fn package_of(program: &str) -> Option<&'static str> {
    let name = program.rsplit('/').next().unwrap_or(program);
    Some(match name {
        "cyclictest" | "hackbench" | "oslat" | "pi_stress" | "rt-migrate-test" | "signaltest" => {
            "rt-tests"
        }
        "stress-ng" => "stress-ng",
        "trace-cmd" => "trace-cmd",
        "rtla" => "rtla",
        "perf" => "linux-perf",
        "fio" => "fio",
        "iperf3" => "iperf3",
        "sysbench" => "sysbench",
        _ => return None,
    })
}

/// Whether the kernel has a tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracerState {
    /// It has.
    Available,
    /// It has others.
    Missing {
        /// The tracers it has.
        available: Vec<String>,
    },
    /// No tracefs is mounted, or the kernel has no ftrace.
    NoTracefs,
}

impl fmt::Display for TracerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available => f.write_str("available"),
            Self::Missing { available } => write!(f, "it has {}", available.join(", ")),
            Self::NoTracefs => f.write_str("tracefs is not mounted, or there is no ftrace"),
        }
    }
}

/// Looks for a tracer in `available_tracers`.
#[must_use]
pub fn tracer_state(tracefs: &Path, tracer: &str) -> TracerState {
    let Some(text) = sysfs::read(&tracefs.join("available_tracers")) else {
        return TracerState::NoTracefs;
    };
    let available: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if available.iter().any(|name| name == tracer) {
        TracerState::Available
    } else {
        TracerState::Missing { available }
    }
}
