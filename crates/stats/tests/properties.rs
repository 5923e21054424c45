//! Properties that hold for any set of samples.

use klab_stats::mmtests::{StarRule, cidiff, starred};
use klab_stats::{
    Better, Quantile, SampleSet, hodges_lehmann, improvement, mann_whitney, pndiff, two_sided_p,
    welch,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn set(values: &[f64]) -> SampleSet {
    SampleSet::new(values.iter().copied()).expect("the strategies make usable samples")
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-9 * scale.abs().max(1e-12)
}

fn samples() -> impl Strategy<Value = Vec<f64>> {
    vec(
        prop_oneof![-1e6..1e6_f64, (-50..50_i32).prop_map(f64::from)],
        1..60,
    )
}

fn positive() -> impl Strategy<Value = Vec<f64>> {
    vec(1e-3..1e6_f64, 1..60)
}

fn quantiles() -> impl Strategy<Value = Quantile> {
    (1..=1000_u32).prop_map(|n| Quantile::new(n, 1000).expect("n lies in 1..=1000"))
}

proptest! {
    #[test]
    fn the_order_of_arrival_never_matters(
        (values, shuffled) in samples().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle()))
    ) {
        prop_assert_eq!(set(&values), set(&shuffled));
        prop_assert_eq!(set(&values).mean().to_bits(), set(&shuffled).mean().to_bits());
    }

    #[test]
    fn estimates_lie_between_the_extremes(values in positive(), q in quantiles()) {
        let s = set(&values);
        let bounds = s.min()..=s.max();
        prop_assert!(bounds.contains(&s.mean()));
        prop_assert!(bounds.contains(&s.median()));
        prop_assert!(bounds.contains(&s.quantile(q)));
        for better in [Better::Lower, Better::Higher] {
            prop_assert!(bounds.contains(&s.mmtests_percentile(q, better)));
            prop_assert!(bounds.contains(&s.best_mean(q, better).expect("all are positive")));
        }
        let (h, g) = (s.harmonic_mean().expect("positive"), s.geometric_mean().expect("positive"));
        prop_assert!(h <= g * (1.0 + 1e-12) && g <= s.mean() * (1.0 + 1e-12));
    }

    #[test]
    fn a_shift_moves_the_middle_and_not_the_spread(values in samples(), by in -1e5..1e5_f64) {
        let (s, moved) = (set(&values), set(&values.iter().map(|x| x + by).collect::<Vec<_>>()));
        prop_assert!(close(moved.mean(), s.mean() + by, 2e6));
        prop_assert!(close(moved.median(), s.median() + by, 2e6));
        match (s.stddev(), moved.stddev()) {
            (Some(a), Some(b)) => prop_assert!(close(a, b, 2e6)),
            (a, b) => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn a_change_of_unit_scales_everything(values in positive(), by in 1e-6..1e6_f64) {
        let (s, scaled) = (set(&values), set(&values.iter().map(|x| x * by).collect::<Vec<_>>()));
        let top = s.max() * by;
        prop_assert!(close(scaled.mean(), s.mean() * by, top));
        prop_assert!(close(scaled.coeffvar(), s.coeffvar(), 100.0));
        prop_assert!(close(scaled.harmonic_mean().unwrap(), s.harmonic_mean().unwrap() * by, top));
        prop_assert!(close(scaled.geometric_mean().unwrap(), s.geometric_mean().unwrap() * by, top));
        if let (Some(a), Some(b)) = (s.stddev(), scaled.stddev()) {
            prop_assert!(close(a * by, b, top));
        }
    }

    #[test]
    fn quantiles_rise_with_the_fraction(values in samples(), a in 1..=1000_u32, b in 1..=1000_u32) {
        let s = set(&values);
        let at = |n: u32| s.quantile(Quantile::new(n, 1000).unwrap());
        prop_assert!(at(a.min(b)) <= at(a.max(b)));
        prop_assert_eq!(at(1000), s.max());
    }

    #[test]
    fn nearest_rank_covers_its_fraction(values in samples(), q in quantiles()) {
        let s = set(&values);
        let found = s.quantile(q);
        let covered = values.iter().filter(|x| **x <= found).count() as f64;
        let below = values.iter().filter(|x| **x < found).count() as f64;
        let n = values.len() as f64;
        prop_assert!(covered / n >= q.as_f64() - 1e-12);
        prop_assert!(below / n < q.as_f64() + 1e-12);
    }

    #[test]
    fn the_sign_of_an_improvement(new in 1e-3..1e6_f64, base in 1e-3..1e6_f64) {
        prop_assert_eq!(improvement(new, base, Better::Higher) > 0.0, new > base && new * 100.0 / base > 100.0);
        prop_assert_eq!(improvement(new, base, Better::Lower) > 0.0, new < base && new * 100.0 / base < 100.0);
        prop_assert!(pndiff(new, base) <= 100.0);
    }

    #[test]
    fn tests_do_not_care_which_side_is_which(a in vec(-1e3..1e3_f64, 2..12), b in vec(-1e3..1e3_f64, 2..12)) {
        let (a, b) = (set(&a), set(&b));
        if let (Some(x), Some(y)) = (welch(&a, &b), welch(&b, &a)) {
            prop_assert!(close(x.p, y.p, 1.0) && (0.0..=1.0).contains(&x.p));
            prop_assert!(close(x.t, -y.t, x.t));
        }
        let (x, y) = (mann_whitney(&a, &b), mann_whitney(&b, &a));
        prop_assert!(close(x.p, y.p, 1.0) && (0.0..=1.0).contains(&x.p));
        prop_assert_eq!(x.u + y.u, (a.n() * b.n()) as f64);
        for rule in [StarRule::TTest, StarRule::Interval] {
            prop_assert_eq!(
                starred(rule, &a.moments(), &b.moments()),
                starred(rule, &b.moments(), &a.moments())
            );
        }
        let there = cidiff(&a.moments(), &b.moments()).unwrap();
        prop_assert!(close(there, -cidiff(&b.moments(), &a.moments()).unwrap(), there));
    }

    #[test]
    fn the_shift_is_the_median_difference(a in vec(-1e3..1e3_f64, 1..12), b in vec(-1e3..1e3_f64, 1..12)) {
        let mut all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
        let expected = SampleSet::new(all.drain(..).filter(|d| *d == 0.0 || d.abs() > 1e-100)).unwrap().median();
        let shift = hodges_lehmann(&set(&a), &set(&b), 0.9);
        prop_assert!(close(shift.estimate, expected, 1e3), "{} {}", shift.estimate, expected);
        if let Some((low, high)) = shift.interval {
            prop_assert!(low <= shift.estimate && shift.estimate <= high);
        }
    }

    #[test]
    fn p_falls_as_t_grows(t in 0.0..50.0_f64, more in 0.0..10.0_f64, df in 1..200_u32) {
        let df = f64::from(df);
        prop_assert!(two_sided_p(t + more, df).unwrap() <= two_sided_p(t, df).unwrap() + 1e-12);
        prop_assert!(close(two_sided_p(-t, df).unwrap(), two_sided_p(t, df).unwrap(), 1.0));
    }
}
