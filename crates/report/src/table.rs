//! Plain tables: aligned columns without borders.

use std::fmt;

/// Rows in aligned columns, two blanks apart, with no blanks at line ends. The same
/// rows give the same bytes.
///
/// ```
/// let mut table = klab_report::Table::new(["board", "cpus"]).right(1);
/// table.row(["vb1", "4"]);
/// table.row(["visionfive", "16"]);
/// assert_eq!(table.to_string(), "board       cpus\nvb1            4\nvisionfive    16\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
    indent: usize,
}

impl Table {
    /// A table with these column titles.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self {
            header: header
                .into_iter()
                .map(|title| one_line(title.into()))
                .collect(),
            rows: Vec::new(),
            right: Vec::new(),
            indent: 0,
        }
    }

    /// Aligns a column (from 0) to the right.
    #[must_use]
    pub fn right(mut self, column: usize) -> Self {
        self.right.push(column);
        self
    }

    /// Starts every line with this many blanks.
    #[must_use]
    pub fn indent(mut self, blanks: usize) -> Self {
        self.indent = blanks;
        self
    }

    /// Adds a row. Missing cells are empty, cells beyond the last title are dropped;
    /// line breaks and other control characters become blanks.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells
            .into_iter()
            .map(|cell| one_line(cell.into()))
            .collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    pub(crate) fn is_right(&self, column: usize) -> bool {
        self.right.contains(&column)
    }

    fn widths(&self) -> Vec<usize> {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        (0..self.header.len())
            .map(|column| lines().map(|line| width(&line[column])).max().unwrap_or(0))
            .collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for line in std::iter::once(&self.header).chain(&self.rows) {
            let mut text = " ".repeat(self.indent);
            for (column, cell) in line.iter().enumerate() {
                if column > 0 {
                    text.push_str("  ");
                }
                let blanks = " ".repeat(widths[column] - width(cell));
                if self.is_right(column) {
                    text.push_str(&blanks);
                    text.push_str(cell);
                } else {
                    text.push_str(cell);
                    text.push_str(&blanks);
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// Width in characters: names and numbers of a lab are plain text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

pub(crate) fn one_line(text: String) -> String {
    if text.chars().any(char::is_control) {
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    } else {
        text
    }
}
