//! Why a trial could not be prepared.

use std::io;
use std::path::PathBuf;

use klab_model::Failure;

/// Why a trial could not be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program of the plan is not installed.
    #[error("program {program} is not on the board: install it{}", .package.map(|p| format!(" (Debian package {p})")).unwrap_or_default())]
    MissingProgram {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: Option<&'static str>,
    },
    /// The kernel lacks the tracer that the plan insists on.
    #[error(
        "the kernel cannot trace with {tracer} ({state}): build it in, or say `if-missing: note` \
         in the plan"
    )]
    MissingTracer {
        /// The tracer.
        tracer: String,
        /// What the kernel has.
        state: String,
    },
}

impl MeasureError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// The failure of the trial: the lab's for files, the workload's for a program that is not
    /// there, the kernel's for a tracer that it lacks.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Io { .. } => Failure::infrastructure(self.to_string()),
            Self::MissingProgram { .. } => Failure::workload(self.to_string()),
            Self::MissingTracer { .. } => Failure::kernel(self.to_string()),
        }
    }
}
