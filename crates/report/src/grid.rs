//! The numbers of one board in the layout of `compare-mmtests.pl`.

use klab_compare::{BoardComparison, Cell, MetricComparison};
use klab_model::VariantName;

use crate::number;
use crate::table::width;

/// The field width of mmtests. Columns grow when something needs more room, so that
/// neighbours never run into each other.
const FIELD: usize = 18;

/// Widths of a board's columns; one set for all its metrics, so that they line up.
struct Layout {
    label: usize,
    /// The number before the parenthesis.
    value: usize,
    /// The percentage with its sign, inside the parentheses.
    change: usize,
    /// Decimals of each metric.
    decimals: Vec<usize>,
}

/// A variant name in two lines: split at the first `-` that does not begin `-rcN`.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    let is_rc = |rest: &str| {
        rest.strip_prefix("-rc")
            .is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
    };
    name.match_indices('-')
        .find(|(at, _)| !is_rc(&name[*at..]))
        .map_or((name, ""), |(at, _)| (&name[..at], &name[at + 1..]))
}

impl Layout {
    fn of(variants: &[VariantName], board: &BoardComparison) -> Self {
        let decimals: Vec<usize> = board
            .metrics
            .iter()
            .map(|metric| number::decimals(&metric.rows))
            .collect();
        let rows = || {
            let metrics = board.metrics.iter().zip(&decimals);
            metrics.flat_map(|(metric, decimals)| metric.rows.iter().map(move |r| (r, *decimals)))
        };
        let label = rows()
            .map(|(row, _)| width(&row.statistic.to_string()))
            .max();
        let values = rows().flat_map(|(row, decimals)| {
            let text = move |cell| width(&number::value(row.statistic, cell, decimals));
            row.cells.iter().map(text)
        });
        let changes = rows().flat_map(|(row, _)| row.cells.iter());
        let changes = changes.filter_map(|cell| number::change(cell).map(|text| width(&text)));
        let change = changes.max().unwrap_or(0).max(8);
        let names = variants
            .iter()
            .flat_map(|name| <[&str; 2]>::from(split_name(name.as_str())));
        // The value takes what the percentage " (...)" leaves of the field.
        let field = names.map(width).max().unwrap_or(0).max(FIELD);
        Self {
            label: label.unwrap_or(0),
            value: values
                .max()
                .unwrap_or(0)
                .max(field.saturating_sub(change + 3)),
            change,
            decimals,
        }
    }

    fn field(&self) -> usize {
        self.value + self.change + 3
    }

    fn header(&self, variants: &[VariantName]) -> String {
        let names: Vec<(&str, &str)> = variants.iter().map(|v| split_name(v.as_str())).collect();
        let mut lines = vec![self.header_line(names.iter().map(|(first, _)| *first))];
        if names.iter().any(|(_, second)| !second.is_empty()) {
            lines.push(self.header_line(names.iter().map(|(_, second)| *second)));
        }
        lines.concat()
    }

    fn header_line<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let field = self.field();
        let names: String = names.map(|name| format!("  {name:>field$}")).collect();
        finished(format!("{:label$}{names}", "", label = self.label))
    }

    fn cell(&self, value: &str, cell: &Cell) -> String {
        let (open, close) = if cell.significant {
            ('*', '*')
        } else {
            ('(', ')')
        };
        let change = match (number::change(cell), cell.value) {
            (Some(change), _) => format!("{open}{change:>width$}{close}", width = self.change),
            // A value whose reference is missing.
            (None, Some(_)) => format!("({:>width$})", number::NOTHING, width = self.change),
            (None, None) => " ".repeat(self.change + 2),
        };
        format!("  {value:>width$} {change}", width = self.value)
    }

    fn rows(&self, metric: &MetricComparison, decimals: usize) -> String {
        let mut text = String::new();
        for row in &metric.rows {
            let mut line = format!("{:label$}", row.statistic, label = self.label);
            for cell in &row.cells {
                line.push_str(&self.cell(&number::value(row.statistic, cell, decimals), cell));
            }
            text.push_str(&finished(line));
        }
        text
    }
}

fn finished(line: String) -> String {
    format!("{}\n", line.trim_end())
}

/// The heading of a metric: name, unit, direction.
pub(crate) fn heading(metric: &MetricComparison) -> String {
    format!(
        "{} ({}, {} is better)",
        metric.metric, metric.unit, metric.direction
    )
}

/// Why variants have no samples of a metric, one sentence each; those that have no
/// samples at all on the board are named there.
pub(crate) fn absences(board: &BoardComparison, metric: &MetricComparison) -> Vec<String> {
    let elsewhere = |name: &VariantName| {
        let mut summaries = board.variants.iter();
        summaries.any(|summary| summary.variant == *name && summary.absent.is_some())
    };
    metric
        .absent
        .iter()
        .filter(|absent| !elsewhere(&absent.variant))
        .map(|absent| format!("{}: no samples: {}", absent.variant, absent.reason))
        .collect()
}

/// All metrics of a board below one line, or two, of variant names.
pub(crate) fn grid(variants: &[VariantName], board: &BoardComparison) -> String {
    let layout = Layout::of(variants, board);
    let mut text = layout.header(variants);
    for (metric, decimals) in board.metrics.iter().zip(&layout.decimals) {
        text.push_str(&format!("\n{}\n", heading(metric)));
        text.push_str(&layout.rows(metric, *decimals));
        for line in absences(board, metric) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_as_mmtests_splits_them() {
        for (name, first, second) in [
            ("5.18.0-rc1-vanilla", "5.18.0-rc1", "vanilla"),
            (
                "5.18.0-rc1-mm-pcpdrain-v2r1",
                "5.18.0-rc1",
                "mm-pcpdrain-v2r1",
            ),
            ("5.18.0-rc1", "5.18.0-rc1", ""),
            ("6.12-rcu", "6.12", "rcu"),
            ("base", "base", ""),
            ("a-", "a", ""),
        ] {
            assert_eq!(split_name(name), (first, second));
        }
    }
}
