//! Comparisons over made-up jobs, against numbers computed by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use klab_compare::{
    Absence, BoardComparison, Cell, CompareError, Input, MetricComparison, Observation, RunRecord,
    RunTally, SignificanceRule, Statistic, compare,
};
use klab_model::{Direction, Failure, Outcome, Sample, TrialIndex, Unit, VariantName};
use proptest::prelude::*;

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u32) -> T {
    format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

fn variants(names: &[&str]) -> Vec<VariantName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// A job on board `vb1`.
struct Lab(Input);

impl Lab {
    fn new(names: &[&str]) -> Self {
        Self(Input {
            variants: variants(names),
            runs: Vec::new(),
            observations: Vec::new(),
            rule: SignificanceRule::Interval,
            notes: Vec::new(),
        })
    }

    fn run(&mut self, variant: &str, outcome: Option<Outcome>, values: &[f64]) -> &mut Self {
        self.run_of(variant, outcome, "cyclictest.latency.max", values)
    }

    fn run_of(
        &mut self,
        variant: &str,
        outcome: Option<Outcome>,
        metric: &str,
        values: &[f64],
    ) -> &mut Self {
        let number = self.0.runs.len() as u32;
        let variant: VariantName = variant.parse().unwrap();
        self.0.runs.push(RunRecord {
            run: id(number),
            variant: variant.clone(),
            board: Some("vb1".parse().unwrap()),
            attempts: 1,
            outcome,
        });
        let (unit, direction) = if metric.starts_with("stress") {
            (Unit::BogoOpsPerSecond, Direction::HigherIsBetter)
        } else {
            (Unit::Microseconds, Direction::LowerIsBetter)
        };
        for (trial, value) in values.iter().enumerate() {
            self.0.observations.push(Observation {
                variant: variant.clone(),
                run: id(number),
                attempt: 1,
                round: number,
                board: "vb1".parse().unwrap(),
                trial: TrialIndex(trial as u32),
                artifact: id(1000 * (number + 1) + trial as u32),
                sample: Sample {
                    metric: metric.parse().unwrap(),
                    value: *value,
                    unit,
                    direction,
                },
            });
        }
        self
    }

    fn board(&self) -> BoardComparison {
        let comparison = compare(&self.0).unwrap();
        assert_eq!(comparison.boards.len(), 1);
        comparison.boards[0].clone()
    }
}

fn done() -> Option<Outcome> {
    Some(Outcome::Done)
}

fn cells(metric: &MetricComparison, statistic: Statistic) -> &[Cell] {
    &metric.row(statistic).unwrap().cells
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn latencies_by_hand() {
    let mut lab = Lab::new(&["base", "rt"]);
    lab.run("base", done(), &[100.0, 110.0, 120.0]);
    lab.run("rt", done(), &[50.0, 55.0, 60.0]);
    let board = lab.board();
    let metric = &board.metrics[0];
    let labels: Vec<String> = metric
        .rows
        .iter()
        .map(|r| r.statistic.to_string())
        .collect();
    assert_eq!(
        labels.join(" "),
        "Min Amean Pctile.50 Pctile.90 Pctile.95 Pctile.99 Max Stddev CoeffVar n"
    );
    let mean = cells(metric, Statistic::Amean);
    assert_eq!((mean[0].value, mean[0].change), (Some(110.0), Some(0.0)));
    assert_eq!((mean[1].value, mean[1].change), (Some(55.0), Some(50.0)));
    // 1.96 * (10 + 5) = 29.4 is less than the 55 between the means.
    assert!(mean[1].significant && !mean[0].significant);
    // Three samples: int(3 * 0.5) = 1, int(3 * 0.9) = 2, counted from the best.
    assert_eq!(
        cells(metric, Statistic::Percentile(50))[0].value,
        Some(100.0)
    );
    assert_eq!(
        cells(metric, Statistic::Percentile(90))[0].value,
        Some(110.0)
    );
    assert_eq!(cells(metric, Statistic::Max)[1].value, Some(60.0));
    close(cells(metric, Statistic::Stddev)[0].value, 10.0);
    close(cells(metric, Statistic::Stddev)[1].change, 50.0);
    close(cells(metric, Statistic::CoeffVar)[1].value, 500.0 / 55.0);
    assert_eq!(cells(metric, Statistic::Samples)[1].change, Some(0.0));
    let starred = metric.rows.iter().filter(|row| row.cells[1].significant);
    assert_eq!(starred.count(), 1);
}

#[test]
fn throughput_uses_the_harmonic_mean_and_its_spread() {
    let mut lab = Lab::new(&["base", "new"]);
    let metric = "stress-ng.vm.bogo-ops";
    lab.run_of("base", done(), metric, &[2.0, 6.0]);
    lab.run_of("new", done(), metric, &[6.0, 6.0, 6.0]);
    let board = lab.board();
    let metric = &board.metrics[0];
    let mean = cells(metric, Statistic::Hmean);
    close(mean[0].value, 3.0);
    assert_eq!((mean[1].value, mean[1].change), (Some(6.0), Some(100.0)));
    // sqrt(3^4 * ((1/2 - 1/3)^2 + (1/6 - 1/3)^2) / 2) = 1.5
    close(cells(metric, Statistic::Stddev)[0].value, 1.5);
    close(cells(metric, Statistic::CoeffVar)[0].value, 50.0);
    // 6 - 3 = 3 is more than 1.96 * 1.5 = 2.94: only just starred.
    assert!(mean[1].significant);
    // Best first: the 50th of two is the larger.
    assert_eq!(cells(metric, Statistic::Percentile(50))[0].value, Some(6.0));
    assert_eq!(cells(metric, Statistic::Min)[1].change, Some(200.0));
    assert_eq!(cells(metric, Statistic::Samples)[1].change, Some(50.0));
    assert_eq!(metric.worst[0].value, 2.0);

    lab.0.rule = SignificanceRule::TTest;
    let board = lab.board();
    let spread = cells(&board.metrics[0], Statistic::Stddev);
    close(spread[0].value, 8_f64.sqrt());
}

#[test]
fn the_rules_disagree_where_they_should() {
    // 1.07 % apart with spreads of .41 and .60 %: only the old rule stars it.
    let base = [
        99.6, 100.4, 99.6, 100.4, 99.6, 100.4, 99.6, 100.4, 99.6, 100.4,
    ];
    let new: Vec<f64> = base
        .iter()
        .map(|v| 98.93 + (v - 100.0_f64) * 1.46)
        .collect();
    let mut lab = Lab::new(&["base", "new"]);
    lab.run("base", done(), &base).run("new", done(), &new);
    let star = |lab: &Lab| cells(&lab.board().metrics[0], Statistic::Amean)[1].significant;
    assert!(!star(&lab));
    lab.0.rule = SignificanceRule::TTest;
    assert!(star(&lab));
}

#[test]
fn one_sample_has_no_spread_and_no_star() {
    for rule in [SignificanceRule::Interval, SignificanceRule::TTest] {
        let mut lab = Lab::new(&["base", "rt"]);
        lab.0.rule = rule;
        lab.run("base", done(), &[100.0]).run("rt", done(), &[50.0]);
        lab.run_of("base", done(), "stress-ng.vm", &[5.0]);
        for metric in &lab.board().metrics {
            assert_eq!(cells(metric, Statistic::Stddev)[0], Cell::default());
            assert_eq!(cells(metric, Statistic::CoeffVar)[0], Cell::default());
            assert!(
                metric
                    .rows
                    .iter()
                    .all(|r| r.cells.iter().all(|c| !c.significant))
            );
        }
    }
}

#[test]
fn infrastructure_failures_and_open_runs_never_enter() {
    let mut lab = Lab::new(&["base", "rt"]);
    lab.run("base", done(), &[10.0]);
    lab.run(
        "base",
        Some(Outcome::Failed(Failure::infrastructure("net"))),
        &[9999.0],
    );
    lab.run("base", None, &[8888.0]);
    lab.run("rt", done(), &[7777.0, 20.0]);
    // The first trial of the last run belongs to an attempt that was repeated.
    lab.0.runs[3].attempts = 2;
    let last = lab.0.observations.len() - 1;
    lab.0.observations[last].attempt = 2;
    lab.run(
        "rt",
        Some(Outcome::Failed(Failure::kernel("panic"))),
        &[30.0],
    );
    let comparison = compare(&lab.0).unwrap();
    assert_eq!(comparison.provenance.excluded_samples, 3);
    let board = &comparison.boards[0];
    let metric = &board.metrics[0];
    assert_eq!(cells(metric, Statistic::Max)[0].value, Some(10.0));
    assert_eq!(cells(metric, Statistic::Max)[1].value, Some(30.0));
    assert_eq!(cells(metric, Statistic::Min)[1].value, Some(20.0));
    let expected = RunTally {
        done: 1,
        infrastructure_failed: 1,
        unfinished: 1,
        ..RunTally::default()
    };
    assert_eq!(board.variants[0].runs, expected);
    let expected = RunTally {
        done: 1,
        kernel_failed: 1,
        repeated_attempts: 1,
        ..RunTally::default()
    };
    assert_eq!(board.variants[1].runs, expected);
    assert_eq!(board.variants[1].trials, 2);
}

#[test]
fn a_variant_without_samples_keeps_its_column_and_gets_a_reason() {
    let mut lab = Lab::new(&["base", "broken", "unborn"]);
    lab.run("base", done(), &[10.0, 11.0]);
    for _ in 0..2 {
        lab.run(
            "broken",
            Some(Outcome::Failed(Failure::kernel("no boot"))),
            &[],
        );
    }
    let board = lab.board();
    let metric = &board.metrics[0];
    for row in &metric.rows {
        assert_eq!(row.cells.len(), 3);
        assert_eq!(row.cells[1..], [Cell::default(); 2]);
    }
    let reasons: Vec<String> = metric.absent.iter().map(|a| a.reason.to_string()).collect();
    assert_eq!(
        reasons,
        [
            "none of its 2 runs was done: 2 kernel failed",
            "no run on this board"
        ]
    );
    assert_eq!(metric.worst.len(), 1);
    assert_eq!(board.variants[0].absent, None);
}

#[test]
fn a_missing_reference_leaves_values_without_changes() {
    let mut lab = Lab::new(&["base", "rt"]);
    lab.run("base", done(), &[]).run("rt", done(), &[5.0]);
    let board = lab.board();
    let mean = cells(&board.metrics[0], Statistic::Amean);
    assert_eq!(mean[0], Cell::default());
    assert_eq!((mean[1].value, mean[1].change), (Some(5.0), None));
    assert_eq!(board.metrics[0].absent[0].reason, Absence::NotMeasured);
}

#[test]
fn the_worst_trial_is_the_earliest_of_the_worst() {
    let mut lab = Lab::new(&["base"]);
    lab.run("base", done(), &[5.0, 90.0]);
    lab.run("base", done(), &[90.0, 7.0]);
    let board = lab.board();
    let trials = board.worst_latency_trials();
    assert_eq!(trials.len(), 1);
    let (metric, worst) = trials[0];
    assert_eq!(metric.metric.as_str(), "cyclictest.latency.max");
    assert_eq!(
        (worst.round, worst.trial, worst.value),
        (0, TrialIndex(1), 90.0)
    );
    assert_eq!(worst.artifact, id(1001));
}

#[test]
fn the_latency_metric_is_the_most_telling_one() {
    let mut lab = Lab::new(&["base"]);
    lab.run_of("base", done(), "cyclictest.latency.avg", &[5.0]);
    let name = |lab: &Lab| lab.board().latency_metric().unwrap().metric.to_string();
    assert_eq!(name(&lab), "cyclictest.latency.avg");
    lab.run_of("base", done(), "cyclictest.other.max", &[5.0]);
    assert_eq!(name(&lab), "cyclictest.other.max");
    lab.run_of("base", done(), "z.latency.max", &[5.0]);
    assert_eq!(name(&lab), "z.latency.max");
    let mut lab = Lab::new(&["base"]);
    lab.run_of("base", done(), "stress-ng.vm", &[5.0]);
    assert!(lab.board().latency_metric().is_none());
}

#[test]
fn contradictions_are_named() {
    let mut lab = Lab::new(&["base", "rt"]);
    lab.run("base", done(), &[1.0]).run("rt", done(), &[2.0]);
    let with = |change: &dyn Fn(&mut Input)| {
        let mut input = lab.0.clone();
        change(&mut input);
        compare(&input).expect_err("contradiction")
    };
    let error = with(&|input| input.observations[1].sample.unit = Unit::Seconds);
    assert!(matches!(error, CompareError::MixedMetric { .. }));
    assert!(
        error
            .to_string()
            .starts_with("metric cyclictest.latency.max has two meanings: artifact"),
        "{error}"
    );
    let error = with(&|input| input.observations[0].sample.direction = Direction::HigherIsBetter);
    assert!(matches!(error, CompareError::MixedMetric { .. }));
    let error = with(&|input| input.observations[0].sample.value = f64::NAN);
    assert!(matches!(error, CompareError::Value { .. }), "{error}");
    let error = with(&|input| input.variants.clear());
    assert_eq!(error, CompareError::NoVariants);
    let error = with(&|input| input.variants[1] = input.variants[0].clone());
    assert!(matches!(error, CompareError::DuplicateVariant { .. }));
    let error = with(&|input| input.runs[1].run = input.runs[0].run);
    assert!(matches!(error, CompareError::DuplicateRun { .. }));
    let error = with(&|input| input.variants.truncate(1));
    assert!(matches!(error, CompareError::UnknownVariant { .. }));
    let error = with(&|input| input.runs.truncate(1));
    assert!(matches!(error, CompareError::UnknownRun { .. }));
    let error = with(&|input| input.observations[0].board = "vb2".parse().unwrap());
    assert!(
        error
            .to_string()
            .contains("says base on board vb2, but its run"),
        "{error}"
    );
}

#[test]
fn boards_are_sections_of_their_own() {
    let mut lab = Lab::new(&["base"]);
    lab.run("base", done(), &[1.0])
        .run("base", done(), &[100.0]);
    lab.run("base", None, &[]);
    lab.0.runs[0].board = Some("vb2".parse().unwrap());
    lab.0.observations[0].board = "vb2".parse().unwrap();
    lab.0.runs[2].board = None;
    let comparison = compare(&lab.0).unwrap();
    let found: Vec<(&str, Option<f64>)> = comparison
        .boards
        .iter()
        .map(|board| {
            (
                board.board.as_str(),
                cells(&board.metrics[0], Statistic::Max)[0].value,
            )
        })
        .collect();
    assert_eq!(found, [("vb1", Some(100.0)), ("vb2", Some(1.0))]);
    assert_eq!(comparison.provenance.unplaced_runs, 1);
}

fn lab_of(base: &[f64], new: &[f64], metric: &str) -> Lab {
    let mut lab = Lab::new(&["base", "new"]);
    for values in base.chunks(3) {
        lab.run_of("base", done(), metric, values);
    }
    for values in new.chunks(2) {
        lab.run_of("new", done(), metric, values);
    }
    lab
}

proptest! {
    /// The order of arrival never shows, numbers are finite, and what is written is
    /// read back.
    #[test]
    fn order_does_not_matter_and_numbers_are_finite(
        base in proptest::collection::vec(0.0..1e9_f64, 0..12),
        new in proptest::collection::vec(prop_oneof![Just(0.0), 1e-9..1e9_f64], 0..12),
        higher: bool,
        old_rule: bool,
        rotation in 0_usize..12,
    ) {
        let metric = if higher { "stress-ng.vm" } else { "cyclictest.latency.max" };
        let mut lab = lab_of(&base, &new, metric);
        if old_rule {
            lab.0.rule = SignificanceRule::TTest;
        }
        let first = compare(&lab.0).unwrap();
        let (runs, seen) = (lab.0.runs.len(), lab.0.observations.len());
        lab.0.runs.rotate_left(rotation % runs.max(1));
        lab.0.observations.rotate_left(rotation % seen.max(1));
        lab.0.observations.reverse();
        prop_assert_eq!(&compare(&lab.0).unwrap(), &first);
        let cells = first.boards.iter().flat_map(|b| &b.metrics).flat_map(|m| &m.rows);
        for cell in cells.flat_map(|row| &row.cells) {
            prop_assert!(cell.value.is_none_or(f64::is_finite));
            prop_assert!(cell.change.is_none_or(f64::is_finite));
        }
        let json = serde_json::to_string(&first).unwrap();
        let read: klab_compare::Comparison = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }

    /// A positive change is an improvement in both directions.
    #[test]
    fn the_sign_says_better(base in 1.0..1e6_f64, new in 1.0..1e6_f64) {
        for (metric, sign) in [("cyclictest.latency.max", -1.0), ("stress-ng.vm", 1.0)] {
            let board = lab_of(&[base], &[new], metric).board();
            for statistic in [Statistic::Min, Statistic::Max, Statistic::Percentile(99)] {
                let change = cells(&board.metrics[0], statistic)[1].change.unwrap();
                prop_assert!(change * sign * (new - base) >= 0.0);
            }
        }
    }
}
