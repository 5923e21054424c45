//! Numbers as text.

use klab_compare::{Cell, Row, Statistic};

/// What stands for a number that does not exist.
pub(crate) const NOTHING: &str = "-";

/// Decimals for a metric: two, as mmtests prints; four if every value is below 1.
pub(crate) fn decimals(rows: &[Row]) -> usize {
    let in_unit = |row: &&Row| !matches!(row.statistic, Statistic::CoeffVar | Statistic::Samples);
    let cells = rows.iter().filter(in_unit).flat_map(|row| &row.cells);
    let mut values = cells.filter_map(|cell| cell.value).peekable();
    if values.peek().is_some() && values.all(|value| value.abs() < 1.0) {
        4
    } else {
        2
    }
}

/// A value of a row.
pub(crate) fn value(statistic: Statistic, cell: &Cell, decimals: usize) -> String {
    match (cell.value, statistic) {
        (None, _) => NOTHING.to_owned(),
        (Some(value), Statistic::Samples) => format!("{value:.0}"),
        (Some(value), Statistic::CoeffVar) => number(value, 2),
        (Some(value), _) => number(value, decimals),
    }
}

/// A number that fits a column: beyond 15 digits nothing is exact any more.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e15 {
        format!("{value:.4e}")
    } else {
        without_minus_zero(format!("{value:.decimals$}"))
    }
}

/// A change in percent, without sign for improvements, as mmtests prints it.
pub(crate) fn change(cell: &Cell) -> Option<String> {
    let change = cell.change?;
    Some(format!("{}%", number(change, 2)))
}

/// `-0.00` says nothing that `0.00` does not.
fn without_minus_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_columns() {
        assert_eq!(number(123.456, 2), "123.46");
        assert_eq!(number(-0.001, 2), "0.00");
        assert_eq!(number(-0.01, 2), "-0.01");
        assert_eq!(number(1e300, 2), "1.0000e300");
        assert_eq!(number(0.01234, 4), "0.0123");
    }

    #[test]
    fn what_does_not_exist_is_a_dash() {
        let cell = Cell::default();
        assert_eq!(value(Statistic::Stddev, &cell, 2), "-");
        assert_eq!(change(&cell), None);
    }
}
