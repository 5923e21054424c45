//! Lengths of time as people write them in plans: `500ms`, `10s`, `30m`, `2h`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, text_type};

/// A length of time from 1 ms to 7 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span {
    millis: u64,
}

const RULE: &str = "a number and a unit of ms, s, m or h, from 1ms to 168h, such as 500ms or 30m";
const MAX_MILLIS: u64 = 7 * 24 * 3_600_000;

impl Span {
    /// A span of whole seconds, cut to the legal range.
    pub const fn secs(secs: u64) -> Self {
        let millis = secs.saturating_mul(1000);
        Self {
            millis: if millis == 0 {
                1
            } else if millis > MAX_MILLIS {
                MAX_MILLIS
            } else {
                millis
            },
        }
    }

    /// A span of milliseconds.
    ///
    /// # Errors
    /// [`InvalidText`] if it is zero or longer than 7 days.
    pub fn from_millis(millis: u64) -> Result<Self, InvalidText> {
        if (1..=MAX_MILLIS).contains(&millis) {
            Ok(Self { millis })
        } else {
            Err(InvalidText::new("time span", &format!("{millis}ms"), RULE))
        }
    }

    /// Reads `<number><unit>`.
    ///
    /// # Errors
    /// [`InvalidText`] without a unit, with an unknown one, or out of range.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let bad = || InvalidText::new("time span", text, RULE);
        let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, unit) = text.split_at(split);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(bad()),
        };
        let number: u64 = number.parse().map_err(|_| bad())?;
        let millis = number.checked_mul(factor).ok_or_else(bad)?;
        Self::from_millis(millis).map_err(|_| bad())
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }

    /// The length as a standard duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

text_type!(Span);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.millis {
            ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
            ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
            ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
            ms => format!("{ms}ms"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("30m", 1_800_000),
            ("2h", 7_200_000),
        ] {
            let span = Span::parse(text).expect(text);
            assert_eq!(span.as_millis(), millis);
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn refuses_what_it_would_have_to_guess() {
        for bad in [
            "",
            "10",
            "s",
            "1.5s",
            "-1s",
            "10 s",
            "1d",
            "0s",
            "169h",
            "99999999999999999999h",
        ] {
            assert!(Span::parse(bad).is_err(), "{bad}");
        }
    }
}
