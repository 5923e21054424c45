//! What kinds of reports there are.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Who is to blame for a report, as far as a log can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The kernel did something wrong.
    Kernel,
    /// The machine: its disks, its memory, its temperature.
    Machine,
    /// What ran on it: it used up the memory.
    Workload,
}

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The kernel stopped for good.
    Panic,
    /// No root file system could be mounted.
    NoRoot,
    /// A fault in the kernel: a bad address, a bad instruction.
    Oops,
    /// `BUG()`, and what is written as `BUG:` and has no kind of its own.
    Bug,
    /// `WARN_ON()`.
    Warning,
    /// KASAN, KMSAN, KCSAN or KFENCE.
    Sanitizer,
    /// UBSAN.
    Undefined,
    /// Lock order, and other findings of lockdep.
    Lockdep,
    /// Sleeping or scheduling where that is not allowed.
    Atomic,
    /// A CPU did not schedule for long.
    SoftLockup,
    /// A CPU did not take interrupts for long.
    HardLockup,
    /// A grace period of RCU did not end.
    RcuStall,
    /// A task was blocked for long.
    HungTask,
    /// Work queues that do not go on.
    WorkqueueLockup,
    /// A broken list.
    List,
    /// A reference count out of range.
    Refcount,
    /// No memory could be allocated.
    Allocation,
    /// A process was killed for its memory.
    OutOfMemory,
    /// A device gave an error.
    Io,
    /// A file system is damaged, or was made read-only.
    FileSystem,
    /// A machine check.
    MachineCheck,
    /// A CPU was slowed down because it was hot.
    Thermal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 22] = [
        Kind::Panic,
        Kind::NoRoot,
        Kind::Oops,
        Kind::Bug,
        Kind::Warning,
        Kind::Sanitizer,
        Kind::Undefined,
        Kind::Lockdep,
        Kind::Atomic,
        Kind::SoftLockup,
        Kind::HardLockup,
        Kind::RcuStall,
        Kind::HungTask,
        Kind::WorkqueueLockup,
        Kind::List,
        Kind::Refcount,
        Kind::Allocation,
        Kind::OutOfMemory,
        Kind::Io,
        Kind::FileSystem,
        Kind::MachineCheck,
        Kind::Thermal,
    ];

    /// Who is to blame.
    #[must_use]
    pub const fn blame(self) -> Blame {
        match self {
            Kind::Io | Kind::FileSystem | Kind::MachineCheck | Kind::Thermal => Blame::Machine,
            Kind::OutOfMemory | Kind::Allocation => Blame::Workload,
            _ => Blame::Kernel,
        }
    }

    /// Whether it says that something does not go on.
    #[must_use]
    pub const fn is_stall(self) -> bool {
        matches!(
            self,
            Kind::SoftLockup
                | Kind::HardLockup
                | Kind::RcuStall
                | Kind::HungTask
                | Kind::WorkqueueLockup
        )
    }

    /// The name in tables and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Panic => "panic",
            Kind::NoRoot => "no-root",
            Kind::Oops => "oops",
            Kind::Bug => "bug",
            Kind::Warning => "warning",
            Kind::Sanitizer => "sanitizer",
            Kind::Undefined => "undefined",
            Kind::Lockdep => "lockdep",
            Kind::Atomic => "atomic",
            Kind::SoftLockup => "soft-lockup",
            Kind::HardLockup => "hard-lockup",
            Kind::RcuStall => "rcu-stall",
            Kind::HungTask => "hung-task",
            Kind::WorkqueueLockup => "workqueue-lockup",
            Kind::List => "list",
            Kind::Refcount => "refcount",
            Kind::Allocation => "allocation",
            Kind::OutOfMemory => "out-of-memory",
            Kind::Io => "io",
            Kind::FileSystem => "file-system",
            Kind::MachineCheck => "machine-check",
            Kind::Thermal => "thermal",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let mut kinds = Self::ALL.into_iter();
        kinds
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// A word that is the name of no [`Kind`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind(
    /// The word.
    pub String,
);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kind of kernel report is called {:?}", self.0)
    }
}

impl std::error::Error for UnknownKind {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_those_in_json() {
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            let json = serde_json::to_string(&kind).expect("a word");
            assert_eq!(json, format!("\"{kind}\""));
        }
        let unknown = "pain".parse::<Kind>().expect_err("no kind");
        assert_eq!(
            unknown.to_string(),
            "no kind of kernel report is called \"pain\""
        );
    }
}
