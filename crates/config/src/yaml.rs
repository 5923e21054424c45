//! YAML text to a tree in which every value knows its place.
//!
//! The only module that knows the YAML library. The rest of the crate works on [`Node`],
//! so that a file with several mistakes is reported as a whole: a library that reads
//! straight into types stops at the first.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_yaml::{MessageFormatter, Options, Spanned, UserMessageFormatter};

/// Where something begins: line and column, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    pub(crate) const START: Place = Place { line: 1, column: 1 };
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value as the YAML core schema understands it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; a key may appear twice.
    Map(Vec<(Node, Node)>),
}

/// Text that is no YAML, or more YAML than a file for people needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) expected: &'static str,
}

/// Files for people are far smaller; what is larger is an attack or an accident.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 32;
const LIMITS: &str = "at most 20000 values, aliases included, nested at most 32 deep";

/// What to do about the usual mistakes, by a part of the library's message. A message
/// that is not listed is shown all the same.
const HINTS: [(&str, &str); 10] = [
    ("too large or too complex", LIMITS),
    ("recursion limit exceeded", LIMITS),
    ("multiple found", "one YAML document per file"),
    ("tabs disallowed", "spaces for indentation"),
    ("unclosed quote", "a closing quote"),
    ("unclosed bracket", "a closing bracket"),
    (
        "mapping values are not allowed",
        "fields of one mapping at the same indentation, and quotes around text with ': '",
    ),
    ("reference to unknown value", "an alias of an anchor above"),
    (
        "Recursive reference",
        "an alias of an anchor that ends above",
    ),
    ("unsupported tag", "values without tags"),
];

fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_nodes: MAX_NODES,
            max_events: MAX_NODES * 4,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH * 2,
            max_documents: 2,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: 8,
        },
        strict_booleans: true,
        // Both copies of a key arrive, so that the reader can name the field.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // A tag such as `!Foo` would be dropped without a word.
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    }
}

/// Reads one YAML document. Text without any value is [`Value::Null`].
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    match serde_yaml::from_str_with_options::<Node>(text, options()) {
        Ok(node) => Ok(node),
        Err(error) => Err(syntax_error(&error)),
    }
}

fn syntax_error(error: &serde_yaml::Error) -> SyntaxError {
    let error = error.without_snippet();
    let location = error.location().unwrap_or(serde_yaml::Location::UNKNOWN);
    // The message may quote the file.
    let message: String = UserMessageFormatter
        .format_message(error)
        .chars()
        .take(200)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    let hint = HINTS.iter().find(|(part, _)| message.contains(part));
    SyntaxError {
        place: place(location),
        expected: hint.map_or("valid YAML", |(_, expected)| expected),
        message,
    }
}

fn place(location: serde_yaml::Location) -> Place {
    // 0 stands for "unknown"; the start of the file is the best guess then.
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
    Place {
        line: number(location.line()),
        column: number(location.column()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node {
            place: place(spanned.referenced),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        let value = i128::try_from(value).map_err(|_| E::custom("the number is too large"))?;
        Ok(Value::Integer(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Value, E> {
        Err(E::custom("binary data has no place here"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Node, Node>()? {
            if matches!(key.value, Value::List(_) | Value::Map(_)) {
                return Err(A::Error::custom("a field name must be a word"));
            }
            map.push((key, value));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn entries(source: &str) -> Vec<(Node, Node)> {
        match parse(source).expect(source).value {
            Value::Map(entries) => entries,
            other => panic!("{source:?} is {other:?}"),
        }
    }

    #[test]
    fn places_are_counted_in_characters_from_one() {
        let source = "a: 1\r\n\"\u{e4}\": {b:   x}\n";
        let entries = entries(source);
        assert_eq!(entries[1].0.place, Place { line: 2, column: 1 });
        let Value::Map(inner) = &entries[1].1.value else {
            panic!("a mapping");
        };
        assert_eq!(
            inner[0].1.place,
            Place {
                line: 2,
                column: 12
            }
        );
    }

    #[test]
    fn an_alias_is_where_it_is_used() {
        let entries = entries("a: &x [1]\nb: *x\n");
        assert_eq!(entries[1].1.place, Place { line: 2, column: 4 });
        assert!(matches!(entries[1].1.value, Value::List(_)));
    }

    #[test]
    fn only_true_and_false_are_booleans() {
        let values: Vec<Value> = entries("a: true\nb: yes\nc: off\nd: ~\ne: 8\nf: 2G\n")
            .into_iter()
            .map(|(_, node)| node.value)
            .collect();
        let expected = [
            Value::Bool(true),
            text("yes"),
            text("off"),
            Value::Null,
            Value::Integer(8),
            text("2G"),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn both_copies_of_a_key_arrive() {
        assert_eq!(entries("a: 1\na: 2\n").len(), 2);
    }

    #[test]
    fn bombs_and_deep_nesting_end_early() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (old, new) in "abcdefgh".chars().zip("bcdefghi".chars()) {
            let aliases = vec![format!("*{old}"); 9].join(",");
            bomb += &format!("{new}: &{new} [{aliases}]\n");
        }
        assert_eq!(parse(&bomb).expect_err("9^9 values").expected, LIMITS);
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse(&nested(100_000)).is_err());
        let block: String = (0..200).map(|n| " ".repeat(n) + "a:\n").collect();
        assert!(parse(&block).is_err());
        assert_eq!(
            parse(&"- x\n".repeat(MAX_NODES))
                .expect_err("too long")
                .expected,
            LIMITS
        );
    }
}
