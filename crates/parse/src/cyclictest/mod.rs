//! cyclictest: from threads to the samples of a trial.

pub(crate) mod histogram;
pub(crate) mod json;
pub(crate) mod text;

use std::collections::BTreeMap;

use klab_model::{Direction, Sample, Unit};

use crate::parsed::{known_metric, sample};
use crate::{Parsed, Remark};

/// What one thread measured, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Thread {
    cycles: u64,
    min_us: f64,
    avg_us: f64,
    max_us: f64,
}

/// Latencies of all threads together.
#[derive(Debug, Clone, Default, PartialEq)]
struct Histogram {
    /// Latency in the unit of the file -> how often.
    buckets: BTreeMap<u64, u64>,
    /// Units of the file per microsecond. A divisor, because 1000 is exact and 0.001 is not.
    units_per_us: f64,
}

/// Percentiles: name, and fraction as integers so that ranks are exact.
const PERCENTILES: [(&str, u64, u64); 4] = [
    ("cyclictest.latency.p50", 50, 100),
    ("cyclictest.latency.p90", 90, 100),
    ("cyclictest.latency.p99", 99, 100),
    ("cyclictest.latency.p99.9", 999, 1000),
];

fn latency(metric: &str, us: f64) -> Sample {
    sample(metric, us, Unit::Microseconds, Direction::LowerIsBetter)
}

/// The samples of a trial: the largest maximum, the mean over all cycles, the smallest
/// minimum. `threads` is not empty and each has cycles.
fn summarise(parsed: &mut Parsed, threads: &[Thread]) {
    let min = threads
        .iter()
        .map(|t| t.min_us)
        .fold(f64::INFINITY, f64::min);
    let max = threads
        .iter()
        .map(|t| t.max_us)
        .fold(f64::NEG_INFINITY, f64::max);
    let cycles: f64 = threads.iter().map(|t| t.cycles as f64).sum();
    let avg: f64 = threads
        .iter()
        .map(|t| t.avg_us * (t.cycles as f64 / cycles))
        .sum();
    parsed.samples.push(latency("cyclictest.latency.min", min));
    parsed.samples.push(latency("cyclictest.latency.avg", avg));
    parsed.samples.push(latency("cyclictest.latency.max", max));
}

/// Percentiles by nearest rank over all cycles. The latencies above the histogram have
/// no value, so a rank among them gives a remark and no sample.
fn percentiles(parsed: &mut Parsed, histogram: &Histogram, cycles: u64) {
    let inside: u64 = histogram.buckets.values().sum();
    if inside == 0 {
        return;
    }
    let all = cycles.max(inside);
    for (metric, numerator, denominator) in PERCENTILES {
        let scaled = u128::from(all) * u128::from(numerator);
        let rank = scaled.div_ceil(u128::from(denominator));
        match histogram.at_rank(rank) {
            Some(us) => parsed.samples.push(latency(metric, us)),
            None => parsed.remarks.push(Remark::BeyondHistogram {
                metric: known_metric(metric),
                overflows: all - inside,
                cycles: all,
            }),
        }
    }
}

impl Histogram {
    /// The latency at `rank` (from 1), in microseconds.
    fn at_rank(&self, rank: u128) -> Option<f64> {
        let mut seen = 0_u128;
        let bucket = self.buckets.iter().find(|(_, count)| {
            seen += u128::from(**count);
            seen >= rank
        });
        bucket.map(|(latency, _)| *latency as f64 / self.units_per_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResultFormat;

    fn values(parsed: &Parsed) -> Vec<(&str, f64)> {
        parsed
            .samples
            .iter()
            .map(|s| (s.metric.as_str(), s.value))
            .collect()
    }

    #[test]
    fn the_mean_is_weighted_by_cycles() {
        let mut parsed = Parsed::new(ResultFormat::CyclictestText);
        let busy = Thread {
            cycles: 300,
            min_us: 2.0,
            avg_us: 10.0,
            max_us: 50.0,
        };
        let idle = Thread {
            cycles: 100,
            min_us: 1.0,
            avg_us: 30.0,
            max_us: 40.0,
        };
        summarise(&mut parsed, &[busy, idle]);
        assert_eq!(
            values(&parsed),
            [
                ("cyclictest.latency.min", 1.0),
                ("cyclictest.latency.avg", 15.0),
                ("cyclictest.latency.max", 50.0)
            ]
        );
    }

    #[test]
    fn ranks_above_the_histogram_have_no_value() {
        let mut parsed = Parsed::new(ResultFormat::CyclictestJson);
        let buckets = BTreeMap::from([(3, 60), (7, 35)]);
        let histogram = Histogram {
            buckets,
            units_per_us: 1.0,
        };
        percentiles(&mut parsed, &histogram, 100);
        assert_eq!(
            values(&parsed),
            [
                ("cyclictest.latency.p50", 3.0),
                ("cyclictest.latency.p90", 7.0)
            ]
        );
        assert_eq!(parsed.remarks.len(), 2);
        assert_eq!(
            parsed.remarks[0].to_string(),
            "cyclictest.latency.p99 lies above the histogram (5 of 100 latencies do); \
             give cyclictest a larger -h"
        );
    }

    #[test]
    fn ranks_at_the_edge_of_a_bucket() {
        let at = |rank| {
            let buckets = BTreeMap::from([(3, 2), (9, 1)]);
            Histogram {
                buckets,
                units_per_us: 1000.0,
            }
            .at_rank(rank)
        };
        assert_eq!(at(1), Some(0.003));
        assert_eq!(at(2), Some(0.003));
        assert_eq!(at(3), Some(0.009));
        assert_eq!(at(4), None);
    }
}
