//! Runs counted by how they ended.

use std::fmt;

use klab_model::{FailureClass, Outcome};
use serde::{Deserialize, Serialize};

use crate::RunRecord;

/// The runs of one variant on one board, counted by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTally {
    /// Every trial was done.
    pub done: u32,
    /// The kernel failed.
    pub kernel_failed: u32,
    /// The workload failed.
    pub workload_failed: u32,
    /// The infrastructure failed for good; left out of the statistics.
    pub infrastructure_failed: u32,
    /// Somebody cancelled it.
    pub cancelled: u32,
    /// Not ended yet; left out of the statistics.
    pub unfinished: u32,
    /// Attempts that were repeated after an infrastructure failure; left out.
    pub repeated_attempts: u32,
}

impl RunTally {
    /// Counts a run.
    pub fn add(&mut self, run: &RunRecord) {
        // The last attempt belongs to the outcome; those before it were repeated.
        self.repeated_attempts += run.attempts.saturating_sub(1);
        let field = match &run.outcome {
            None => &mut self.unfinished,
            Some(Outcome::Done) => &mut self.done,
            Some(Outcome::Cancelled) => &mut self.cancelled,
            Some(Outcome::Failed(failure)) => match failure.class {
                FailureClass::Kernel => &mut self.kernel_failed,
                FailureClass::Workload => &mut self.workload_failed,
                FailureClass::Infrastructure => &mut self.infrastructure_failed,
            },
        };
        *field += 1;
    }

    /// The number of runs.
    pub const fn runs(&self) -> u32 {
        self.done
            + self.kernel_failed
            + self.workload_failed
            + self.infrastructure_failed
            + self.cancelled
            + self.unfinished
    }

    /// Why there are no samples.
    pub(crate) const fn absence(&self) -> Absence {
        if self.runs() == 0 {
            Absence::NoRuns
        } else if self.done == 0 {
            Absence::NoRunDone(*self)
        } else {
            Absence::NotMeasured
        }
    }
}

/// Why a variant has no samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// It has no run on this board.
    NoRuns,
    /// None of its runs was done.
    NoRunDone(RunTally),
    /// Its runs were done, but none gave this number.
    NotMeasured,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NoRuns => f.write_str("no run on this board"),
            Absence::NotMeasured => f.write_str("its runs were done, but no trial gave a sample"),
            Absence::NoRunDone(tally) => {
                match tally.runs() {
                    1 => f.write_str("its only run was not done")?,
                    runs => write!(f, "none of its {runs} runs was done")?,
                }
                let parts = [
                    (tally.kernel_failed, "kernel failed"),
                    (tally.workload_failed, "workload failed"),
                    (tally.infrastructure_failed, "infrastructure failed"),
                    (tally.cancelled, "cancelled"),
                    (tally.unfinished, "not ended"),
                ];
                let mut separator = ": ";
                for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
                    write!(f, "{separator}{count} {what}")?;
                    separator = ", ";
                }
                Ok(())
            }
        }
    }
}
