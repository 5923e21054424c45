//! Samples: one number with its metric, unit and direction.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Direction {
    /// Less is better: latencies, durations.
    LowerIsBetter,
    /// More is better: throughput.
    HigherIsBetter,
}

impl Direction {
    /// The word used in JSON and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::LowerIsBetter => "lower",
            Direction::HigherIsBetter => "higher",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// [`InvalidText`] for any other word.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        match text {
            "lower" => Ok(Self::LowerIsBetter),
            "higher" => Ok(Self::HigherIsBetter),
            _ => Err(InvalidText::new("direction", text, "lower or higher")),
        }
    }
}

text_type!(Direction);
display_as_str!(Direction);

/// The unit of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// stress-ng's bogus operations per second.
    BogoOpsPerSecond,
    /// A plain count.
    Count,
    /// Kibibytes.
    Kibibytes,
    /// Percent.
    Percent,
}

impl Unit {
    /// The symbol printed beside numbers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Seconds => "s",
            Unit::BogoOpsPerSecond => "bogo-ops/s",
            Unit::Count => "count",
            Unit::Kibibytes => "KiB",
            Unit::Percent => "%",
        }
    }

    /// Reads the symbol.
    ///
    /// # Errors
    /// [`InvalidText`] for any other symbol.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        match text {
            "us" => Ok(Self::Microseconds),
            "s" => Ok(Self::Seconds),
            "bogo-ops/s" => Ok(Self::BogoOpsPerSecond),
            "count" => Ok(Self::Count),
            "KiB" => Ok(Self::Kibibytes),
            "%" => Ok(Self::Percent),
            _ => Err(InvalidText::new(
                "unit",
                text,
                "us, s, bogo-ops/s, count, KiB or %",
            )),
        }
    }
}

text_type!(Unit);
display_as_str!(Unit);

/// The dotted name of what was measured, from the general to the special:
/// `cyclictest.latency.max`, `stress-ng.vm.bogo-ops`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Metric(String);

impl Metric {
    /// Reads a metric name.
    ///
    /// # Errors
    /// [`InvalidText`] unless it is 1 to 127 characters of a-z, 0-9, `_`, `-` and single
    /// inner dots.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        let good = text.len() <= 127
            && text
                .split('.')
                .all(|word| !word.is_empty() && word.chars().all(legal));
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "metric",
                text,
                "words of a-z, 0-9, '_' and '-' joined by dots, at most 127 characters",
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_type!(Metric);
display_as_str!(Metric);

/// One number that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was measured.
    pub metric: Metric,
    /// Finite value in `unit`.
    pub value: f64,
    /// The unit of `value`.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
}
