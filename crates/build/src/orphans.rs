//! Builds that outlived the process that started them: killed, so that the next one does not
//! wait for what nobody wants any more.
//!
//! A number of a process proves nothing, since numbers are used again; its start time must
//! agree too.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::{BuildError, files};

/// A process and when it started, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    pid: i32,
    start: u64,
}

/// Who builds: the process that wants the result, and the group that makes it.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot: String,
    owner: Process,
    group: Process,
}

/// The record of a running build in a file.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    path: PathBuf,
}

impl Owner {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Records that this process waits for the group of `leader`.
    pub(crate) fn record(&self, leader: Pid) -> Result<(), BuildError> {
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap_or(0));
        let (Some(owner), Some(group)) = (own.and_then(Process::of), Process::of(leader)) else {
            // It has ended already.
            return Ok(());
        };
        let record = Record {
            boot: boot_id(),
            owner,
            group,
        };
        let json = serde_json::to_vec(&record).unwrap_or_default();
        files::write_atomic(&self.path, &json)
    }

    /// Kills the group of a build whose owner is gone; how many processes were killed.
    pub(crate) fn end_orphans(&self) -> usize {
        let Some(record) = fs::read(&self.path)
            .ok()
            .and_then(|json| serde_json::from_slice::<Record>(&json).ok())
        else {
            return 0;
        };
        if record.boot != boot_id() || record.owner.lives() {
            return 0;
        }
        // The leader's number in other hands: the group is gone.
        let leader = Stat::read(record.group.pid);
        if leader.is_some_and(|leader| leader.start != record.group.start) {
            return 0;
        }
        let members = fs::read_dir("/proc").into_iter().flatten().flatten();
        members
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|&pid| kill_member(pid, record.group))
            .count()
    }

    /// Nobody builds any more.
    pub(crate) fn clear(&self) -> Result<(), BuildError> {
        files::remove(&self.path)
    }
}

/// Kills a process if it belongs to the group. The pidfd pins it before it is looked at.
fn kill_member(pid: i32, group: Process) -> bool {
    let Some(raw) = Pid::from_raw(pid) else {
        return false;
    };
    let Ok(pidfd) = pidfd_open(raw, PidfdFlags::empty()) else {
        return false;
    };
    let belongs = |stat: Stat| stat.group == group.pid && stat.start >= group.start;
    Stat::read(pid).is_some_and(belongs) && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
}

impl Process {
    fn of(pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_pid();
        let start = Stat::read(pid)?.start;
        Some(Self { pid, start })
    }

    fn lives(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.start == self.start && !stat.zombie)
    }
}

/// What `/proc/PID/stat` tells, proc(5).
struct Stat {
    zombie: bool,
    group: i32,
    start: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let text =
            fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
        // The name in parentheses may hold anything, so what follows the last one counts.
        let (_, rest) = text.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        Some(Self {
            zombie: matches!(*words.first()?, "Z" | "X"),
            group: words.get(2)?.parse().ok()?,
            start: words.get(19)?.trim().parse().ok()?,
        })
    }
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}
