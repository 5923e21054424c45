//! Sorts observations by board, metric and variant, and lets the rows be made.

use std::collections::{BTreeMap, BTreeSet};

use klab_model::{BoardName, Direction, FailureClass, Metric, Outcome, RunId, VariantName};
use klab_stats::SampleSet;

use crate::rows::rows;
use crate::rule::{CHANGE_RULE, EXCLUSION_RULE, PERCENTILE_RULE};
use crate::{
    Absence, Absent, BoardComparison, CompareError, Comparison, Input, Kind, MetricComparison,
    Observation, Provenance, RunRecord, RunTally, VariantSummary, Worst,
};

/// Puts the variants side by side.
///
/// # Errors
/// [`CompareError`] if the input contradicts itself: unknown or repeated variants and
/// runs, a metric with two units or directions, a value that is not a number.
pub fn compare(input: &Input) -> Result<Comparison, CompareError> {
    let runs = checked_runs(input)?;
    let mut counted = Vec::new();
    for observation in &input.observations {
        if counts(observation, &runs)? {
            counted.push(observation);
        }
    }
    let kinds = metric_kinds(&counted)?;
    let boards: BTreeSet<&BoardName> = input
        .runs
        .iter()
        .filter_map(|run| run.board.as_ref())
        .chain(counted.iter().map(|observation| &observation.board))
        .collect();
    let boards = boards
        .into_iter()
        .map(|board| board_comparison(input, board, &counted, &kinds))
        .collect::<Result<_, _>>()?;
    Ok(Comparison {
        variants: input.variants.clone(),
        boards,
        provenance: provenance(input, input.observations.len() - counted.len()),
        notes: input.notes.clone(),
    })
}

fn provenance(input: &Input, excluded: usize) -> Provenance {
    let unplaced = input.runs.iter().filter(|run| run.board.is_none()).count();
    Provenance {
        rule: input.rule,
        significance_rule: input.rule.describe().to_owned(),
        change_rule: CHANGE_RULE.to_owned(),
        mean_rule: input.rule.mean_rule(),
        percentile_rule: PERCENTILE_RULE.to_owned(),
        exclusion_rule: EXCLUSION_RULE.to_owned(),
        excluded_samples: u32::try_from(excluded).unwrap_or(u32::MAX),
        unplaced_runs: u32::try_from(unplaced).unwrap_or(u32::MAX),
    }
}

fn checked_runs(input: &Input) -> Result<BTreeMap<RunId, &RunRecord>, CompareError> {
    let mut variants = BTreeSet::new();
    for variant in &input.variants {
        if !variants.insert(variant) {
            let variant = variant.clone();
            return Err(CompareError::DuplicateVariant { variant });
        }
    }
    if variants.is_empty() {
        return Err(CompareError::NoVariants);
    }
    let mut runs = BTreeMap::new();
    for record in &input.runs {
        let run = record.run;
        if !variants.contains(&record.variant) {
            let variant = record.variant.clone();
            return Err(CompareError::UnknownVariant { run, variant });
        }
        if runs.insert(run, record).is_some() {
            return Err(CompareError::DuplicateRun { run });
        }
    }
    Ok(runs)
}

/// Whether an observation enters the statistics: it comes from the last attempt of a
/// run that has ended, and not by a failure of the infrastructure.
fn counts(
    observation: &Observation,
    runs: &BTreeMap<RunId, &RunRecord>,
) -> Result<bool, CompareError> {
    let (run, artifact) = (observation.run, observation.artifact);
    let record = runs
        .get(&run)
        .ok_or(CompareError::UnknownRun { run, artifact })?;
    let wrong_board = record
        .board
        .as_ref()
        .is_none_or(|board| *board != observation.board);
    if record.variant != observation.variant || wrong_board {
        let board = record.board.as_ref().map_or("unbound", |b| b.as_str());
        return Err(CompareError::RunMismatch {
            run,
            artifact,
            found: format!("{} on board {}", observation.variant, observation.board),
            expected: format!("{} on board {board}", record.variant),
        });
    }
    let valid = match &record.outcome {
        None => false,
        Some(Outcome::Failed(failure)) => failure.class != FailureClass::Infrastructure,
        Some(Outcome::Done | Outcome::Cancelled) => true,
    };
    Ok(valid && observation.attempt == record.attempts)
}

/// What each metric means; two meanings would put apples beside pears.
fn metric_kinds(counted: &[&Observation]) -> Result<BTreeMap<Metric, Kind>, CompareError> {
    let mut kinds: BTreeMap<&Metric, (Kind, &Observation)> = BTreeMap::new();
    // By artifact, so that the error does not depend on the order of the input.
    let mut sorted = counted.to_vec();
    sorted.sort_by_key(|observation| observation.artifact);
    for observation in sorted {
        let sample = &observation.sample;
        let kind = Kind {
            unit: sample.unit,
            direction: sample.direction,
        };
        let (known, first) = kinds.entry(&sample.metric).or_insert((kind, observation));
        if *known != kind {
            return Err(CompareError::MixedMetric {
                metric: sample.metric.clone(),
                first: first.artifact,
                first_kind: *known,
                second: observation.artifact,
                second_kind: kind,
            });
        }
    }
    Ok(kinds
        .into_iter()
        .map(|(metric, (kind, _))| (metric.clone(), kind))
        .collect())
}

fn board_comparison(
    input: &Input,
    board: &BoardName,
    counted: &[&Observation],
    kinds: &BTreeMap<Metric, Kind>,
) -> Result<BoardComparison, CompareError> {
    let mut here: BTreeMap<&Metric, Vec<&Observation>> = BTreeMap::new();
    for observation in counted.iter().filter(|o| o.board == *board) {
        let metric = &observation.sample.metric;
        here.entry(metric).or_default().push(observation);
    }
    let variants: Vec<VariantSummary> = input
        .variants
        .iter()
        .map(|variant| variant_summary(input, board, variant, counted))
        .collect();
    let mut metrics = Vec::new();
    for (metric, observations) in here {
        let Some(kind) = kinds.get(metric) else {
            continue;
        };
        let group = Group {
            board,
            metric,
            kind: *kind,
            observations,
        };
        metrics.push(group.compare(input, &variants)?);
    }
    Ok(BoardComparison {
        board: board.clone(),
        variants,
        metrics,
    })
}

fn variant_summary(
    input: &Input,
    board: &BoardName,
    variant: &VariantName,
    counted: &[&Observation],
) -> VariantSummary {
    let mut runs = RunTally::default();
    for record in &input.runs {
        if record.variant == *variant && record.board.as_ref() == Some(board) {
            runs.add(record);
        }
    }
    let trials: BTreeSet<_> = counted
        .iter()
        .filter(|o| o.board == *board && o.variant == *variant)
        .map(|o| (o.run, o.trial.0))
        .collect();
    VariantSummary {
        variant: variant.clone(),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        runs,
        absent: trials.is_empty().then(|| runs.absence()),
    }
}

/// The observations of one metric on one board.
struct Group<'a> {
    board: &'a BoardName,
    metric: &'a Metric,
    kind: Kind,
    observations: Vec<&'a Observation>,
}

impl Group<'_> {
    fn compare(
        &self,
        input: &Input,
        summaries: &[VariantSummary],
    ) -> Result<MetricComparison, CompareError> {
        let direction = self.kind.direction;
        let (mut sets, mut worst, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for (variant, summary) in input.variants.iter().zip(summaries) {
            sets.push(self.sample_set(variant)?);
            match self.worst(variant) {
                Some(found) => worst.push(found),
                None => absent.push(Absent {
                    variant: variant.clone(),
                    reason: summary.absent.unwrap_or(Absence::NotMeasured),
                }),
            }
        }
        Ok(MetricComparison {
            metric: self.metric.clone(),
            unit: self.kind.unit,
            direction,
            rows: rows(sets, direction, input.rule),
            worst,
            absent,
        })
    }

    fn of<'b>(&'b self, variant: &'b VariantName) -> impl Iterator<Item = &'b Observation> {
        self.observations
            .iter()
            .copied()
            .filter(move |observation| observation.variant == *variant)
    }

    fn sample_set(&self, variant: &VariantName) -> Result<Option<SampleSet>, CompareError> {
        let values: Vec<f64> = self.of(variant).map(|o| o.sample.value).collect();
        if values.is_empty() {
            return Ok(None);
        }
        SampleSet::new(values)
            .map(Some)
            .map_err(|source| CompareError::Value {
                metric: self.metric.clone(),
                variant: variant.clone(),
                board: self.board.clone(),
                source,
            })
    }

    /// The worst sample; of equal ones the earliest.
    fn worst(&self, variant: &VariantName) -> Option<Worst> {
        let place = |o: &Observation| (o.round, o.trial.0, o.run, o.artifact);
        let worst = self.of(variant).min_by(|a, b| {
            let by_value = a.sample.value.total_cmp(&b.sample.value);
            let worst_first = match self.kind.direction {
                Direction::LowerIsBetter => by_value.reverse(),
                Direction::HigherIsBetter => by_value,
            };
            worst_first.then_with(|| place(a).cmp(&place(b)))
        })?;
        Some(Worst {
            variant: variant.clone(),
            run: worst.run,
            round: worst.round,
            trial: worst.trial,
            artifact: worst.artifact,
            value: worst.sample.value,
        })
    }
}
