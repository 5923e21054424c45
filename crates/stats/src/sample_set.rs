//! A set of samples and what can be said about it alone.

use crate::sum::sum;
use crate::{Better, Quantile, SampleError};

/// Smallest magnitude besides 0 whose square is still a normal number.
const TINY: f64 = 1e-150;
/// Largest magnitude whose square can be summed without overflow.
const HUGE: f64 = 1e150;

/// One or more finite numbers, kept in ascending order.
///
/// Because the order of arrival is dropped, every estimate is the same to the last
/// bit however the samples came in.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSet {
    ascending: Vec<f64>,
}

/// Count, mean and spread of one side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of samples.
    pub n: usize,
    /// The mean that a table shows: arithmetic or harmonic.
    pub mean: f64,
    /// Standard deviation in the unit of the mean; `None` if it is undefined.
    pub stddev: Option<f64>,
}

impl SampleSet {
    /// Takes the numbers in any order.
    ///
    /// # Errors
    /// No number at all, a NaN or infinity, or a magnitude outside `1e-150..=1e150`.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Result<Self, SampleError> {
        let mut ascending: Vec<f64> = values.into_iter().collect();
        if ascending.is_empty() {
            return Err(SampleError::Empty);
        }
        for (index, value) in ascending.iter_mut().enumerate() {
            if !value.is_finite() {
                return Err(SampleError::NotFinite {
                    index,
                    value: *value,
                });
            }
            if *value != 0.0 && !(TINY..=HUGE).contains(&value.abs()) {
                return Err(SampleError::OutOfRange {
                    index,
                    value: *value,
                });
            }
            // One zero only: -0.0 would sort and print differently.
            *value += 0.0;
        }
        ascending.sort_by(f64::total_cmp);
        Ok(Self { ascending })
    }

    /// Number of samples, at least 1.
    #[must_use]
    pub fn n(&self) -> usize {
        self.ascending.len()
    }

    /// The samples, smallest first.
    #[must_use]
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }

    /// Smallest sample.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.ascending[0]
    }

    /// Largest sample.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.ascending[self.n() - 1]
    }

    /// Arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean_of(&self.ascending).clamp(self.min(), self.max())
    }

    /// Standard deviation of the sample, `sqrt(sum((x - mean)^2) / (n - 1))`.
    /// `None` for a single sample.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        if self.n() < 2 {
            return None;
        }
        let mean = self.mean();
        let n = self.n() as f64;
        let squares = sum(self.ascending.iter().map(|x| (x - mean).powi(2)));
        // The deviations from a rounded mean do not sum to 0; take that part out.
        let rest = sum(self.ascending.iter().map(|x| x - mean));
        let variance = (squares - rest * rest / n) / (n - 1.0);
        Some(variance.max(0.0).sqrt())
    }

    /// Spread relative to the mean in percent, by mmtests: `100 * stddev / mean`,
    /// where an undefined spread counts as 0 and a mean of 0 answers 0.
    #[must_use]
    pub fn coeffvar(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        100.0 * self.stddev().unwrap_or(0.0) / mean
    }

    /// Harmonic mean `n / sum(1/x)`; `None` if a sample is 0 or below.
    #[must_use]
    pub fn harmonic_mean(&self) -> Option<f64> {
        harmonic_mean_of(&self.ascending)
    }

    /// Spread around the harmonic mean `h`, by mmtests since 2024-11:
    /// `sqrt(h^4 * sum((1/x - 1/h)^2) / n)`. `None` where the mean is undefined.
    #[must_use]
    pub fn harmonic_stddev(&self) -> Option<f64> {
        let h = self.harmonic_mean()?;
        let squares = sum(self.ascending.iter().map(|x| (h / x - 1.0).powi(2)));
        Some(h * (squares / self.n() as f64).sqrt())
    }

    /// Geometric mean, through logarithms so that it cannot overflow; `None` if a
    /// sample is 0 or below.
    #[must_use]
    pub fn geometric_mean(&self) -> Option<f64> {
        if self.min() <= 0.0 {
            return None;
        }
        let logs = sum(self.ascending.iter().map(|x| x.ln()));
        Some((logs / self.n() as f64).exp().clamp(self.min(), self.max()))
    }

    /// Median: the middle sample, or the mean of the two middle ones.
    #[must_use]
    pub fn median(&self) -> f64 {
        let upper = self.n() / 2;
        if self.n() % 2 == 1 {
            self.ascending[upper]
        } else {
            let (a, b) = (self.ascending[upper - 1], self.ascending[upper]);
            a + (b - a) / 2.0
        }
    }

    /// Quantile by nearest rank: the smallest sample with at least that fraction of
    /// the samples at or below it. Always one of the samples.
    #[must_use]
    pub fn quantile(&self, q: Quantile) -> f64 {
        self.ascending[q.nearest_rank(self.n() as u64) as usize - 1]
    }

    /// Sample at `rank` (from 1), counted from the best one.
    fn ranked_best_first(&self, rank: usize, better: Better) -> f64 {
        match better {
            Better::Lower => self.ascending[rank - 1],
            Better::Higher => self.ascending[self.n() - rank],
        }
    }

    /// Percentile by mmtests: samples sorted best first, element
    /// `max(1, int(n * q))`, counted from 1. Rows `1st-qrtle`, `Max-99`, `Pctile.99`.
    #[must_use]
    pub fn mmtests_percentile(&self, q: Quantile, better: Better) -> f64 {
        self.ranked_best_first(q.mmtests_rank(self.n() as u64) as usize, better)
    }

    /// The best `max(1, int(n * q))` samples.
    #[must_use]
    pub fn best(&self, q: Quantile, better: Better) -> Self {
        let count = q.mmtests_rank(self.n() as u64) as usize;
        let kept = match better {
            Better::Lower => &self.ascending[..count],
            Better::Higher => &self.ascending[self.n() - count..],
        };
        Self {
            ascending: kept.to_vec(),
        }
    }

    /// Mean of the best samples, by mmtests: arithmetic where lower is better
    /// (`BAmean-99`), harmonic where higher is (`BHmean-99`, `None` if one of the
    /// samples is 0 or below).
    #[must_use]
    pub fn best_mean(&self, q: Quantile, better: Better) -> Option<f64> {
        let best = self.best(q, better);
        match better {
            Better::Lower => Some(best.mean()),
            Better::Higher => best.harmonic_mean(),
        }
    }

    /// The mean mmtests shows: arithmetic where lower is better, harmonic where
    /// higher is.
    #[must_use]
    pub fn mmtests_mean(&self, better: Better) -> Option<f64> {
        self.best_mean(Quantile::new(1, 1).ok()?, better)
    }

    /// Count, arithmetic mean and standard deviation.
    #[must_use]
    pub fn moments(&self) -> Moments {
        Moments {
            n: self.n(),
            mean: self.mean(),
            stddev: self.stddev(),
        }
    }
}

fn mean_of(values: &[f64]) -> f64 {
    sum(values.iter().copied()) / values.len() as f64
}

fn harmonic_mean_of(ascending: &[f64]) -> Option<f64> {
    let (min, max) = (*ascending.first()?, *ascending.last()?);
    if min <= 0.0 {
        return None;
    }
    let inverse = sum(ascending.iter().map(|x| x.recip()));
    Some((ascending.len() as f64 / inverse).clamp(min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[f64]) -> SampleSet {
        SampleSet::new(values.iter().copied()).unwrap()
    }

    fn near(found: f64, expected: f64) {
        let scale = expected.abs().max(1e-300);
        assert!(
            (found - expected).abs() <= 1e-12 * scale,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn unusable_numbers_are_named() {
        assert_eq!(SampleSet::new([]), Err(SampleError::Empty));
        let nan = SampleSet::new([1.0, f64::NAN]).unwrap_err();
        assert!(
            matches!(nan, SampleError::NotFinite { index: 1, .. }),
            "{nan}"
        );
        let inf = SampleSet::new([f64::NEG_INFINITY]).unwrap_err();
        assert!(matches!(inf, SampleError::NotFinite { index: 0, .. }));
        let huge = SampleSet::new([1.0, 2.0, 1e200]).unwrap_err();
        assert_eq!(
            huge,
            SampleError::OutOfRange {
                index: 2,
                value: 1e200
            }
        );
        assert!(SampleSet::new([0.0, -0.0, 1e-150, 1e150]).is_ok());
    }

    #[test]
    fn a_known_set() {
        // 2 4 4 4 5 5 7 9: mean 5, population spread 2, so sample spread sqrt(32/7).
        let s = set(&[9.0, 2.0, 4.0, 5.0, 4.0, 7.0, 4.0, 5.0]);
        assert_eq!((s.n(), s.min(), s.max(), s.mean()), (8, 2.0, 9.0, 5.0));
        near(s.stddev().unwrap(), (32.0_f64 / 7.0).sqrt());
        near(s.coeffvar(), 20.0 * (32.0_f64 / 7.0).sqrt());
        assert_eq!(s.median(), 4.5);
        assert_eq!(s.quantile(Quantile::P50), 4.0);
        near(set(&[1.0, 2.0, 4.0]).harmonic_mean().unwrap(), 12.0 / 7.0);
        near(set(&[1.0, 2.0, 4.0]).geometric_mean().unwrap(), 2.0);
    }

    #[test]
    fn means_of_what_has_none() {
        assert_eq!(set(&[1.0]).stddev(), None);
        assert_eq!(set(&[1.0]).coeffvar(), 0.0);
        assert_eq!(set(&[-1.0, 1.0]).coeffvar(), 0.0);
        assert_eq!(set(&[0.0, 1.0]).harmonic_mean(), None);
        assert_eq!(set(&[-1.0, 1.0]).geometric_mean(), None);
        assert_eq!(set(&[0.0, 1.0]).harmonic_stddev(), None);
    }

    #[test]
    fn a_small_spread_on_a_large_mean_is_not_lost() {
        // NIST StRD NumAcc4: 1001 values around 1e7, certified mean 10000000.2 and
        // standard deviation 0.1.
        let mut values = vec![10000000.2];
        for _ in 0..500 {
            values.extend([10000000.1, 10000000.3]);
        }
        let s = set(&values);
        assert!((s.mean() - 10000000.2).abs() < 1e-8);
        assert!((s.stddev().unwrap() - 0.1).abs() < 1e-8);
    }

    #[test]
    fn speed_of_light_as_computed_exactly() {
        // The first ten of Michelson's 1879 series; expected values from rational arithmetic.
        let s = set(&[
            299.85, 299.74, 299.90, 300.07, 299.93, 299.85, 299.95, 299.98, 299.98, 299.88,
        ]);
        near(s.mean(), 299.913);
        assert!((s.stddev().unwrap() - 0.090927321404393).abs() < 1e-10);
    }

    #[test]
    fn make_runs_as_posted() {
        // Two `time make` runs: 160.276 s and 160.136 s.
        let s = set(&[160.276, 160.136]);
        near(s.mean(), 160.206);
        assert!((s.stddev().unwrap() - 0.098995).abs() < 1e-6);
    }

    #[test]
    fn mmtests_rows_count_from_the_best() {
        let s = set(&(1..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!(s.mmtests_percentile(Quantile::P99, Better::Lower), 9.0);
        assert_eq!(s.mmtests_percentile(Quantile::P99, Better::Higher), 2.0);
        let quarter = Quantile::percent(25).unwrap();
        assert_eq!(s.mmtests_percentile(quarter, Better::Lower), 2.0);
        assert_eq!(s.mmtests_percentile(quarter, Better::Higher), 9.0);
        assert_eq!(s.best_mean(Quantile::P50, Better::Lower), Some(3.0));
        near(
            s.best_mean(Quantile::percent(20).unwrap(), Better::Higher)
                .unwrap(),
            2.0 / (1.0 / 9.0 + 1.0 / 10.0),
        );
        assert_eq!(set(&[7.0]).best_mean(quarter, Better::Lower), Some(7.0));
        assert_eq!(s.mmtests_mean(Better::Lower), Some(5.5));
        assert_eq!(s.mmtests_mean(Better::Higher), s.harmonic_mean());
    }

    #[test]
    fn spread_around_the_harmonic_mean() {
        // x = 1, 3: h = 1.5, sum((1/x - 1/h)^2) = 2/9, h^4/n * 2/9 = 0.5625.
        near(set(&[1.0, 3.0]).harmonic_stddev().unwrap(), 0.75);
    }
}
