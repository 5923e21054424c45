//! Orders: what a controller asks an agent to do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Arch, BuildId, Digest, KernelName, Plan, RunId, VariantName};

/// A number that grows with every assignment of a run. Whoever shows an older one is no
/// longer in charge of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

/// The place of a trial in its run, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialIndex(pub u32);

impl fmt::Display for TrialIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kernel that an order wants booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderKernel {
    /// For people.
    pub name: KernelName,
    /// Digest of the canonical package.
    pub digest: Digest,
    /// Size of the package in bytes.
    pub size: u64,
    /// Architecture.
    pub arch: Arch,
    /// The release that `uname -r` must print.
    pub release: String,
    /// The build-id that the running kernel must show, where one is known.
    pub build_id: Option<BuildId>,
    /// Digest of the boot image.
    pub image_digest: Digest,
}

/// One attempt of one run, as given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The fencing token of this assignment.
    pub fence: Fence,
    /// For people.
    pub variant: VariantName,
    /// The kernel to boot.
    pub kernel: OrderKernel,
    /// What to do under it.
    pub plan: Plan,
}

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Checking tools and boot method, fetching the kernel package.
    Fetch,
    /// Installing the kernel beside the known-good one.
    Install,
    /// Arming the one boot and rebooting.
    Boot,
    /// Proving that the candidate runs.
    Prove,
    /// Executing one trial.
    Trial(TrialIndex),
    /// Sending what is still in the spool.
    Collect,
    /// Rebooting into the known-good kernel.
    Restore,
}

/// [`Step`] without the number of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // The same words as in `Step`.
pub enum StepKind {
    Fetch,
    Install,
    Boot,
    Prove,
    Trial,
    Collect,
    Restore,
}

impl Step {
    /// The step without its number.
    pub const fn kind(self) -> StepKind {
        match self {
            Step::Fetch => StepKind::Fetch,
            Step::Install => StepKind::Install,
            Step::Boot => StepKind::Boot,
            Step::Prove => StepKind::Prove,
            Step::Trial(_) => StepKind::Trial,
            Step::Collect => StepKind::Collect,
            Step::Restore => StepKind::Restore,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Fetch => f.pad("fetch"),
            Step::Install => f.pad("install"),
            Step::Boot => f.pad("boot"),
            Step::Prove => f.pad("prove"),
            Step::Trial(index) => f.pad(&format!("trial {}", index.0 + 1)),
            Step::Collect => f.pad("collect"),
            Step::Restore => f.pad("restore"),
        }
    }
}
