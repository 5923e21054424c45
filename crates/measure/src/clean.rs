//! Cleaning up after an agent that died in a trial.
//!
//! Processes are found by their cgroup, and by the record of process groups in the trial
//! folder. A number in the record alone proves nothing, since numbers are used again: boot id
//! and start time must agree too.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{Cgroups, Host, sysfs, tracer};

/// The record in a trial folder: the boot id, then one line per process group with its number,
/// session and the start time of its leader in clock ticks.
const RECORD: &str = ".children";

/// What was found and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Processes that were killed.
    pub killed: usize,
    /// Whether a tracer was switched off.
    pub tracer: bool,
    /// What could not be cleaned, one sentence each.
    pub problems: Vec<String>,
}

/// Kills what an earlier trial left in its cgroups and, if its folder is given, in its process
/// groups, and switches the tracer off. Call it before the first trial of an agent's life.
#[must_use]
pub fn clean_up(host: &Host, trial_folder: Option<&Path>) -> CleanedUp {
    let mut done = CleanedUp::default();
    if let Some(root) = &host.cgroup_root {
        match Cgroups::left(root).remove() {
            Ok(killed) => done.killed += killed,
            Err(error) => done
                .problems
                .push(format!("processes of an earlier trial: {error}")),
        }
    }
    for recorded in trial_folder
        .map(|folder| read(folder, &host.boot_id()))
        .unwrap_or_default()
    {
        done.killed += recorded.kill();
    }
    match tracer::reset(&host.tracefs) {
        Ok(was_on) => done.tracer = was_on,
        Err(error) => done
            .problems
            .push(format!("the tracer of an earlier trial: {error}")),
    }
    done
}

/// Starts the record of a trial.
pub(crate) fn begin(folder: &Path, boot_id: &str) -> io::Result<()> {
    fs::write(folder.join(RECORD), format!("{boot_id}\n"))
}

/// Whether a folder is one of a trial.
pub(crate) fn is_trial(folder: &Path) -> bool {
    folder.join(RECORD).exists()
}

/// Adds a process group to the record.
pub(crate) fn record(folder: &Path, pid: Pid) -> io::Result<()> {
    let Some(stat) = Stat::read(pid.as_raw_pid()) else {
        return Ok(());
    };
    let line = format!("{} {} {}\n", pid.as_raw_pid(), stat.session, stat.start);
    OpenOptions::new()
        .append(true)
        .open(folder.join(RECORD))?
        .write_all(line.as_bytes())
}

/// A process group of an earlier trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Recorded {
    group: i32,
    session: i32,
    start: u64,
}

fn read(folder: &Path, boot_id: &str) -> Vec<Recorded> {
    let text = fs::read_to_string(folder.join(RECORD)).unwrap_or_default();
    let mut lines = text.lines();
    if boot_id.is_empty() || lines.next() != Some(boot_id) {
        return Vec::new();
    }
    lines
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some(Recorded {
                group: words.next()?.parse().ok()?,
                session: words.next()?.parse().ok()?,
                start: words.next()?.parse().ok()?,
            })
        })
        .collect()
}

impl Recorded {
    /// Kills every member of the group; the number of them.
    fn kill(&self) -> usize {
        // The leader's number in other hands: the group is gone.
        if Stat::read(self.group).is_some_and(|leader| leader.start != self.start) {
            return 0;
        }
        let pids = sysfs::entries(Path::new("/proc"))
            .into_iter()
            .filter_map(|path| sysfs::name(&path).parse::<i32>().ok());
        pids.filter(|pid| self.kill_member(*pid)).count()
    }

    /// The pidfd pins the process before it is looked at, so that what is killed is what was
    /// seen.
    fn kill_member(&self, pid: i32) -> bool {
        let ours = |stat: &Stat| {
            stat.group == self.group && stat.session == self.session && stat.start >= self.start
        };
        // A quick look first: most processes are others.
        if !Stat::read(pid).is_some_and(|stat| ours(&stat)) {
            return false;
        }
        let Some(pidfd) =
            Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            return false;
        };
        Stat::read(pid).is_some_and(|stat| ours(&stat))
            && pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
    }
}

/// What `/proc/PID/stat` tells, proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    group: i32,
    session: i32,
    start: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may hold blanks and parentheses of its own.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // A zombie is beyond killing.
        if fields.first() == Some(&"Z") {
            return None;
        }
        Some(Self {
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_behind_any_name() {
        let fields = "S 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9876 0";
        let stat = Stat::parse(&format!("42 (a) b (c) {fields}"));
        assert_eq!(
            stat,
            Some(Stat {
                group: 42,
                session: 7,
                start: 9876
            })
        );
        assert_eq!(Stat::parse("42 (x) Z 1 42 7"), None);
        assert_eq!(Stat::parse(""), None);
        assert!(Stat::read(std::process::id().cast_signed()).is_some());
    }

    #[test]
    fn a_record_of_another_boot_names_nobody() {
        let folder = tempfile::tempdir().expect("folder");
        begin(folder.path(), "boot-1").expect("record");
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("pid");
        record(folder.path(), own).expect("record");
        assert_eq!(read(folder.path(), "boot-1").len(), 1);
        assert_eq!(read(folder.path(), "boot-2"), []);
    }

    #[test]
    fn a_number_that_is_used_again_is_left_alone() {
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .expect("sleep");
        let pid = child.id().cast_signed();
        let stat = Stat::read(pid).expect("stat");
        let recorded = Recorded {
            group: pid,
            session: stat.session,
            start: stat.start,
        };
        let earlier = Recorded {
            start: stat.start - 1,
            ..recorded
        };
        assert_eq!(earlier.kill(), 0);
        assert!(child.try_wait().expect("child").is_none());
        assert_eq!(recorded.kill(), 1);
        assert!(!child.wait().expect("child").success());
    }
}
