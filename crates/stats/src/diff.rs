//! Differences in percent, by the rules of mmtests (`bin/lib/MMTests/Stat.pm`).

/// Which way a number should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Better {
    /// Smaller is better: times, latencies.
    Lower,
    /// Larger is better: throughput, rates.
    Higher,
}

/// Percent by which `new` is above `base`: `100 * new / base - 100`.
/// For numbers where higher is better; positive is an improvement.
///
/// Edge cases as in mmtests: 0 if both are equal or `new` is 0; 100 if `base` is 0
/// or NaN.
#[must_use]
pub fn pdiff(new: f64, base: f64) -> f64 {
    if new == base || new == 0.0 {
        0.0
    } else if base == 0.0 || base.is_nan() {
        100.0
    } else {
        new * 100.0 / base - 100.0
    }
}

/// Percent by which `new` is below `base`: `100 - 100 * new / base`.
/// For numbers where lower is better; positive is an improvement.
///
/// Edge cases as in mmtests: 0 if both are equal; 100 if `new` is 0; -99 if `base` is 0.
#[must_use]
pub fn pndiff(new: f64, base: f64) -> f64 {
    if new == base {
        0.0
    } else if new == 0.0 {
        100.0
    } else if base == 0.0 {
        -99.0
    } else {
        100.0 - new * 100.0 / base
    }
}

/// The improvement of `new` over `base` in percent; positive is better in both
/// directions. [`pdiff`] or [`pndiff`].
#[must_use]
pub fn improvement(new: f64, base: f64, better: Better) -> f64 {
    match better {
        Better::Lower => pndiff(new, base),
        Better::Higher => pdiff(new, base),
    }
}

/// `new / base` by mmtests' `rdiff`: 0 if `base` is 0 or NaN, 1 if `new` is 0 or NaN.
#[must_use]
pub fn ratio(new: f64, base: f64) -> f64 {
    if base == 0.0 || base.is_nan() {
        0.0
    } else if new == 0.0 || new.is_nan() {
        1.0
    } else {
        new / base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_digits(value: f64) -> String {
        format!("{value:.2}")
    }

    #[test]
    fn edge_cases_are_those_of_mmtests() {
        assert_eq!(pdiff(3.0, 3.0), 0.0);
        assert_eq!(pdiff(0.0, 3.0), 0.0);
        assert_eq!(pdiff(3.0, 0.0), 100.0);
        assert_eq!(pdiff(3.0, f64::NAN), 100.0);
        assert_eq!(pdiff(0.0, 0.0), 0.0);
        assert_eq!(pndiff(3.0, 3.0), 0.0);
        assert_eq!(pndiff(0.0, 3.0), 100.0);
        assert_eq!(pndiff(3.0, 0.0), -99.0);
        assert_eq!(ratio(3.0, 0.0), 0.0);
        assert_eq!(ratio(0.0, 3.0), 1.0);
        assert_eq!(ratio(3.0, 2.0), 1.5);
    }

    /// Rows of mmtests tables posted to the kernel lists (stutterp and pft, May 2022;
    /// sparsetruncate and bonnie, October 2017).
    #[test]
    fn published_rows_come_out_the_same() {
        let lower = [
            (15.9557, 15.4045, "3.45"),
            (47.7123, 100.0275, "-109.65"),
            (62.8025, 1947.3862, "-3000.81"),
            (204543.9436, 5805.2478, "97.16"),
            (688684.5335, 669992.7705, "2.71"),
            (24726.0328, 12525.1026, "49.34"),
            (149.0, 141.0, "5.37"),
            (201.0, 195.0, "2.99"),
            (151.0, 142.0, "5.96"),
        ];
        for (base, new, said) in lower {
            assert_eq!(two_digits(improvement(new, base, Better::Lower)), said);
        }
        let higher = [
            (886331.5718, 885462.7479, "-0.10"),
            (3947098.0024, 3916162.8476, "-0.78"),
            (39.48, 47.44, "20.16"),
            (23377.66, 23764.79, "1.66"),
        ];
        for (base, new, said) in higher {
            assert_eq!(two_digits(improvement(new, base, Better::Higher)), said);
        }
    }
}
