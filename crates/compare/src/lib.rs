//! Samples of variants side by side, with statistics.
//!
//! [`compare`] takes what was observed ([`Observation`]: a sample and the trial it comes
//! from), the runs of the job ([`RunRecord`]) and the variants in order, and answers a
//! [`Comparison`]: per board, per metric, the rows of an mmtests table. The first
//! variant is the reference; a positive change is always an improvement.
//!
//! What may enter is decided here and nowhere else: attempts that the infrastructure
//! broke and runs that have not ended are left out and counted. A variant without
//! samples keeps its column and gets a reason.
//!
//! [`environment_differences`] and [`conditions`] say what else differed between the
//! variants: command line, clock source, governors, mitigations, temperature, and what
//! the agent itself cost.
//!
//! No files, no clock, no rendering. The same input in any order gives the same output.

mod comparison;
mod engine;
mod environment;
mod error;
mod input;
mod rows;
mod rule;
mod statistic;
mod tally;

pub use comparison::{
    Absent, BoardComparison, Cell, Comparison, MetricComparison, Provenance, Row, VariantSummary,
    Worst,
};
pub use engine::compare;
pub use environment::{
    CountedNote, EnvironmentDifference, TrialConditions, VariantConditions, VariantValue,
    conditions, environment_differences,
};
pub use error::{CompareError, Kind};
pub use input::{Input, Observation, RunRecord};
pub use rule::SignificanceRule;
pub use statistic::{InvalidStatistic, Statistic};
pub use tally::{Absence, RunTally};
