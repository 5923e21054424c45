//! A fraction of a sorted list, kept as two integers so that ranks are exact.

use std::fmt;

use crate::QuantileError;

/// A fraction `0 < q <= 1`. Integers, because `0.07 * 100.0` is above 7 in binary
/// and would move a rank by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantile {
    numerator: u32,
    denominator: u32,
}

impl Quantile {
    /// The median.
    pub const P50: Self = Self::fixed(50, 100);
    /// 90 %.
    pub const P90: Self = Self::fixed(90, 100);
    /// 95 %.
    pub const P95: Self = Self::fixed(95, 100);
    /// 99 %.
    pub const P99: Self = Self::fixed(99, 100);
    /// 99.9 %.
    pub const P999: Self = Self::fixed(999, 1000);

    const fn fixed(numerator: u32, denominator: u32) -> Self {
        Self {
            numerator,
            denominator,
        }
    }

    /// `numerator / denominator`, for instance `999 / 1000`.
    ///
    /// # Errors
    /// The fraction is 0, above 1, or divides by 0.
    pub const fn new(numerator: u32, denominator: u32) -> Result<Self, QuantileError> {
        if numerator == 0 || numerator > denominator {
            return Err(QuantileError {
                numerator,
                denominator,
            });
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }

    /// Whole percents from 1 to 100.
    ///
    /// # Errors
    /// `percent` is 0 or above 100.
    pub const fn percent(percent: u32) -> Result<Self, QuantileError> {
        Self::new(percent, 100)
    }

    /// The fraction as a float, for labels and plots.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// Nearest rank: `ceil(n * q)`, from 1. `n` must not be 0.
    #[must_use]
    pub fn nearest_rank(self, n: u64) -> u64 {
        let scaled = u128::from(n) * u128::from(self.numerator);
        let rank = scaled.div_ceil(u128::from(self.denominator));
        // Not above n, because the fraction is not above 1.
        (rank as u64).max(1)
    }

    /// The mmtests rank: `max(1, int(n * q))`, from 1 (`Stat.pm`, percentile and
    /// best-mean rows since 2019).
    #[must_use]
    pub fn mmtests_rank(self, n: u64) -> u64 {
        let scaled = u128::from(n) * u128::from(self.numerator);
        ((scaled / u128::from(self.denominator)) as u64).max(1)
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.as_f64() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_small_lists() {
        // n = 10, p = 99: mmtests takes the 9th of ten, nearest rank the 10th.
        assert_eq!(Quantile::P99.mmtests_rank(10), 9);
        assert_eq!(Quantile::P99.nearest_rank(10), 10);
        assert_eq!(Quantile::P50.nearest_rank(5), 3);
        assert_eq!(Quantile::P50.nearest_rank(4), 2);
        assert_eq!(Quantile::percent(25).unwrap().mmtests_rank(3), 1);
        assert_eq!(Quantile::percent(7).unwrap().nearest_rank(100), 7);
        assert_eq!(Quantile::P999.nearest_rank(1000), 999);
        assert_eq!(
            Quantile::P999.nearest_rank(u64::MAX),
            18_428_297_329_635_842_064
        );
    }

    #[test]
    fn fractions_outside_are_refused() {
        assert!(Quantile::new(0, 100).is_err());
        assert!(Quantile::new(101, 100).is_err());
        assert!(Quantile::new(0, 0).is_err());
        assert!(Quantile::new(1, 1).is_ok());
        let said = Quantile::percent(120).unwrap_err().to_string();
        assert!(said.contains("120/100"), "{said}");
    }
}
