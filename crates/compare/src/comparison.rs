//! The result: per board, per metric, the rows of the table.

use klab_model::{ArtifactId, BoardName, Direction, Metric, RunId, TrialIndex, Unit, VariantName};
use serde::{Deserialize, Serialize};

use crate::{Absence, RunTally, SignificanceRule, Statistic};

/// Variants side by side. Every list of cells has one entry per variant, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The columns; the first is the reference.
    pub variants: Vec<VariantName>,
    /// One section per board, by name.
    pub boards: Vec<BoardComparison>,
    /// The rules, and what was left out.
    pub provenance: Provenance,
    /// Sentences for people.
    pub notes: Vec<String>,
}

/// Variants side by side on one board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardComparison {
    /// The board.
    pub board: BoardName,
    /// What each variant contributed.
    pub variants: Vec<VariantSummary>,
    /// One table per metric, by name.
    pub metrics: Vec<MetricComparison>,
}

/// What one variant contributed on one board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantSummary {
    /// The variant.
    pub variant: VariantName,
    /// Trials that gave at least one sample.
    pub trials: u32,
    /// Its runs by how they ended.
    pub runs: RunTally,
    /// Why it has no samples at all, if so.
    pub absent: Option<Absence>,
}

/// One metric on one board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    /// The metric.
    pub metric: Metric,
    /// The unit of every row but CoeffVar (percent) and n (a count).
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// The rows, in the order of [`Statistic::rows`].
    pub rows: Vec<Row>,
    /// The worst sample of each variant that has samples.
    pub worst: Vec<Worst>,
    /// The variants without samples, and why.
    pub absent: Vec<Absent>,
}

/// One statistic over all variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What the row shows.
    pub statistic: Statistic,
    /// One cell per variant.
    pub cells: Vec<Cell>,
}

/// One number. All numbers are finite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The number; `None` if there are no samples or the statistic is undefined for
    /// them (the spread of one sample).
    pub value: Option<f64>,
    /// The change against the reference in percent, positive is better; `None` if one
    /// of the two has no value.
    pub change: Option<f64>,
    /// Whether the rule marks the change. Only rows of means are marked.
    pub significant: bool,
}

/// The worst sample of a variant, and the trial it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// The variant.
    pub variant: VariantName,
    /// The run.
    pub run: RunId,
    /// The round of the run.
    pub round: u32,
    /// The trial inside the run.
    pub trial: TrialIndex,
    /// The artifact that the sample was derived from.
    pub artifact: ArtifactId,
    /// The sample, in the unit of the metric.
    pub value: f64,
}

/// A variant without samples of a metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// The variant.
    pub variant: VariantName,
    /// Why.
    pub reason: Absence,
}

/// Where the numbers come from: the rules, and what was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The rule that marks changes.
    pub rule: SignificanceRule,
    /// That rule in words.
    pub significance_rule: String,
    /// What a percentage means.
    pub change_rule: String,
    /// What means and spreads are.
    pub mean_rule: String,
    /// What a percentile is.
    pub percentile_rule: String,
    /// What is left out.
    pub exclusion_rule: String,
    /// Samples of attempts and runs that do not count.
    pub excluded_samples: u32,
    /// Runs that have no board yet and appear in no section.
    pub unplaced_runs: u32,
}

impl BoardComparison {
    /// The metric that tells most about latency: the first by name among those in
    /// microseconds where lower is better that ends in `latency.max`; failing that in
    /// `.max`; failing that any.
    pub fn latency_metric(&self) -> Option<&MetricComparison> {
        let latencies = || {
            self.metrics.iter().filter(|metric| {
                metric.unit == Unit::Microseconds && metric.direction == Direction::LowerIsBetter
            })
        };
        let ending = |end: &str| latencies().find(|m| m.metric.as_str().ends_with(end));
        ending("latency.max")
            .or_else(|| ending(".max"))
            .or_else(|| latencies().next())
    }

    /// The trials whose latency traces are worth reading: the worst one of each variant
    /// by [`BoardComparison::latency_metric`].
    pub fn worst_latency_trials(&self) -> Vec<(&MetricComparison, &Worst)> {
        self.latency_metric()
            .into_iter()
            .flat_map(|metric| metric.worst.iter().map(move |worst| (metric, worst)))
            .collect()
    }
}

impl MetricComparison {
    /// The row of a statistic.
    pub fn row(&self, statistic: Statistic) -> Option<&Row> {
        self.rows.iter().find(|row| row.statistic == statistic)
    }
}
