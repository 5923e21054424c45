//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::checked_beta_reg;

/// `P(T <= t)` for `df` degrees of freedom. `None` if `df` is not above 0 and
/// finite, or `t` is NaN.
#[must_use]
pub fn student_t_cdf(t: f64, df: f64) -> Option<f64> {
    let tail = two_sided_p(t, df)? / 2.0;
    Some(if t > 0.0 { 1.0 - tail } else { tail })
}

/// `P(|T| > |t|)` for `df` degrees of freedom: the p value of a two-sided test.
/// `None` if `df` is not above 0 and finite, or `t` is NaN.
///
/// Computed as the regularised incomplete beta `I_x(df/2, 1/2)` with
/// `x = df / (df + t^2)`, which keeps its precision far out in the tails.
#[must_use]
pub fn two_sided_p(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() || !df.is_finite() || df <= 0.0 {
        return None;
    }
    let x = df / (df + t * t);
    checked_beta_reg(df / 2.0, 0.5, x)
        .ok()
        .map(|p| p.clamp(0.0, 1.0))
}

/// The `t` with `P(T <= t) = p`. `None` if `p` is not inside 0..1 or `df` is not
/// above 0 and finite.
#[must_use]
pub fn student_t_quantile(p: f64, df: f64) -> Option<f64> {
    let inside = p > 0.0 && p < 1.0;
    if !inside || !df.is_finite() || df <= 0.0 {
        return None;
    }
    StudentsT::new(0.0, 1.0, df)
        .ok()
        .map(|distribution| distribution.inverse_cdf(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values from the usual printed table of the t distribution.
    #[test]
    fn the_printed_table() {
        let table = [
            (1.0, 0.975, 12.706),
            (2.0, 0.95, 2.920),
            (4.0, 0.975, 2.776),
            (10.0, 0.95, 1.812),
            (18.0, 0.995, 2.878),
            (30.0, 0.975, 2.042),
            (120.0, 0.975, 1.980),
        ];
        for (df, p, t) in table {
            let found = student_t_quantile(p, df).unwrap();
            assert!((found - t).abs() < 6e-4, "df {df} p {p}: {found}");
            let back = student_t_cdf(t, df).unwrap();
            assert!((back - p).abs() < 2e-4, "df {df} t {t}: {back}");
        }
    }

    #[test]
    fn closed_forms() {
        // df = 1 is the Cauchy distribution, df = 2 is algebraic.
        let p = two_sided_p(1.0, 1.0).unwrap();
        assert!((p - 0.5).abs() < 1e-12, "{p}");
        let t = 3.919_f64;
        let expected = 1.0 - t / (t * t + 2.0).sqrt();
        assert!((two_sided_p(t, 2.0).unwrap() - expected).abs() < 1e-12);
        assert_eq!(two_sided_p(0.0, 5.0), Some(1.0));
        assert_eq!(two_sided_p(f64::INFINITY, 5.0), Some(0.0));
        assert_eq!(student_t_cdf(0.0, 5.0), Some(0.5));
    }

    #[test]
    fn what_has_no_answer() {
        assert_eq!(two_sided_p(1.0, 0.0), None);
        assert_eq!(two_sided_p(f64::NAN, 3.0), None);
        assert_eq!(two_sided_p(1.0, f64::INFINITY), None);
        assert_eq!(student_t_quantile(1.0, 3.0), None);
        assert_eq!(student_t_quantile(f64::NAN, 3.0), None);
    }
}
