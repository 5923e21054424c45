//! The mark that tells whose boot it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RunId;

/// Which attempt a boot belongs to: `klab.run=RUN.ATTEMPT` on the kernel command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMarker {
    /// The run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl BootMarker {
    /// What it begins with.
    pub const NAME: &str = "klab.run=";

    /// Finds the mark on a command line. The last one counts, as for other parameters.
    #[must_use]
    pub fn find(cmdline: &str) -> Option<Self> {
        let value = cmdline
            .split_ascii_whitespace()
            .filter_map(|word| word.strip_prefix(Self::NAME))
            .next_back()?;
        let (run, attempt) = value.rsplit_once('.')?;
        Some(Self {
            run: run.parse().ok()?,
            attempt: attempt.parse().ok()?,
        })
    }
}

impl fmt::Display for BootMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}.{}", Self::NAME, self.run, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> BootMarker {
        let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("id");
        BootMarker { run, attempt: 3 }
    }

    #[test]
    fn the_mark_goes_through_the_command_line() {
        let line = format!("ro quiet {} x=1", marker());
        assert_eq!(BootMarker::find(&line), Some(marker()));
        for none in [
            "",
            "ro",
            "klab.run=",
            "klab.run=x.1",
            "xklab.run=01890a5d.1",
        ] {
            assert_eq!(BootMarker::find(none), None, "{none}");
        }
    }
}
