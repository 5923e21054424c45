//! Cgroups v2 of loads and workload: `klab/load` and `klab/work` below a root that the agent
//! may write.
//!
//! No controller is switched on: the cgroups hold processes together and nothing else, so they
//! cost the measurement nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::sysfs;

/// How long killed processes may take to go. Those in uninterruptible sleep may take longer.
const EMPTY_LIMIT: Duration = Duration::from_secs(5);

/// The two cgroups of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    base: PathBuf,
}

impl Cgroups {
    /// The cgroup v2 folder of this process, from `proc/self/mountinfo` and
    /// `proc/self/cgroup` below `sysroot`. `None` without cgroups v2.
    #[must_use]
    pub fn find(sysroot: &Path) -> Option<PathBuf> {
        let mounts = sysfs::read(&sysroot.join("proc/self/mountinfo"))?;
        // "ID PARENT DEV ROOT MOUNTPOINT OPTIONS... - TYPE SOURCE OPTIONS", proc(5).
        let mount = mounts.lines().find_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            (back.split(' ').next()? == "cgroup2").then(|| front.split(' ').nth(4))?
        })?;
        let own = sysfs::read(&sysroot.join("proc/self/cgroup"))?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Some(sysroot.join(mount.trim_start_matches('/')).join(own))
    }

    /// Makes both cgroups below `root`.
    ///
    /// # Errors
    /// When `root` is no cgroup v2 folder or cannot be written.
    pub fn make(root: &Path) -> io::Result<Self> {
        if !root.join("cgroup.procs").exists() {
            let text = format!("{} is no cgroup v2 folder", root.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let cgroups = Self {
            base: root.join("klab"),
        };
        for folder in [cgroups.load(), cgroups.work()] {
            fs::create_dir_all(&folder)?;
            // On a file system that is no cgroup2 the folder stays empty.
            fs::metadata(folder.join("cgroup.procs"))?;
        }
        Ok(cgroups)
    }

    /// The cgroups that an earlier trial may have left below `root`.
    pub(crate) fn left(root: &Path) -> Self {
        Self {
            base: root.join("klab"),
        }
    }

    /// The cgroup of the loads.
    #[must_use]
    pub fn load(&self) -> PathBuf {
        self.base.join("load")
    }

    /// The cgroup of the workload.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.base.join("work")
    }

    /// Kills everything in both cgroups and removes them; the number of killed processes.
    pub(crate) fn remove(&self) -> io::Result<usize> {
        let mut killed = 0;
        for folder in [self.work(), self.load(), self.base.clone()] {
            if !folder.is_dir() {
                continue;
            }
            killed += empty(&folder)?;
            fs::remove_dir(&folder)?;
        }
        Ok(killed)
    }
}

/// Kills every process in one cgroup and waits until they are gone.
pub(crate) fn empty(folder: &Path) -> io::Result<usize> {
    let first = processes(folder);
    let start = Instant::now();
    loop {
        let pids = processes(folder);
        if pids.is_empty() {
            return Ok(first.len());
        }
        if start.elapsed() > EMPTY_LIMIT {
            let text = format!(
                "{} processes in {} do not end",
                pids.len(),
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        // Linux 5.14 and later; before that one by one until no new ones appear.
        if sysfs::write(&folder.join("cgroup.kill"), "1").is_err() {
            for pid in pids {
                kill_member(folder, pid);
            }
        }
        sleep(Duration::from_millis(20));
    }
}

/// Kills a process if it is still in the cgroup after it has been pinned by a pidfd.
fn kill_member(folder: &Path, pid: Pid) {
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
        && processes(folder).contains(&pid)
    {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
}

fn processes(folder: &Path) -> Vec<Pid> {
    let text = sysfs::read(&folder.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| Pid::from_raw(line.parse().ok()?))
        .collect()
}
