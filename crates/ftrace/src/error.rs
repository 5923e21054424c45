//! What can be wrong with trace text, where, and how to mend it.

use thiserror::Error;

/// Trace text that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: found {found:?}, expected {}; {}", problem.expected(), problem.mend())]
pub struct ReadError {
    /// Line in the text, from 1.
    pub line: usize,
    /// What stood there, cut to 80 characters.
    pub found: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl ReadError {
    pub(crate) fn new(line: usize, found: &str, problem: Problem) -> Self {
        Self {
            line,
            found: found.chars().take(80).collect(),
            problem,
        }
    }
}

/// The kinds of unreadable trace text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The text does not begin like a trace file.
    NotATrace,
    /// The `latency:` line of the header could not be read.
    LatencyLine,
    /// The `task:` line of the header could not be read.
    TaskLine,
    /// The `latency trace ... on ...` line of the header could not be read.
    TitleLine,
    /// Events begin, but the header has no `latency:` line.
    NoLatency,
    /// Events begin, but the header has no `task:` line.
    NoTask,
    /// Events begin, but the header has no legend of the flag columns.
    NoLegend,
    /// A line that is neither an event nor part of one.
    EventLine,
    /// A stack frame that belongs to no event.
    StrayFrame,
}

impl Problem {
    /// What the place should hold.
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::NotATrace => "`# tracer: NAME`",
            Self::LatencyLine => "`# latency: N us, #A/B, CPU#C | (M:MODEL ...)`",
            Self::TaskLine => "`# | task: COMM-PID (uid:N nice:N policy:N rt_prio:N)`",
            Self::TitleLine => "`# TRACER latency trace vX on RELEASE`",
            Self::NoLatency => "a `# latency:` line above the first event",
            Self::NoTask => "a `# | task:` line above the first event",
            Self::NoLegend => "the legend of the flag columns (`=> CPU#`, `=> irqs-off` ...)",
            Self::EventLine => "`COMM-PID CPUFLAGS TIMEus : EVENT`",
            Self::StrayFrame => "an event line before the first ` => FUNCTION`",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn mend(self) -> &'static str {
        match self {
            Self::NotATrace => {
                "hand in the tracefs file `trace` as it was read, from its first line"
            }
            Self::LatencyLine
            | Self::TaskLine
            | Self::TitleLine
            | Self::NoLatency
            | Self::NoTask => {
                "read the file `trace` again while tracing_on is 0, and keep its header whole"
            }
            Self::NoLegend => {
                "switch the tracer options `verbose` and `display-graph` off and trace again"
            }
            Self::EventLine => {
                "switch the options `verbose`, `raw`, `hex` and `bin` off, set trace_clock to `local`, \
                 and make sure that the file was read whole"
            }
            Self::StrayFrame => "make sure that no lines were removed from the file",
        }
    }
}
