//! The rules by which mmtests stars a row, over time.
//!
//! A starred row of `compare-mmtests.pl` says "these two differ". The rule changed
//! in November 2024, so a table must be read, and written, with the rule named:
//!
//! | rule | from | to |
//! |---|---|---|
//! | [`StarRule::TTest`] | 2018-10 | 2024-11 |
//! | [`StarRule::Interval`] | 2024-11 | today |

use crate::{Moments, two_sided_p};

/// Below this p value the t-test rule stars.
pub const STAR_P: f64 = 0.10;

/// Half-width of the interval rule in standard deviations.
pub const STAR_Z: f64 = 1.96;

/// How mmtests decides whether a row gets stars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StarRule {
    /// 2018-10 to 2024-11: t-test with `n1 + n2 - 2` degrees of freedom, p < 0.10.
    TTest,
    /// Since 2024-11: the intervals mean ± 1.96 stddev of both sides do not touch.
    Interval,
}

/// The outcome of [`t_test`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledTTest {
    /// `(new - base) / sqrt(s1^2/n1 + s2^2/n2)`; `None` if neither side varies.
    pub t: Option<f64>,
    /// `n1 + n2 - 2`.
    pub df: usize,
    /// Two-sided p value; `None` if neither side varies.
    pub p: Option<f64>,
    /// Whether the row is starred.
    pub starred: bool,
}

/// The t-test of 2018-2024: unequal variances in the error, but the degrees of
/// freedom of the pooled test. An undefined spread counts as 0; if neither side
/// varies, the row is starred as soon as the means differ.
#[must_use]
pub fn t_test(base: &Moments, new: &Moments) -> PooledTTest {
    let df = (base.n + new.n).saturating_sub(2);
    let error = standard_error(base).hypot(standard_error(new));
    if error == 0.0 {
        return PooledTTest {
            t: None,
            df,
            p: None,
            starred: base.mean != new.mean,
        };
    }
    let t = (new.mean - base.mean) / error;
    let p = two_sided_p(t, df as f64);
    PooledTTest {
        t: Some(t),
        df,
        p,
        starred: p.is_some_and(|p| p < STAR_P),
    }
}

fn standard_error(side: &Moments) -> f64 {
    side.stddev.unwrap_or(0.0) / (side.n.max(1) as f64).sqrt()
}

/// The interval mean ± 1.96 stddev (not divided by the root of n) of the rule since
/// 2024-11. `None` for a single sample.
#[must_use]
pub fn interval(side: &Moments) -> Option<(f64, f64)> {
    let half = half_width(side)?;
    Some((side.mean - half, side.mean + half))
}

fn half_width(side: &Moments) -> Option<f64> {
    if side.n < 2 {
        return None;
    }
    side.stddev.map(|s| STAR_Z * s)
}

/// mmtests' `cidiff`: the difference of the means in units of the two facing
/// half-widths together; the plain difference if both are 0. The "s" number of a
/// ratio table. `None` if a side has a single sample.
#[must_use]
pub fn cidiff(base: &Moments, new: &Moments) -> Option<f64> {
    let widths = half_width(base)? + half_width(new)?;
    let difference = new.mean - base.mean;
    Some(if widths == 0.0 {
        difference
    } else {
        difference / widths
    })
}

/// Whether `rule` stars the row.
#[must_use]
pub fn starred(rule: StarRule, base: &Moments, new: &Moments) -> bool {
    match rule {
        StarRule::TTest => t_test(base, new).starred,
        StarRule::Interval => cidiff(base, new).is_some_and(|d| d.abs() > 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(n: usize, mean: f64, stddev: f64) -> Moments {
        Moments {
            n,
            mean,
            stddev: Some(stddev),
        }
    }

    /// One row of a table: what was measured on both sides and what was printed.
    struct Row {
        base: (f64, f64),
        new: (f64, f64),
        starred: bool,
        cidiff: f64,
    }

    /// The pft rows posted in May 2022, as (mean, stddev).
    const PFT: [Row; 5] = [
        row(
            (886331.5718, 2302.9105),
            (885462.7479, 2065.0845),
            false,
            0.10,
        ),
        row(
            (2337706.1583, 7275.2442),
            (2332130.4909, 6033.262),
            true,
            0.21,
        ),
        row(
            (2851594.2897, 24726.0328),
            (2844123.9307, 12525.1026),
            false,
            0.10,
        ),
        row(
            (3543251.5507, 9974.2542),
            (3516889.0442, 9543.9627),
            true,
            0.69,
        ),
        row(
            (3947098.0024, 9468.0191),
            (3916162.8476, 7958.2607),
            true,
            0.91,
        ),
    ];

    const fn row(base: (f64, f64), new: (f64, f64), starred: bool, cidiff: f64) -> Row {
        Row {
            base,
            new,
            starred,
            cidiff,
        }
    }

    impl Row {
        fn sides(&self, n: usize) -> (Moments, Moments) {
            (
                side(n, self.base.0, self.base.1),
                side(n, self.new.0, self.new.1),
            )
        }
    }

    #[test]
    fn the_published_stars_follow_from_the_t_test() {
        for n in 9..=35 {
            for row in PFT {
                let (base, new) = row.sides(n);
                assert_eq!(
                    starred(StarRule::TTest, &base, &new),
                    row.starred,
                    "n = {n}"
                );
            }
        }
    }

    #[test]
    fn the_smallest_count_that_stars_each_row() {
        // Where the answer turns, row by row.
        for (row, turns) in PFT.iter().zip([36, 9, 39, 3, 2]) {
            let stars = |n: &usize| {
                let (base, new) = row.sides(*n);
                starred(StarRule::TTest, &base, &new)
            };
            assert_eq!((2..60).find(stars), Some(turns));
        }
    }

    #[test]
    fn the_interval_rule_stars_none_of_them() {
        for row in PFT {
            let (base, new) = row.sides(12);
            assert!(!starred(StarRule::Interval, &base, &new));
            let found = cidiff(&base, &new).unwrap().abs();
            assert!(
                (found - row.cidiff).abs() < 0.005,
                "{found} is not {}",
                row.cidiff
            );
        }
    }

    #[test]
    fn make_runs_as_posted() {
        // sys time of two builds each: only this one falls below 0.10.
        let base = side(2, 134.73, 0.011314);
        let test = t_test(&base, &side(2, 133.879, 0.306884));
        assert_eq!(test.df, 2);
        assert!((test.t.unwrap() + 3.919).abs() < 1e-3);
        assert!((test.p.unwrap() - 0.0594).abs() < 1e-4);
        assert!(test.starred);
        let test = t_test(&base, &side(2, 134.3595, 0.210011));
        assert!((test.p.unwrap() - 0.1303).abs() < 1e-4);
        assert!(!test.starred);
    }

    #[test]
    fn without_spread_any_difference_counts() {
        let single = |mean| Moments {
            n: 1,
            mean,
            stddev: None,
        };
        assert!(t_test(&single(1.0), &single(2.0)).starred);
        assert!(!t_test(&single(1.0), &single(1.0)).starred);
        assert_eq!(t_test(&single(1.0), &single(2.0)).p, None);
        // The newer rule needs two samples, and more than one unit of difference.
        assert!(!starred(StarRule::Interval, &single(1.0), &single(9.0)));
        assert!(starred(
            StarRule::Interval,
            &side(3, 1.0, 0.0),
            &side(3, 2.5, 0.0)
        ));
        assert!(!starred(
            StarRule::Interval,
            &side(3, 1.0, 0.0),
            &side(3, 1.5, 0.0)
        ));
        assert_eq!(interval(&side(3, 10.0, 1.0)), Some((8.04, 11.96)));
    }
}
