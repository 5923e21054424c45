//! By how much do two sets differ? The Hodges-Lehmann shift and its interval.

use crate::SampleSet;
use crate::two_sample::u_cumulative;

/// The outcome of [`hodges_lehmann`], in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Median of all differences new - base.
    pub estimate: f64,
    /// Interval with at least the confidence asked for; `None` if the sets are too
    /// small for it.
    pub interval: Option<(f64, f64)>,
}

/// Up to this product of the two counts the interval uses the exact distribution.
const EXACT_PAIRS: u64 = 2500;

/// The Hodges-Lehmann estimate of the shift from `base` to `new`: the median of
/// all pairwise differences. One wild sample moves it little. The interval inverts
/// the Mann-Whitney test; `confidence` lies inside 0..1, for instance 0.95.
#[must_use]
pub fn hodges_lehmann(base: &SampleSet, new: &SampleSet, confidence: f64) -> Shift {
    let pairs = base.n() as u64 * new.n() as u64;
    let kth = |k| kth_difference(base.ascending(), new.ascending(), k);
    let upper = kth(pairs / 2 + 1);
    let estimate = if pairs % 2 == 1 {
        upper
    } else {
        let lower = kth(pairs / 2);
        lower + (upper - lower) / 2.0
    };
    let interval =
        interval_rank(base.n(), new.n(), confidence).map(|rank| (kth(rank), kth(pairs + 1 - rank)));
    Shift { estimate, interval }
}

/// Rank (from 1) of the lower end among the sorted differences.
fn interval_rank(n: usize, m: usize, confidence: f64) -> Option<u64> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    // A hair of room: 1 - 0.9 is a little less than 0.1 in binary.
    let tail = (1.0 - confidence) / 2.0 * (1.0 + 1e-9);
    if n as u64 * m as u64 <= EXACT_PAIRS {
        // The largest k with P(U < k) <= tail; P(U <= i) sits at index i.
        let below = u_cumulative(n, m)
            .iter()
            .take_while(|p| **p <= tail)
            .count();
        return (below > 0).then_some(below as u64);
    }
    let (n, m) = (n as f64, m as f64);
    let z = crate::student_t_quantile(1.0 - tail, 1e9)?;
    let rank = (n * m / 2.0 - z * (n * m * (n + m + 1.0) / 12.0).sqrt()).floor();
    (rank >= 1.0).then_some(rank as u64)
}

/// The `k`-th smallest (from 1) of all differences, without listing them: bisection
/// over the floats, counting with two indices.
fn kth_difference(base: &[f64], new: &[f64], k: u64) -> f64 {
    let (mut low, mut high) = (
        ordered(new[0] - base[base.len() - 1]),
        ordered(new[new.len() - 1] - base[0]),
    );
    while low < high {
        let middle = low + (high - low) / 2;
        if differences_up_to(base, new, from_ordered(middle)) >= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    from_ordered(low)
}

fn differences_up_to(base: &[f64], new: &[f64], limit: f64) -> u64 {
    let mut count = 0;
    let mut from = 0;
    // A larger new sample needs a larger base sample to stay below the limit.
    for value in new {
        while from < base.len() && value - base[from] > limit {
            from += 1;
        }
        count += (base.len() - from) as u64;
    }
    count
}

/// Maps floats to integers of the same order.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | (1 << 63)
    } else {
        !bits
    }
}

fn from_ordered(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 {
        key & !(1 << 63)
    } else {
        !key
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[f64]) -> SampleSet {
        SampleSet::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn by_hand() {
        // Differences: 3 4 5, 2 3 4, 1 2 3 -> median 3.
        let shift = hodges_lehmann(&set(&[1.0, 2.0, 3.0]), &set(&[4.0, 5.0, 6.0]), 0.9);
        assert_eq!(shift.estimate, 3.0);
        // 1/20 of the orders lie in each tail, so the ends are the outermost ones.
        assert_eq!(shift.interval, Some((1.0, 5.0)));
        let wider = hodges_lehmann(&set(&[1.0, 2.0, 3.0]), &set(&[4.0, 5.0, 6.0]), 0.95);
        assert_eq!(wider.interval, None);
    }

    #[test]
    fn one_wild_sample_moves_it_little() {
        let base = set(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        let calm = hodges_lehmann(&base, &set(&[11.0, 12.0, 13.0, 14.0, 15.0]), 0.95);
        let wild = hodges_lehmann(&base, &set(&[11.0, 12.0, 13.0, 14.0, 9000.0]), 0.95);
        assert_eq!(calm.estimate, 1.0);
        assert!(wild.estimate <= 2.0, "{wild:?}");
    }

    #[test]
    fn keys_keep_order_and_value() {
        let values = [-1e150, -2.5, -1e-150, 0.0, 1e-150, 3.0, 1e150];
        for pair in values.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]));
        }
        for value in values {
            assert_eq!(from_ordered(ordered(value)), value);
        }
    }
}
