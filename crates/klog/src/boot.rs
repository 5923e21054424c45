//! Boots and how they ended.

use serde::Serialize;

use crate::Report;

/// How a boot ended, from bad to good. Of a log with several boots the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The kernel panicked.
    Panicked,
    /// The kernel began and neither came to user space nor panicked, or a stall is the last
    /// that was heard of it.
    Hung,
    /// A firmware or a boot loader spoke, and no kernel.
    NeverStarted,
    /// User space was reached.
    Booted,
    /// Nothing of a boot is in it.
    NoKernel,
}

impl Verdict {
    /// The words for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Panicked => "panicked",
            Verdict::Hung => "hung",
            Verdict::NeverStarted => "never started",
            Verdict::Booted => "booted",
            Verdict::NoKernel => "no kernel",
        }
    }
}

/// One boot in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Boot {
    /// How it ended.
    pub verdict: Verdict,
    /// Its first line, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The release in the kernel's banner, if that is there.
    pub release: Option<String>,
    /// The kernel's command line, if it is told.
    pub command_line: Option<String>,
    /// What the boot loader complained of.
    pub loader_error: Option<String>,
    /// In the order in which they came first.
    pub reports: Vec<Report>,
}

/// What is in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// That of the worst boot.
    pub verdict: Verdict,
    /// Lines that were read.
    pub lines: u64,
    /// The boots, in order.
    pub boots: Vec<Boot>,
    /// Boots beyond the number that is kept; their verdicts count.
    pub more_boots: u64,
    /// Reports beyond the number that is kept.
    pub more_reports: u64,
    /// Reports, kept or not, of which the kernel is to blame ([`crate::Blame::Kernel`]).
    pub kernel_reports: u64,
}
