//! Settings that are not in the final configuration, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::dotconfig::{DotConfig, Value};
use super::expression::{is_met, symbols};
use super::kconfig::{Definition, Kconfig};

/// A setting that did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untaken {
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// The fragment that set it.
    pub fragment: String,
    /// The line of the fragment.
    pub line: usize,
    /// What the fragment wants.
    pub wanted: Value,
    /// What the final configuration has.
    pub got: Value,
    /// Why, as far as the Kconfig files tell.
    pub why: Why,
}

/// Why a setting did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Why {
    /// The tree has no such symbol for this architecture.
    NoSymbol,
    /// A dependency is missing.
    Unmet {
        /// The condition as Kconfig has it.
        condition: String,
        /// Its symbols and their values in the final configuration.
        values: Vec<(String, Value)>,
    },
    /// Nobody can set it; others select it.
    NoPrompt {
        /// Those that would select it.
        selected_by: Vec<String>,
    },
    /// Others select it, so it cannot be off.
    SelectedBy(Vec<String>),
    /// Another member of the same choice is on.
    Rival(String),
    /// The tree has no PREEMPT_RT for this architecture.
    NoRealTime,
    /// The Kconfig files do not tell.
    Unknown,
}

impl Why {
    /// Looks for the reason.
    pub(super) fn find(
        symbol: &str,
        wanted: &Value,
        kconfig: &Kconfig,
        config: &DotConfig,
    ) -> Self {
        let places = kconfig.definitions(symbol);
        if places.is_empty() {
            return Self::NoSymbol;
        }
        if *wanted == Value::No {
            return Self::selected(symbol, kconfig, config);
        }
        if symbol == "PREEMPT_RT" && !config.is_on("ARCH_SUPPORTS_RT") {
            return Self::NoRealTime;
        }
        let unmet: Vec<Option<String>> = places
            .iter()
            .map(|place| first_unmet(place, config))
            .collect();
        // One definition whose conditions are met is enough.
        if let Some(Some(condition)) = unmet.iter().min_by_key(|one| one.is_some()) {
            let condition = condition.clone();
            let values = symbols(&condition)
                .into_iter()
                .map(|name| {
                    let value = config.get(&name).clone();
                    (name, value)
                })
                .collect();
            return Self::Unmet { condition, values };
        }
        let rival = kconfig
            .rivals(symbol)
            .into_iter()
            .find(|name| config.is_on(name));
        if let Some(rival) = rival {
            return Self::Rival(rival.to_owned());
        }
        if places.iter().any(|place| place.prompt) {
            return Self::Unknown;
        }
        Self::NoPrompt {
            selected_by: kconfig.selected_by(symbol).to_vec(),
        }
    }

    fn selected(symbol: &str, kconfig: &Kconfig, config: &DotConfig) -> Self {
        let by: Vec<String> = kconfig
            .selected_by(symbol)
            .iter()
            .filter(|name| config.is_on(name))
            .cloned()
            .collect();
        if !by.is_empty() {
            Self::SelectedBy(by)
        } else if kconfig.definitions(symbol).iter().any(|place| place.prompt) {
            Self::Unknown
        } else {
            Self::NoPrompt {
                selected_by: Vec::new(),
            }
        }
    }
}

/// The first condition that is not met; one that is not understood counts as met.
fn first_unmet(place: &Definition, config: &DotConfig) -> Option<String> {
    place
        .conditions
        .iter()
        .find(|condition| is_met(condition, config) == Some(false))
        .map(|condition| condition.split_whitespace().collect::<Vec<_>>().join(" "))
}

impl fmt::Display for Untaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: CONFIG_{} is {}, wanted {}: {}",
            self.fragment, self.line, self.symbol, self.got, self.wanted, self.why
        )
    }
}

/// At most this many names are listed.
const NAMES: usize = 4;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSymbol => f.write_str("this tree has no such symbol for this architecture"),
            Self::Unmet { condition, values } => {
                write!(f, "it depends on {condition}")?;
                let values: Vec<String> = values
                    .iter()
                    .map(|(name, value)| format!("{name} is {value}"))
                    .collect();
                write!(f, " ({})", values.join(", "))
            }
            Self::NoPrompt { selected_by } if selected_by.is_empty() => {
                f.write_str("it cannot be set, the tree computes it")
            }
            Self::NoPrompt { selected_by } => {
                write!(
                    f,
                    "it cannot be set, it comes with {}",
                    some(selected_by, " or ")
                )
            }
            Self::SelectedBy(by) => write!(f, "it comes with {}", some(by, ", ")),
            Self::Rival(name) => write!(f, "{name} of the same choice is on"),
            Self::NoRealTime => f.write_str(
                "this tree has no PREEMPT_RT for this architecture: take Linux 6.12 or later, or \
                 a tree with the PREEMPT_RT patches",
            ),
            Self::Unknown => f.write_str("the Kconfig files do not tell why"),
        }
    }
}

fn some(names: &[String], between: &str) -> String {
    let mut text = names[..names.len().min(NAMES)].join(between);
    if names.len() > NAMES {
        text += &format!(" and {} more", names.len() - NAMES);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(symbol: &str, wanted: &Value, config: &str) -> String {
        let mut kconfig = Kconfig::default();
        kconfig.add(
            "config PREEMPT_RT\n\tbool \"rt\"\n\tdepends on EXPERT && ARCH_SUPPORTS_RT\n\
             config KEXEC_FILE\n\tbool \"kexec\"\n\tdepends on CRYPTO=y\n\tdepends on SHA\n\
             config HIDDEN\n\tbool\n\
             config USER\n\tbool \"user\"\n\tselect HIDDEN\n\tselect OPEN\n\
             config OPEN\n\tbool \"open\"\n\
             choice\nconfig ONE\n\tbool \"1\"\nconfig TWO\n\tbool \"2\"\nendchoice\n",
        );
        Why::find(symbol, wanted, &kconfig, &DotConfig::parse(config)).to_string()
    }

    #[test]
    fn the_reason_names_what_is_missing() {
        let on = &Value::Yes;
        assert_eq!(
            why("KEXEC_FILE", on, "CONFIG_CRYPTO=m\n"),
            "it depends on CRYPTO=y (CRYPTO is m)"
        );
        assert_eq!(
            why("KEXEC_FILE", on, "CONFIG_CRYPTO=y\n"),
            "it depends on SHA (SHA is n)"
        );
        assert!(why("PREEMPT_RT", on, "CONFIG_EXPERT=y\n").contains("6.12 or later"));
        let supported = "CONFIG_ARCH_SUPPORTS_RT=y\n";
        assert!(why("PREEMPT_RT", on, supported).contains("EXPERT is n"));
        assert!(why("TYPO", on, "").contains("no such symbol"));
        assert_eq!(
            why("HIDDEN", on, ""),
            "it cannot be set, it comes with USER"
        );
        assert_eq!(
            why("ONE", on, "CONFIG_TWO=y\n"),
            "TWO of the same choice is on"
        );
        assert_eq!(
            why("OPEN", &Value::No, "CONFIG_USER=y\n"),
            "it comes with USER"
        );
        assert_eq!(why("OPEN", on, ""), "the Kconfig files do not tell why");
    }

    #[test]
    fn the_text_names_fragment_line_and_both_values() {
        let untaken = Untaken {
            symbol: "A".to_owned(),
            fragment: "rt.config".to_owned(),
            line: 3,
            wanted: Value::Yes,
            got: Value::No,
            why: Why::NoSymbol,
        };
        assert_eq!(
            untaken.to_string(),
            "rt.config:3: CONFIG_A is n, wanted y: this tree has no such symbol for this \
             architecture"
        );
    }
}
