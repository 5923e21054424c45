//! What the agent itself cost while a workload ran.

use std::path::Path;
use std::time::Duration;

use klab_model::Perturbation;
use rustix::time::{ClockId, clock_gettime};

use crate::sysfs;

/// The start of a quiet window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    wakeups: u64,
    preemptions: u64,
    cpu: Duration,
}

impl Window {
    /// Opens the window. The CPU time is read last, so that reading is not counted.
    pub(crate) fn open() -> Self {
        let (wakeups, preemptions) = switches();
        Self {
            wakeups,
            preemptions,
            cpu: cpu_time(),
        }
    }

    /// What happened since; the CPU time is read first.
    pub(crate) fn close(self) -> Perturbation {
        let cpu = cpu_time();
        let (wakeups, preemptions) = switches();
        Perturbation {
            wakeups: wakeups.saturating_sub(self.wakeups),
            preemptions: preemptions.saturating_sub(self.preemptions),
            cpu_us: u64::try_from(cpu.saturating_sub(self.cpu).as_micros()).unwrap_or(u64::MAX),
            rss_kib: resident(&sysfs::read(Path::new("/proc/self/status")).unwrap_or_default()),
        }
    }
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .unwrap_or_default()
}

/// Voluntary and involuntary context switches of all threads of this process.
fn switches() -> (u64, u64) {
    let mut sum = (0, 0);
    for task in sysfs::entries(Path::new("/proc/self/task")) {
        let status = sysfs::read(&task.join("status")).unwrap_or_default();
        sum.0 += number(&status, "voluntary_ctxt_switches:");
        sum.1 += number(&status, "nonvoluntary_ctxt_switches:");
    }
    sum
}

/// Resident memory in KiB, after `/proc/PID/status`.
fn resident(status: &str) -> u64 {
    number(status, "VmRSS:")
}

/// The number behind `name` in a status file of proc(5); 0 where there is none.
fn number(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_status() {
        let status = "Name:\tx\nVmRSS:\t    6144 kB\nvoluntary_ctxt_switches:\t12\n\
                      nonvoluntary_ctxt_switches:\t3";
        assert_eq!(number(status, "voluntary_ctxt_switches:"), 12);
        assert_eq!(number(status, "nonvoluntary_ctxt_switches:"), 3);
        assert_eq!(resident(status), 6144);
        assert_eq!(resident("VmRSS:"), 0);
    }

    #[test]
    fn a_window_counts_what_happens_in_it() {
        let window = Window::open();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let cost = window.close();
        assert!(cost.wakeups >= 5 && cost.rss_kib > 100, "{cost:?}");
    }
}
