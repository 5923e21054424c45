//! What benchmarks print: a figure beside a peer or a limit of the same run.
//!
//! Machines are noisy and differ, so a time alone says little: each benchmark measures a
//! peer's work in turn with its own and prints the ratio.

use std::time::{Duration, Instant};

/// How long one call takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}

/// Measures `own` and `peer` in turn, `rounds` times after a tenth of that to warm up, and
/// prints medians, 99th percentiles and the ratio of the medians. Both return the time of the
/// part that counts.
///
/// # Panics
/// If there are no rounds.
pub fn compare(
    (name, mut own): (&str, impl FnMut() -> Duration),
    (peer_name, mut peer): (&str, impl FnMut() -> Duration),
    rounds: usize,
) {
    assert!(rounds > 0, "{name}: nothing to measure");
    for _ in 0..rounds.div_ceil(10) {
        own();
        peer();
    }
    let (mut owns, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        owns.push(own());
        peers.push(peer());
    }
    let (own, peer) = (Spread::of(owns), Spread::of(peers));
    let ratio = own.median.as_secs_f64() / peer.median.as_secs_f64();
    crate::say(&format!(
        "{name}: {own}; {ratio:.2} times {peer_name} ({peer}); n {rounds}"
    ));
}

/// Prints a figure beside the limit that it must keep.
pub fn limit(name: &str, value: f64, limit: f64, unit: &str) {
    let percent = 100.0 * value / limit;
    crate::say(&format!(
        "{name}: {value:.1} {unit}; {percent:.0} % of the limit, {limit} {unit}"
    ));
}

/// Resident memory of process `id` in MB, after `/proc/PID/status`; `None` if it is gone.
pub fn resident_mb(id: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

struct Spread {
    median: Duration,
    p99: Duration,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        Self {
            median: at(50),
            p99: at(99),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "median {:.1?}, p99 {:.1?}", self.median, self.p99)
    }
}
