//! Names that people give to things.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};

const NAME_RULE: &str =
    "1 to 63 characters of a-z, 0-9, '.', '_' and '-', starting with a letter or digit";

fn is_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    (1..=63).contains(&text.len())
        && text.chars().all(legal)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $what:literal, $rule:expr, $test:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Reads a name.
            ///
            /// # Errors
            /// [`InvalidText`] that states the rule, if the text breaks it.
            pub fn parse(text: &str) -> Result<Self, InvalidText> {
                if $test(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidText::new($what, text, $rule))
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        text_type!($type);
        display_as_str!($type);
    };
}

name_type!(
    /// The name of a board, unique in a lab.
    BoardName, "board name", NAME_RULE, is_name
);
name_type!(
    /// The name under which a kernel was added, unique in a lab.
    KernelName, "kernel name", NAME_RULE, is_name
);
name_type!(
    /// The name of a git tree, unique in a lab.
    TreeName, "tree name", NAME_RULE, is_name
);
name_type!(
    /// The name of a builder, unique in a lab.
    BuilderName, "builder name", NAME_RULE, is_name
);
name_type!(
    /// The name of a plan.
    PlanName, "plan name", NAME_RULE, is_name
);
name_type!(
    /// The name of a workload or load inside a plan; also the first part of its metrics.
    WorkloadName, "workload name", NAME_RULE, is_name
);
name_type!(
    /// The name of a variant in a comparison: `base`, `rt`, `+1`, `+1..2`, `v2`.
    VariantName,
    "variant name",
    "1 to 63 characters of letters, digits, '+', '.', '_' and '-'",
    is_variant
);

fn is_variant(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+._-".contains(c);
    (1..=63).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        for good in ["a", "vb1", "rt-latency", "lab.eu_2", &"x".repeat(63)] {
            assert!(BoardName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "A", "a b", "a/b", "ä", &"x".repeat(64)] {
            assert!(BoardName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variants_may_name_patches_of_a_series() {
        for good in ["base", "+1", "+1..2", "v2", "RT"] {
            assert!(VariantName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "a=b", "a b"] {
            assert!(VariantName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_error_states_the_rule() {
        let error = BoardName::parse("Board 1").expect_err("capital and blank");
        assert_eq!(
            error.to_string(),
            "board name \"Board 1\" is not valid: expected 1 to 63 characters of a-z, 0-9, \
             '.', '_' and '-', starting with a letter or digit"
        );
    }
}
