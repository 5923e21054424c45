//! Fragments: parts of a configuration that are put over a base.

use serde::{Deserialize, Serialize};

use super::dotconfig::Value;
use crate::BuildError;

/// Longest fragment that is read, in bytes; the largest configurations have 300 KiB.
const LONGEST: usize = 4 << 20;

/// A named part of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    name: String,
    pub(crate) settings: Vec<Setting>,
}

/// One line of a fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) symbol: String,
    pub(crate) value: Value,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Fragment {
    /// Reads a fragment: lines `CONFIG_X=y`, `=m`, `=n`, `=NUMBER`, `="text"` or `# CONFIG_X is
    /// not set`, comments and empty lines.
    ///
    /// # Errors
    /// [`BuildError::Fragment`] with the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, BuildError> {
        let error = |line: usize, what: String| BuildError::Fragment {
            name: name.to_owned(),
            line,
            what,
        };
        if text.len() > LONGEST {
            return Err(error(0, format!("longer than {LONGEST} bytes")));
        }
        let mut settings: Vec<Setting> = Vec::new();
        for (n, raw) in text.lines().enumerate() {
            let number = n + 1;
            let Some((symbol, value)) = setting(raw).map_err(|what| error(number, what))? else {
                continue;
            };
            let earlier = settings.iter().find(|s| s.symbol == symbol);
            if let Some(earlier) = earlier {
                let what = format!("CONFIG_{symbol} is set in line {} too", earlier.line);
                return Err(error(number, what));
            }
            settings.push(Setting {
                symbol,
                value,
                line: number,
            });
        }
        Ok(Self {
            name: name.to_owned(),
            settings,
        })
    }

    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Reads one line; `None` for comments and empty lines.
fn setting(raw: &str) -> Result<Option<(String, Value)>, String> {
    let line = raw.trim();
    if let Some(rest) = line.strip_prefix("# CONFIG_")
        && let Some(symbol) = rest.strip_suffix(" is not set")
    {
        return checked(symbol).map(|symbol| Some((symbol, Value::No)));
    }
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let expected = "expected CONFIG_NAME=VALUE, `# CONFIG_NAME is not set` or a comment";
    let (symbol, value) = line
        .strip_prefix("CONFIG_")
        .and_then(|rest| rest.split_once('='))
        .ok_or_else(|| {
            format!(
                "{:?}: {expected}",
                line.chars().take(60).collect::<String>()
            )
        })?;
    let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    let plain = !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if !(quoted || plain && (number || matches!(value, "y" | "m" | "n"))) {
        return Err(format!(
            "value {value:?} of CONFIG_{symbol}: expected y, m, n, a number or a text in quotes"
        ));
    }
    checked(symbol).map(|symbol| Some((symbol, Value::parse(value))))
}

fn checked(symbol: &str) -> Result<String, String> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !symbol.is_empty() && symbol.bytes().all(legal) {
        Ok(symbol.to_owned())
    } else {
        Err(format!("{symbol:?} is no name of a symbol"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_their_lines() {
        let text =
            "# about\n\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"a # b\"\nCONFIG_D=-5\n";
        let fragment = Fragment::parse("x", text).expect("a fragment");
        let found: Vec<_> = fragment
            .settings
            .iter()
            .map(|s| (s.symbol.as_str(), s.value.to_string(), s.line))
            .collect();
        let want = [
            ("A", "y", 3),
            ("B", "n", 4),
            ("C", "\"a # b\"", 5),
            ("D", "-5", 6),
        ];
        assert_eq!(found, want.map(|(s, v, l)| (s, v.to_owned(), l)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, part) in [
            ("CONFIG_A=y\nCONFIG_A=n\n", 2, "set in line 1 too"),
            ("\nCONFIG_A\n", 2, "expected CONFIG_NAME=VALUE"),
            ("A=y", 1, "expected CONFIG_NAME=VALUE"),
            ("CONFIG_A=yes", 1, "expected y, m, n"),
            ("CONFIG_A=", 1, "expected y, m, n"),
            ("CONFIG_A-B=y", 1, "no name of a symbol"),
            ("CONFIG_A=\"x", 1, "expected y, m, n"),
            ("include other.config", 1, "expected CONFIG_NAME=VALUE"),
        ] {
            let error = Fragment::parse("rt", text).expect_err(text);
            let said = error.to_string();
            assert!(said.starts_with(&format!("rt:{line}: ")), "{said}");
            assert!(said.contains(part), "{said}");
        }
    }
}
