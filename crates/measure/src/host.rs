//! The board as measuring sees it.

use std::path::{Path, PathBuf};

use crate::Cgroups;
use crate::sysfs;

/// Where things are on the board, and how children are started.
#[derive(Debug, Clone)]
pub struct Host {
    /// `/` on a real board; `proc`, `sys` and programs are looked for below it.
    pub sysroot: PathBuf,
    /// The mounted tracefs.
    pub tracefs: PathBuf,
    /// A cgroup v2 folder that may be written; children go below it.
    pub cgroup_root: Option<PathBuf>,
    /// Program and arguments that call [`exec_child`](crate::exec_child); empty: children are
    /// started directly and moved to their cgroup a moment later.
    pub wrapper: Vec<String>,
    /// Largest trace that is kept, in bytes.
    pub trace_cap: u64,
}

impl Host {
    /// 16 MiB: far more than one snapshot of a latency tracer with default buffers.
    pub const TRACE_CAP: u64 = 16 << 20;

    /// The board below `sysroot`: tracefs and cgroups where they are mounted.
    #[must_use]
    pub fn find(sysroot: &Path) -> Self {
        let tracing = sysroot.join("sys/kernel/tracing");
        let debug = sysroot.join("sys/kernel/debug/tracing");
        let there = |folder: &Path| folder.join("current_tracer").exists();
        let tracefs = if !there(&tracing) && there(&debug) {
            debug
        } else {
            tracing
        };
        Self {
            sysroot: sysroot.to_owned(),
            tracefs,
            cgroup_root: Cgroups::find(sysroot),
            wrapper: Vec::new(),
            trace_cap: Self::TRACE_CAP,
        }
    }

    pub(crate) fn boot_id(&self) -> String {
        sysfs::read(&self.sysroot.join("proc/sys/kernel/random/boot_id")).unwrap_or_default()
    }
}
