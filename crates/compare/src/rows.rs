//! From sample sets to rows.

use klab_model::Direction;
use klab_stats::{Moments, Quantile, SampleSet, improvement, mmtests};

use crate::statistic::better;
use crate::{Cell, Row, SignificanceRule, Statistic};

/// The samples of one variant, with the mean and spread that the table shows.
struct Column {
    set: SampleSet,
    moments: Option<Moments>,
}

impl Column {
    fn new(set: SampleSet, direction: Direction, rule: SignificanceRule) -> Self {
        let moments = match direction {
            Direction::LowerIsBetter => Some(set.moments()),
            Direction::HigherIsBetter => set.harmonic_mean().map(|mean| Moments {
                n: set.n(),
                mean,
                stddev: harmonic_spread(&set, rule),
            }),
        };
        Self { set, moments }
    }

    fn value(&self, statistic: Statistic, direction: Direction) -> Option<f64> {
        let stddev = || self.moments.and_then(|moments| moments.stddev);
        match statistic {
            Statistic::Min => Some(self.set.min()),
            Statistic::Max => Some(self.set.max()),
            Statistic::Amean | Statistic::Hmean => self.moments.map(|moments| moments.mean),
            Statistic::Percentile(percent) => {
                let quantile = Quantile::percent(u32::from(percent)).ok()?;
                Some(self.set.mmtests_percentile(quantile, better(direction)))
            }
            Statistic::Stddev => stddev(),
            // Of the mean and the spread that stand above it in the table.
            Statistic::CoeffVar => match self.moments?.mean {
                0.0 => stddev().map(|_| 0.0),
                mean => Some(100.0 * stddev()? / mean),
            },
            Statistic::Samples => Some(self.set.n() as f64),
        }
        .filter(|value| value.is_finite())
    }
}

/// One sample has no spread, whatever the formula says.
fn harmonic_spread(set: &SampleSet, rule: SignificanceRule) -> Option<f64> {
    match rule {
        _ if set.n() < 2 => None,
        SignificanceRule::Interval => set.harmonic_stddev(),
        SignificanceRule::TTest => set.stddev(),
    }
}

/// The rows of a metric; `sets` has one entry per variant, the first is the reference.
pub(crate) fn rows(
    sets: Vec<Option<SampleSet>>,
    direction: Direction,
    rule: SignificanceRule,
) -> Vec<Row> {
    let columns: Vec<Option<Column>> = sets
        .into_iter()
        .map(|set| set.map(|set| Column::new(set, direction, rule)))
        .collect();
    Statistic::rows(direction)
        .into_iter()
        .map(|statistic| row(statistic, &columns, direction, rule))
        .collect()
}

fn row(
    statistic: Statistic,
    columns: &[Option<Column>],
    direction: Direction,
    rule: SignificanceRule,
) -> Row {
    let values: Vec<Option<f64>> = columns
        .iter()
        .map(|column| column.as_ref()?.value(statistic, direction))
        .collect();
    let base = values.first().copied().flatten();
    let cell = |(index, value): (usize, &Option<f64>)| {
        let change = value
            .zip(base)
            .map(|(new, base)| improvement(new, base, statistic.better(direction)))
            .filter(|change| change.is_finite());
        Cell {
            value: *value,
            change,
            significant: statistic.is_mean() && index > 0 && starred(columns, index, rule),
        }
    };
    Row {
        statistic,
        cells: values.iter().enumerate().map(cell).collect(),
    }
}

fn starred(columns: &[Option<Column>], index: usize, rule: SignificanceRule) -> bool {
    let moments = |at: usize| columns.get(at)?.as_ref()?.moments;
    match (moments(0), moments(index)) {
        // One sample says nothing about noise.
        (Some(base), Some(new)) if base.n > 1 && new.n > 1 => {
            mmtests::starred(rule.star_rule(), &base, &new)
        }
        _ => false,
    }
}
