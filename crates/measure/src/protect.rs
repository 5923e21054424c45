//! Keeps the agent alive while workloads take all the memory.

use std::path::Path;

use rustix::mm::{MlockAllFlags, mlockall};

use crate::sysfs;

/// Puts this process last in the line of the out-of-memory killer and keeps its memory from
/// being paged out. What did not work is told, one sentence each.
#[must_use]
pub fn protect_self() -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = sysfs::write(Path::new("/proc/self/oom_score_adj"), "-1000") {
        notes.push(format!(
            "the agent may be killed when memory runs out: {error}"
        ));
    }
    // On fault: only what is used is locked, not the whole stack of every thread.
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    if let Err(error) = mlockall(flags) {
        notes.push(format!("the agent may be paged out: {error}"));
    }
    notes
}
