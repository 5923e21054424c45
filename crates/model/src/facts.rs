//! What a board tells about itself.

use serde::{Deserialize, Serialize};

/// Facts about a board, read by its agent when it connects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardFacts {
    /// The model, as the firmware or device tree names it.
    pub model: String,
    /// Number of CPUs that are online.
    pub cpus: u32,
    /// Size of the memory in KiB.
    pub memory_kib: u64,
    /// The release of the kernel that runs now.
    pub release: String,
    /// The boot id of the kernel that runs now.
    pub boot_id: String,
    /// The version of the agent.
    pub agent_version: String,
    /// What the board can do.
    pub capabilities: Vec<Capability>,
}

/// Something a board can do, in the agent's own words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capability(pub String);

/// The environment of one trial, recorded so that differences between variants show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialFacts {
    /// The kernel command line.
    pub cmdline: String,
    /// The current clock source.
    pub clocksource: String,
    /// The frequency governor of each CPU, `none` without frequency scaling.
    pub governors: Vec<String>,
    /// Vulnerability name and mitigation state.
    pub mitigations: Vec<(String, String)>,
    /// Thermal zone and temperature in millidegrees Celsius before the trial.
    pub temperatures: Vec<(String, i64)>,
    /// Things that were asked for and could not be had, one sentence each.
    pub notes: Vec<String>,
}
