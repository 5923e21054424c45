//! The flag columns behind the CPU number.

use std::fmt;

/// The meaning of one flag column, from the legend in the header.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FlagColumn {
    /// Interrupts off: `d`; bottom halves off: `b`; both: `D`; unsupported: `X`.
    IrqsOff,
    /// Reschedule wanted: `N` `n` `p` and, with lazy preemption, `B` `L` `b` `l`.
    NeedResched,
    /// Lazy reschedule wanted (PREEMPT_RT patches before lazy preemption was merged).
    NeedReschedLazy,
    /// Context: `Z` `z` NMI, `H` `h` hard interrupt, `s` soft interrupt.
    Context,
    /// Preemption depth, one hex digit.
    PreemptDepth,
    /// Lazy preemption depth, one hex digit.
    PreemptLazyDepth,
    /// Depth of disabled migration, one hex digit.
    MigrateDisable,
    /// A column with a label that is not known here.
    Other(String),
}

impl FlagColumn {
    pub(crate) fn from_label(label: &str) -> Self {
        match label {
            "irqs-off" | "irqs-off/BH-disabled" => Self::IrqsOff,
            "need-resched" => Self::NeedResched,
            "need-resched-lazy" | "need-resched_lazy" => Self::NeedReschedLazy,
            "hardirq/softirq" => Self::Context,
            "preempt-depth" => Self::PreemptDepth,
            "preempt-lazy-depth" | "preempt-lazy" => Self::PreemptLazyDepth,
            "migrate-disable" => Self::MigrateDisable,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The flags of one event, one character per [`FlagColumn`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flags(String);

impl Flags {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The characters as they stood in the trace, for instance `dNh5.`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The character in column `index`.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<char> {
        self.0.chars().nth(index)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
