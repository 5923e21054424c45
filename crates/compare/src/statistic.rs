//! The rows of a comparison.

use std::fmt;

use klab_model::Direction;
use klab_stats::Better;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a row shows. As text it is the label that mmtests prints since April 2026.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Statistic {
    /// The smallest sample.
    Min,
    /// The arithmetic mean.
    Amean,
    /// The harmonic mean.
    Hmean,
    /// A percentile from 1 to 100, counted from the best sample.
    Percentile(u8),
    /// The largest sample.
    Max,
    /// The standard deviation.
    Stddev,
    /// The standard deviation in percent of the mean.
    CoeffVar,
    /// The number of samples.
    Samples,
}

/// Text that is not the label of a statistic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "statistic {found:?} is not known: expected Min, Amean, Hmean, Pctile.1 to Pctile.100, \
     Max, Stddev, CoeffVar or n"
)]
pub struct InvalidStatistic {
    /// The text.
    pub found: String,
}

impl Statistic {
    /// The rows of a metric, in the order of the table.
    pub const fn rows(direction: Direction) -> [Statistic; 10] {
        let mean = match direction {
            Direction::LowerIsBetter => Statistic::Amean,
            Direction::HigherIsBetter => Statistic::Hmean,
        };
        [
            Statistic::Min,
            mean,
            Statistic::Percentile(50),
            Statistic::Percentile(90),
            Statistic::Percentile(95),
            Statistic::Percentile(99),
            Statistic::Max,
            Statistic::Stddev,
            Statistic::CoeffVar,
            Statistic::Samples,
        ]
    }

    /// Whether this is the row that may be starred.
    pub const fn is_mean(self) -> bool {
        matches!(self, Statistic::Amean | Statistic::Hmean)
    }

    /// Which way this row is better, for a metric of this direction: spread is always
    /// better small, a count better large (`stat_compare` in mmtests' `Stat.pm`).
    pub(crate) const fn better(self, direction: Direction) -> Better {
        match self {
            Statistic::Stddev | Statistic::CoeffVar => Better::Lower,
            Statistic::Samples => Better::Higher,
            _ => better(direction),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "Min" => Statistic::Min,
            "Amean" => Statistic::Amean,
            "Hmean" => Statistic::Hmean,
            "Max" => Statistic::Max,
            "Stddev" => Statistic::Stddev,
            "CoeffVar" => Statistic::CoeffVar,
            "n" => Statistic::Samples,
            _ => {
                let percent: u8 = text.strip_prefix("Pctile.")?.parse().ok()?;
                (1..=100)
                    .contains(&percent)
                    .then_some(Statistic::Percentile(percent))?
            }
        })
    }
}

pub(crate) const fn better(direction: Direction) -> Better {
    match direction {
        Direction::LowerIsBetter => Better::Lower,
        Direction::HigherIsBetter => Better::Higher,
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Min => f.pad("Min"),
            Statistic::Amean => f.pad("Amean"),
            Statistic::Hmean => f.pad("Hmean"),
            Statistic::Percentile(percent) => f.pad(&format!("Pctile.{percent}")),
            Statistic::Max => f.pad("Max"),
            Statistic::Stddev => f.pad("Stddev"),
            Statistic::CoeffVar => f.pad("CoeffVar"),
            Statistic::Samples => f.pad("n"),
        }
    }
}

impl From<Statistic> for String {
    fn from(statistic: Statistic) -> String {
        statistic.to_string()
    }
}

impl TryFrom<String> for Statistic {
    type Error = InvalidStatistic;

    fn try_from(found: String) -> Result<Self, InvalidStatistic> {
        Statistic::parse(&found).ok_or(InvalidStatistic { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_back() {
        for direction in [Direction::LowerIsBetter, Direction::HigherIsBetter] {
            for statistic in Statistic::rows(direction) {
                assert_eq!(Statistic::try_from(statistic.to_string()), Ok(statistic));
            }
        }
        for bad in ["min", "Pctile.0", "Pctile.101", "Pctile.", ""] {
            assert!(Statistic::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
