//! Do two sets differ? Welch's t-test on means, Mann-Whitney on ranks.

use statrs::function::erf::erfc;

use crate::{SampleSet, student_t_quantile, two_sided_p};

/// Up to this product of the two counts the rank test is computed exactly.
const EXACT_PAIRS: usize = 2500;

/// The outcome of [`welch`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Difference of the means, new - base.
    pub difference: f64,
    /// The difference in units of its standard error.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub df: f64,
    /// Two-sided p value.
    pub p: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
}

impl TTest {
    /// Confidence interval of the difference, new - base; `confidence` lies inside
    /// 0..1, for instance 0.95.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let q = student_t_quantile(0.5 + confidence / 2.0, self.df).filter(|q| *q >= 0.0)?;
        let half = q * self.standard_error;
        Some((self.difference - half, self.difference + half))
    }
}

/// Welch's t-test: means of two sets whose variances may differ. `None` if a set
/// has a single sample or neither varies.
#[must_use]
pub fn welch(base: &SampleSet, new: &SampleSet) -> Option<TTest> {
    let part = |set: &SampleSet| set.stddev().map(|s| s * s / set.n() as f64);
    let (a, b) = (part(base)?, part(new)?);
    let variance = a + b;
    if variance <= 0.0 {
        return None;
    }
    // As shares of the sum, so that squares cannot leave the range of f64.
    let (a, b) = (a / variance, b / variance);
    let df = 1.0 / (a * a / (base.n() as f64 - 1.0) + b * b / (new.n() as f64 - 1.0));
    let standard_error = variance.sqrt();
    let difference = new.mean() - base.mean();
    let t = difference / standard_error;
    Some(TTest {
        difference,
        t,
        df,
        p: two_sided_p(t, df)?,
        standard_error,
    })
}

/// How [`mann_whitney`] found its p value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankMethod {
    /// Counted over all orders; no ties, small sets.
    Exact,
    /// Normal approximation with correction for ties and continuity.
    Normal,
}

/// The outcome of [`mann_whitney`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the sample of `new` is the larger one; a tie counts half.
    pub u: f64,
    /// Two-sided p value.
    pub p: f64,
    /// How the p value was found.
    pub method: RankMethod,
}

/// Mann-Whitney U test (Wilcoxon rank sum): does one set tend to larger values?
/// Needs no shape of the distribution, so it suits latencies.
#[must_use]
pub fn mann_whitney(base: &SampleSet, new: &SampleSet) -> MannWhitney {
    let (u, tie_term) = u_statistic(base.ascending(), new.ascending());
    let (n, m) = (base.n(), new.n());
    if tie_term == 0.0 && n * m <= EXACT_PAIRS {
        let p = exact_p(n, m, u as usize);
        return MannWhitney {
            u,
            p,
            method: RankMethod::Exact,
        };
    }
    MannWhitney {
        u,
        p: normal_p(n as f64, m as f64, u, tie_term),
        method: RankMethod::Normal,
    }
}

/// U of `new`, and the sum of `t^3 - t` over groups of `t` tied samples.
fn u_statistic(base: &[f64], new: &[f64]) -> (f64, f64) {
    let mut u = 0.0;
    let mut tie_term = 0.0;
    let (mut i, mut j) = (0, 0);
    while i < base.len() || j < new.len() {
        let value = match (base.get(i), new.get(j)) {
            (Some(a), Some(b)) => a.min(*b),
            (Some(a), None) => *a,
            (None, Some(b)) => *b,
            (None, None) => break,
        };
        let in_base = base[i..].iter().take_while(|x| **x == value).count();
        let in_new = new[j..].iter().take_while(|x| **x == value).count();
        u += in_new as f64 * (i as f64 + in_base as f64 / 2.0);
        let tied = (in_base + in_new) as f64;
        tie_term += tied.powi(3) - tied;
        i += in_base;
        j += in_new;
    }
    (u, tie_term)
}

/// `P(U <= k)` for every `k` up to `n * m / 2`, under no difference and no ties.
pub(crate) fn u_cumulative(n: usize, m: usize) -> Vec<f64> {
    let top = n * m / 2;
    // ways[k]: number of orders with U = k, as the coefficients of the Gaussian
    // binomial: product over i of (1 - q^(m+i)) / (1 - q^i).
    let mut ways = vec![0.0_f64; top + 1];
    ways[0] = 1.0;
    let mut total = 1.0_f64;
    for i in 1..=n {
        for k in (m + i..=top).rev() {
            ways[k] -= ways[k - m - i];
        }
        for k in i..=top {
            ways[k] += ways[k - i];
        }
        total *= (m + i) as f64 / i as f64;
    }
    let mut sum = 0.0;
    ways.iter()
        .map(|count| {
            sum += count;
            (sum / total).clamp(0.0, 1.0)
        })
        .collect()
}

fn exact_p(n: usize, m: usize, u: usize) -> f64 {
    let smaller = u.min(n * m - u);
    (2.0 * u_cumulative(n, m)[smaller]).min(1.0)
}

fn normal_p(n: f64, m: f64, u: f64, tie_term: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * ((all + 1.0) - tie_term / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[f64]) -> SampleSet {
        SampleSet::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn welch_on_posted_build_times() {
        let base = set(&[134.738, 134.722]);
        let test = welch(&base, &set(&[133.662, 134.096])).unwrap();
        assert!((test.t + 3.919).abs() < 1e-3, "{test:?}");
        assert!((test.p - 0.1585).abs() < 1e-4, "{test:?}");
        let real = welch(&set(&[160.276, 160.136]), &set(&[160.067, 160.123])).unwrap();
        assert!((real.p - 0.3357).abs() < 1e-4, "{real:?}");
        let (low, high) = real.interval(0.95).unwrap();
        assert!(low < 0.0 && high > 0.0);
        assert_eq!(real.interval(1.0), None);
        assert_eq!(real.interval(f64::NAN), None);
    }

    #[test]
    fn welch_needs_spread() {
        assert_eq!(welch(&set(&[1.0]), &set(&[1.0, 2.0])), None);
        assert_eq!(welch(&set(&[1.0, 1.0]), &set(&[2.0, 2.0])), None);
    }

    #[test]
    fn the_distribution_of_u_is_the_counted_one() {
        // All choose(5, 2) = 10 orders of 2 and 3: U = 0 1 2 3 4 5 6 in 1 1 2 2 2 1 1 ways.
        assert_eq!(u_cumulative(2, 3), vec![0.1, 0.2, 0.4, 0.6]);
        // choose(8, 4) = 70, of which U <= 2 in 1 + 1 + 2 ways.
        assert!((u_cumulative(4, 4)[2] - 4.0 / 70.0).abs() < 1e-15);
        // Critical value table, two-sided 5 %: n = m = 10 rejects at U <= 23.
        let ten = u_cumulative(10, 10);
        assert!(2.0 * ten[23] <= 0.05 && 2.0 * ten[24] > 0.05);
        // n = 5, m = 8: U <= 6.
        let mixed = u_cumulative(5, 8);
        assert!(2.0 * mixed[6] <= 0.05 && 2.0 * mixed[7] > 0.05);
    }

    #[test]
    fn rank_test_by_hand() {
        let test = mann_whitney(&set(&[1.0, 2.0, 3.0]), &set(&[4.0, 5.0, 6.0]));
        assert_eq!(
            test,
            MannWhitney {
                u: 9.0,
                p: 0.1,
                method: RankMethod::Exact
            }
        );
        let tied = mann_whitney(&set(&[1.0, 1.0]), &set(&[1.0, 1.0, 1.0]));
        assert_eq!(
            tied,
            MannWhitney {
                u: 3.0,
                p: 1.0,
                method: RankMethod::Normal
            }
        );
        let half = mann_whitney(&set(&[1.0, 2.0]), &set(&[2.0, 3.0]));
        assert_eq!(half.u, 3.5);
    }

    #[test]
    fn the_approximation_meets_the_exact_test() {
        let exact = exact_p(40, 40, 600);
        let normal = normal_p(40.0, 40.0, 600.0, 0.0);
        assert!((exact - normal).abs() < 2e-3, "{exact} {normal}");
    }
}
