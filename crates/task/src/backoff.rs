//! How long to wait before the next try.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Exponential back-off with equal jitter: try `n` waits between half of
/// `first * 2^n` and all of it, and never longer than `max`.
///
/// The jitter keeps many boards that lost the same controller from coming back at the
/// same moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    tries: u32,
}

impl Backoff {
    /// Waits of about `first` at first and at most `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            tries: 0,
        }
    }

    /// The next wait. `random` is at least 0 and less than 1.
    pub fn next(&mut self, random: f64) -> Duration {
        let factor = 1_u32.checked_shl(self.tries).unwrap_or(u32::MAX);
        let full = self.first.saturating_mul(factor).min(self.max);
        self.tries = self.tries.saturating_add(1);
        let random = if random.is_finite() {
            random.clamp(0.0, 1.0)
        } else {
            0.0
        };
        full.mul_f64(0.5 + random / 2.0)
    }

    /// After a success the next wait is short again.
    pub const fn reset(&mut self) {
        self.tries = 0;
    }
}

/// A random number that is at least 0 and less than 1, good enough for jitter.
pub fn system_random() -> f64 {
    // Every RandomState has new random keys.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let waits: Vec<u64> = (0..5).map(|_| backoff.next(1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.next(0.0), Duration::from_millis(500));
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_longest(tries in 0_usize..100, random in 0.0..1.0) {
            let max = Duration::from_secs(30);
            let mut backoff = Backoff::new(Duration::from_millis(100), max);
            for _ in 0..tries {
                let wait = backoff.next(random);
                prop_assert!(wait <= max && wait >= Duration::from_millis(50));
            }
        }
    }

    #[test]
    fn random_numbers_are_in_range_and_differ() {
        let numbers: Vec<f64> = (0..100).map(|_| system_random()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        assert!(numbers.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
