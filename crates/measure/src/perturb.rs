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
        let (voluntary, involuntary) =
            parse(&sysfs::read(&task.join("status")).unwrap_or_default());
        sum.0 += voluntary;
        sum.1 += involuntary;
    }
    sum
}

fn parse(status: &str) -> (u64, u64) {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    (
        value("voluntary_ctxt_switches:").unwrap_or(0),
        value("nonvoluntary_ctxt_switches:").unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_from_the_status() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3";
        assert_eq!(parse(status), (12, 3));
        assert_eq!(parse(""), (0, 0));
    }

    #[test]
    fn a_window_counts_what_happens_in_it() {
        let window = Window::open();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(window.close().wakeups >= 5);
    }
}
