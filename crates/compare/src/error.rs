//! Why samples cannot be compared.

use std::fmt;

use klab_model::{ArtifactId, BoardName, Direction, Metric, RunId, Unit, VariantName};
use klab_stats::SampleError;
use thiserror::Error;

/// Unit and direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The unit.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} is better", self.unit, self.direction)
    }
}

/// Why samples cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompareError {
    /// No variant was named.
    #[error("no variants: at least one is needed, and the first is the reference")]
    NoVariants,
    /// A variant was named twice.
    #[error("variant {variant} is named twice: each column needs a name of its own")]
    DuplicateVariant {
        /// The name.
        variant: VariantName,
    },
    /// A run was recorded twice.
    #[error("run {run} is recorded twice: its samples would count twice")]
    DuplicateRun {
        /// The run.
        run: RunId,
    },
    /// A run belongs to a variant that is not compared.
    #[error("run {run} belongs to variant {variant}, which is not among the variants compared")]
    UnknownVariant {
        /// The run.
        run: RunId,
        /// Its variant.
        variant: VariantName,
    },
    /// A sample belongs to a run that was not handed in.
    #[error("artifact {artifact} belongs to run {run}, which is not among the runs of the job")]
    UnknownRun {
        /// The run.
        run: RunId,
        /// The artifact of the sample.
        artifact: ArtifactId,
    },
    /// A sample and its run disagree about the variant or the board.
    #[error(
        "artifact {artifact} says {found}, but its run {run} says {expected}: \
         take both from the run"
    )]
    RunMismatch {
        /// The run.
        run: RunId,
        /// The artifact of the sample.
        artifact: ArtifactId,
        /// Variant and board of the sample.
        found: String,
        /// Variant and board of the run.
        expected: String,
    },
    /// Two samples of one metric differ in unit or direction.
    #[error(
        "metric {metric} has two meanings: artifact {first} gives {first_kind}, \
         artifact {second} gives {second_kind}; derive the samples of both again with \
         one parser version"
    )]
    MixedMetric {
        /// The metric.
        metric: Metric,
        /// An artifact with the one meaning.
        first: ArtifactId,
        /// The one meaning.
        first_kind: Kind,
        /// An artifact with the other meaning.
        second: ArtifactId,
        /// The other meaning.
        second_kind: Kind,
    },
    /// A value cannot be summarised.
    #[error("metric {metric} of variant {variant} on board {board}: {source}")]
    Value {
        /// The metric.
        metric: Metric,
        /// The variant.
        variant: VariantName,
        /// The board.
        board: BoardName,
        /// What is wrong with it.
        source: SampleError,
    },
}
