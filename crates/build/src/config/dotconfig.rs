//! A `.config` file: symbols and their values.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of a configuration symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// `n`, or not set.
    No,
    /// `m`, a module.
    Module,
    /// `y`, built in.
    Yes,
    /// A number, or a text in quotes, as the file has it.
    Text(String),
}

impl Value {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "y" => Self::Yes,
            "m" => Self::Module,
            "n" => Self::No,
            other => Self::Text(other.to_owned()),
        }
    }

    /// Whether it is switched on, built in or as a module.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self, Self::Yes | Self::Module)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "n",
            Self::Module => "m",
            Self::Yes => "y",
            Self::Text(text) => text,
        })
    }
}

/// What a `.config` file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DotConfig {
    values: BTreeMap<String, Value>,
}

impl DotConfig {
    /// Reads the text of a `.config`; lines that say nothing about a symbol are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("# CONFIG_") {
                let symbol = rest.strip_suffix(" is not set")?;
                return Some((symbol.to_owned(), Value::No));
            }
            let (symbol, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((symbol.to_owned(), Value::parse(value)))
        });
        Self {
            values: pairs.collect(),
        }
    }

    /// The value of a symbol, without `CONFIG_`; `n` if the file does not name it.
    #[must_use]
    pub fn get(&self, symbol: &str) -> &Value {
        self.values.get(symbol).unwrap_or(&Value::No)
    }

    /// Whether a symbol is built in or a module.
    #[must_use]
    pub fn is_on(&self, symbol: &str) -> bool {
        self.get(symbol).is_on()
    }

    /// How many symbols are switched on.
    #[must_use]
    pub fn count_on(&self) -> usize {
        self.values.values().filter(|value| value.is_on()).count()
    }
}

/// One line of a `.config`.
pub(crate) fn line(symbol: &str, value: &Value) -> String {
    match value {
        Value::No => format!("# CONFIG_{symbol} is not set\n"),
        other => format!("CONFIG_{symbol}={other}\n"),
    }
}

/// The symbol that a line of a `.config` sets.
pub(crate) fn symbol_of(line: &str) -> Option<&str> {
    let line = line.trim();
    match line.strip_prefix("# CONFIG_") {
        Some(rest) => rest.strip_suffix(" is not set"),
        None => line
            .strip_prefix("CONFIG_")?
            .split_once('=')
            .map(|(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written() {
        let text = "# Linux/x86 6.1 Kernel Configuration\nCONFIG_A=y\nCONFIG_B=m\n\
                    # CONFIG_C is not set\nCONFIG_D=\"x=y\"\nCONFIG_E=0x10\nrubbish\n";
        let config = DotConfig::parse(text);
        assert_eq!(config.get("A"), &Value::Yes);
        assert_eq!(config.get("D"), &Value::Text("\"x=y\"".to_owned()));
        assert!(config.is_on("B") && !config.is_on("C") && !config.is_on("E"));
        assert_eq!(config.get("UNKNOWN"), &Value::No);
        assert_eq!(config.count_on(), 2);
        for symbol in ["A", "B", "C", "D", "E"] {
            let line = line(symbol, config.get(symbol));
            assert!(text.contains(&line), "{line}");
            assert_eq!(symbol_of(&line), Some(symbol));
        }
    }
}
