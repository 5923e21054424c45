//! What is wrong with a file, where, and what would be right.

use std::fmt;

use crate::yaml::Place;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The field as a path such as `workloads[0].time-limit`; empty if the file as a
    /// whole is meant.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What would have been accepted.
    pub expected: String,
    /// What was probably meant.
    pub nearest: Option<String>,
    /// What to do, where that is not plain from the rest.
    pub help: Option<String>,
    excerpt: Excerpt,
}

/// A problem before its place is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Problem {
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) nearest: Option<String>,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            found: found.into(),
            expected: expected.into(),
            nearest: None,
            help: None,
        }
    }

    pub(crate) fn nearest(mut self, nearest: Option<&str>) -> Self {
        self.nearest = nearest.map(str::to_owned);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Puts the problem at a place of `source`, the text of `file`.
    pub(crate) fn at(self, file: &str, source: &str, place: Place, field: &str) -> Diagnostic {
        Diagnostic {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            field: field.to_owned(),
            found: self.found,
            expected: self.expected,
            nearest: self.nearest,
            help: self.help,
            excerpt: Excerpt::of(source, place),
        }
    }
}

/// The line around the place, fit to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    /// How many characters precede the place.
    indent: usize,
}

impl Excerpt {
    /// Longer lines are cut, so that the place stays on a usual screen.
    const WIDTH: usize = 100;

    fn of(source: &str, place: Place) -> Self {
        let line = source.lines().nth(place.line - 1).unwrap_or("");
        let before = place.column - 1;
        let skipped = if before < Self::WIDTH {
            0
        } else {
            before - Self::WIDTH / 2
        };
        let text: String = line
            .trim_start_matches('\u{feff}')
            .chars()
            .skip(skipped)
            .take(Self::WIDTH)
            // One column each, and nothing that a terminal would obey.
            .map(|c| match c {
                '\t' => ' ',
                c if c.is_control() => '\u{fffd}',
                c => c,
            })
            .collect();
        Self {
            indent: (before - skipped).min(text.chars().count()),
            text: text.trim_end().to_owned(),
        }
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `file:line:column: field: found ...; expected ...; did you mean ...?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        self.message(f)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

impl Diagnostic {
    fn message(&self, f: &mut impl fmt::Write) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "found {}; expected {}", self.found, self.expected)
    }

    /// Several lines, with the line of the file and a caret below the place.
    pub fn render(&self) -> String {
        let mut out = String::from("error: ");
        // Writing to a string cannot fail.
        let _ = self.render_to(&mut out);
        out
    }

    fn render_to(&self, out: &mut impl fmt::Write) -> fmt::Result {
        self.message(out)?;
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let caret = " ".repeat(self.excerpt.indent);
        writeln!(out)?;
        writeln!(
            out,
            "{margin}--> {}:{}:{}",
            self.file, self.line, self.column
        )?;
        writeln!(out, "{margin} |")?;
        writeln!(
            out,
            "{}",
            format!("{number} | {}", self.excerpt.text).trim_end()
        )?;
        writeln!(out, "{margin} | {caret}^")?;
        if let Some(nearest) = &self.nearest {
            writeln!(out, "{margin} = did you mean `{nearest}`?")?;
        }
        if let Some(help) = &self.help {
            writeln!(out, "{margin} = help: {help}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a file, in the order of the file; at least one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    left_out: usize,
}

impl Diagnostics {
    /// More help nobody: the file is of another kind.
    const MAX: usize = 50;

    /// `None` if there is nothing to report.
    pub(crate) fn of(mut list: Vec<Diagnostic>) -> Option<Self> {
        list.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        let left_out = list.len().saturating_sub(Self::MAX);
        list.truncate(Self::MAX);
        (!list.is_empty()).then_some(Self { list, left_out })
    }

    pub(crate) fn one(diagnostic: Diagnostic) -> Self {
        Self {
            list: vec![diagnostic],
            left_out: 0,
        }
    }

    /// Each of them; never none. At most 50 are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many more were found than are kept.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// All of them as [`Diagnostic::render`] writes them.
    pub fn render(&self) -> String {
        let mut parts: Vec<String> = self.list.iter().map(Diagnostic::render).collect();
        if self.left_out > 0 {
            parts.push(format!("and {} more\n", self.left_out));
        }
        parts.join("\n")
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    /// One line per diagnostic, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
