//! Checks a YAML tree piece by piece and collects what is wrong.
//!
//! Every method returns `None` after it has reported why, so that reading can go on with
//! the next piece and the file is reported as a whole.

use std::ops::RangeInclusive;

use klab_model::InvalidText;

use crate::diagnostic::{Diagnostic, Diagnostics, Problem};
use crate::nearest::nearest;
use crate::yaml::{Node, Place, Value};

/// A value and the path that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct At<'n> {
    pub(crate) node: &'n Node,
    pub(crate) path: String,
}

/// The fields of a mapping whose names are known.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    place: Place,
    path: String,
    present: Vec<(&'static str, &'n Node)>,
}

impl<'n> Fields<'n> {
    pub(crate) fn get(&self, name: &str) -> Option<At<'n>> {
        let (_, node) = self.present.iter().find(|(known, _)| *known == name)?;
        Some(At {
            node,
            path: join(&self.path, name),
        })
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    file: &'a str,
    source: &'a str,
    problems: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(file: &'a str, source: &'a str) -> Self {
        Self {
            file,
            source,
            problems: Vec::new(),
        }
    }

    /// The value that was read, if nothing was wrong with it.
    ///
    /// # Panics
    /// If a value is missing although nothing was reported.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Diagnostics> {
        match (Diagnostics::of(self.problems), value) {
            (Some(problems), _) => Err(problems),
            (None, Some(value)) => Ok(value),
            (None, None) => unreachable!("readers report why they return nothing"),
        }
    }

    pub(crate) fn report(&mut self, at: &At<'_>, problem: Problem) {
        self.report_at(at.node.place, &at.path, problem);
    }

    pub(crate) fn report_at(&mut self, place: Place, path: &str, problem: Problem) {
        // Only the first ones are shown; a limit here keeps hostile files cheap.
        if self.problems.len() < 1_000 {
            let diagnostic = problem.at(self.file, self.source, place, path);
            self.problems.push(diagnostic);
        }
    }

    /// Reads a mapping; reports fields that are not `known` and fields that come twice.
    pub(crate) fn fields<'n>(&mut self, at: &At<'n>, known: &[&'static str]) -> Option<Fields<'n>> {
        let Value::Map(entries) = &at.node.value else {
            let expected = format!("a mapping with the fields {}", listed(known));
            self.report(at, Problem::new(describe(&at.node.value), expected));
            return None;
        };
        let mut fields = Fields {
            place: at.node.place,
            path: at.path.clone(),
            present: Vec::new(),
        };
        let mut mistyped = Vec::new();
        let mut first_lines = Vec::new();
        for (key, value) in entries {
            let name = key_text(&key.value);
            let Some(name) = known.iter().copied().find(|known| *known == name) else {
                let meant = self.unknown_field(at, key, known);
                mistyped.extend(meant.map(|meant| (meant, value)));
                continue;
            };
            if let Some((_, line)) = first_lines.iter().find(|(seen, _)| *seen == name) {
                let found = format!("`{name}` again after line {line}");
                let problem = Problem::new(found, "each field once");
                self.report_at(key.place, &join(&at.path, name), problem);
                continue;
            }
            first_lines.push((name, key.place.line));
            fields.present.push((name, value));
        }
        // What was meant is read on, so that it is neither called missing nor left
        // unchecked. The unknown field has been reported: nothing is accepted.
        for (meant, value) in mistyped {
            if fields.get(meant).is_none() {
                fields.present.push((meant, value));
            }
        }
        Some(fields)
    }

    fn unknown_field(
        &mut self,
        at: &At<'_>,
        key: &Node,
        known: &[&'static str],
    ) -> Option<&'static str> {
        let name = key_text(&key.value);
        let meant = nearest(&name, known.iter().copied());
        let shown = shown_key(&name);
        let problem = Problem::new(
            format!("the unknown field `{shown}`"),
            format!("one of {}", listed(known)),
        );
        self.report_at(key.place, &join(&at.path, &shown), problem.nearest(meant));
        known.iter().copied().find(|known| Some(*known) == meant)
    }

    /// A field that must be there; `expected` says what it holds.
    pub(crate) fn required<'n>(
        &mut self,
        fields: &Fields<'n>,
        name: &str,
        expected: &str,
    ) -> Option<At<'n>> {
        let at = fields.get(name);
        if at.is_none() {
            let problem = Problem::new(format!("no field `{name}`"), expected);
            self.report_at(fields.place, &join(&fields.path, name), problem);
        }
        at
    }

    /// A field that may be left out.
    pub(crate) fn optional<'n, T>(
        &mut self,
        fields: &Fields<'n>,
        name: &str,
        default: T,
        read: impl FnOnce(&mut Self, &At<'n>) -> Option<T>,
    ) -> Option<T> {
        match fields.get(name) {
            Some(at) => read(self, &at),
            None => Some(default),
        }
    }

    pub(crate) fn text<'n>(&mut self, at: &At<'n>, expected: &str) -> Option<&'n str> {
        let problem = Problem::new(describe(&at.node.value), expected);
        match &at.node.value {
            Value::Text(text) => return Some(text),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
                self.report(
                    at,
                    problem.help("text that looks like a number or a boolean needs quotes"),
                );
            }
            Value::Null | Value::List(_) | Value::Map(_) => self.report(at, problem),
        }
        None
    }

    /// Reads text with a parsing constructor of the model.
    pub(crate) fn parsed<T>(
        &mut self,
        at: &At<'_>,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, InvalidText>,
    ) -> Option<T> {
        let text = self.text(at, expected)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(at, Problem::new(quoted(text), error.expected));
                None
            }
        }
    }

    /// Reads one of some words.
    pub(crate) fn word<T: Copy>(&mut self, at: &At<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", listed(&names));
        let Value::Text(text) = &at.node.value else {
            self.report(at, Problem::new(describe(&at.node.value), expected));
            return None;
        };
        let value = words.iter().find(|(name, _)| name == text);
        if value.is_none() {
            let problem = Problem::new(quoted(text), expected);
            self.report(at, problem.nearest(nearest(text, names)));
        }
        value.map(|(_, value)| *value)
    }

    pub(crate) fn number(&mut self, at: &At<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let number = match at.node.value {
            Value::Integer(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            let mut problem = Problem::new(describe(&at.node.value), expected);
            if matches!(&at.node.value, Value::Text(text) if text.parse::<u32>().is_ok()) {
                problem = problem.help("write the number without quotes");
            }
            self.report(at, problem);
        }
        number
    }

    pub(crate) fn flag(&mut self, at: &At<'_>) -> Option<bool> {
        if let Value::Bool(flag) = at.node.value {
            return Some(flag);
        }
        let meant = match &at.node.value {
            Value::Text(text) => match text.to_lowercase().as_str() {
                "yes" | "on" | "y" | "true" => Some("true"),
                "no" | "off" | "n" | "false" => Some("false"),
                _ => None,
            },
            _ => None,
        };
        let problem = Problem::new(describe(&at.node.value), "true or false");
        self.report(at, problem.nearest(meant));
        None
    }

    /// Reads a list with a legal number of items.
    pub(crate) fn list<'n>(
        &mut self,
        at: &At<'n>,
        expected: &str,
        lengths: RangeInclusive<usize>,
    ) -> Option<Vec<At<'n>>> {
        let found = match &at.node.value {
            Value::List(items) if lengths.contains(&items.len()) => {
                return Some(indexed(items, &at.path));
            }
            Value::List(items) if items.is_empty() => "an empty list".to_owned(),
            Value::List(items) => format!("{} items", items.len()),
            other => describe(other),
        };
        self.report(at, Problem::new(found, expected));
        None
    }
}

fn indexed<'n>(items: &'n [Node], path: &str) -> Vec<At<'n>> {
    let item = |(index, node)| At {
        node,
        path: format!("{path}[{index}]"),
    };
    items.iter().enumerate().map(item).collect()
}

fn key_text(key: &Value) -> String {
    match key {
        Value::Text(text) => text.clone(),
        Value::Null => "~".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::List(_) | Value::Map(_) => "?".to_owned(),
    }
}

/// A key from outside, short and without anything that would break the line.
fn shown_key(key: &str) -> String {
    cut(key).escape_debug().to_string()
}

/// Text from outside in quotes, short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

fn cut(text: &str) -> String {
    const MAX: usize = 60;
    let mut short: String = text.chars().take(MAX).collect();
    if short.len() < text.len() {
        short.push('\u{2026}');
    }
    short
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Text(text) => quoted(text),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

fn listed(words: &[&str]) -> String {
    words.join(", ")
}
