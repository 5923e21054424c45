//! The rules of the table, as values and in words.

use klab_stats::mmtests::StarRule;
use serde::{Deserialize, Serialize};

/// When a change of the mean is marked as more than noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SignificanceRule {
    /// mmtests since November 2024.
    #[default]
    #[serde(rename = "mmtests-interval")]
    Interval,
    /// mmtests from October 2018 to November 2024.
    #[serde(rename = "mmtests-t-test")]
    TTest,
}

impl SignificanceRule {
    /// The rule in words.
    pub const fn describe(self) -> &'static str {
        match self {
            SignificanceRule::Interval => {
                "a mean is starred if mean +- 1.96 standard deviations of both sides do not \
                 touch (mmtests since November 2024; one sample is never starred)"
            }
            SignificanceRule::TTest => {
                "a mean is starred if the two-sample t-test with n1 + n2 - 2 degrees of \
                 freedom gives p < 0.10 (mmtests from October 2018 to November 2024)"
            }
        }
    }

    pub(crate) const fn star_rule(self) -> StarRule {
        match self {
            SignificanceRule::Interval => StarRule::Interval,
            SignificanceRule::TTest => StarRule::TTest,
        }
    }

    /// How the spread around a harmonic mean is computed.
    const fn harmonic_spread(self) -> &'static str {
        match self {
            SignificanceRule::Interval => {
                "of the harmonic mean, sqrt(h^4 * sum((1/x - 1/h)^2) / n)"
            }
            SignificanceRule::TTest => "of the arithmetic mean",
        }
    }

    pub(crate) fn mean_rule(self) -> String {
        format!(
            "Amean is the arithmetic mean where lower is better, Hmean the harmonic mean where \
             higher is better; Stddev beside Amean is sqrt(sum((x - mean)^2) / (n - 1)), beside \
             Hmean that {}; CoeffVar is 100 * Stddev / mean",
            self.harmonic_spread()
        )
    }
}

pub(crate) const CHANGE_RULE: &str = "percent is the change against the first variant, and \
    positive is better: 100 - 100 * new / base where lower is better and for Stddev and \
    CoeffVar, 100 * new / base - 100 where higher is better and for n";

pub(crate) const PERCENTILE_RULE: &str = "Pctile.p is element max(1, int(n * p / 100)) of the \
    samples sorted best first; samples of all trials and rounds of a variant are pooled";

pub(crate) const EXCLUSION_RULE: &str = "attempts that the infrastructure broke, runs that have \
    not ended, and trials that failed; trials that ended well before their kernel failed are \
    counted";
