//! What holds for every report, whatever its numbers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Values, bare, input};
use klab_report::{Table, json, markdown, text};
use proptest::prelude::*;

const LABELS: [&str; 10] = [
    "Min ",
    "Amean ",
    "Hmean ",
    "Pctile.",
    "Max ",
    "Stddev ",
    "CoeffVar ",
    "n ",
    "Std",
    "Coeff",
];

fn is_row(line: &str) -> bool {
    LABELS.iter().any(|label| line.starts_with(label))
}

/// Where the changes of a row begin.
fn opens(line: &str) -> Vec<usize> {
    let marks = |(at, c): (usize, char)| {
        let before = line[..at].ends_with(' ');
        (before
            && (c == '(' || (c == '*' && !line[at..].starts_with("* ")) || star_opens(line, at)))
        .then_some(at)
    };
    line.char_indices().filter_map(marks).collect()
}

/// A star followed by a percentage, not one that closes.
fn star_opens(line: &str, at: usize) -> bool {
    line[at..].starts_with('*')
        && line[at + 1..]
            .trim_start()
            .starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        0.0..300.0_f64,
        Just(0.0),
        1e-6..1e-3_f64,
        1e9..1e17_f64,
        Just(1e150)
    ];
    proptest::collection::vec(value, 0..7)
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let name = "[a-z0-9+][a-zA-Z0-9.-]{0,30}";
    proptest::collection::btree_set(name, 1..4).prop_map(|names| names.into_iter().collect())
}

proptest! {
    #[test]
    fn changes_stand_below_each_other(
        names in names(),
        values in proptest::collection::vec(values(), 6),
    ) {
        let variants: Vec<&str> = names.iter().map(String::as_str).collect();
        let runs: Vec<Values<'_>> = values
            .iter()
            .enumerate()
            .map(|(n, values)| {
                let metric = ["cyclictest.latency.max", "stress-ng.vm.bogo-ops"][n % 2];
                Values(variants[n / 2 % variants.len()], metric, values.clone())
            })
            .collect();
        let report = bare(&input(&variants, &runs));
        let text = text(&report);
        let rows: Vec<&str> = text.lines().filter(|line| is_row(line)).collect();
        // Every place where any row opens a change, and the columns in order.
        let mut columns: Vec<usize> = rows.iter().flat_map(|row| opens(row)).collect();
        columns.sort_unstable();
        columns.dedup();
        prop_assert!(columns.len() <= variants.len(), "{columns:?}\n{text}");
        // Equal fields: label, then one field per variant.
        let gaps: Vec<usize> = columns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if let Some(field) = gaps.iter().min() {
            prop_assert!(gaps.iter().all(|gap| gap % field == 0), "{gaps:?}\n{text}");
        }
        // The widest number (18), its change (20) with parentheses and blank, the gap.
        let limit = 9 + variants.len() * (18 + 20 + 3 + 2);
        for row in &rows {
            prop_assert!(row.len() <= limit, "{row}");
        }
        for line in text.lines() {
            prop_assert_eq!(line, line.trim_end());
        }
    }

    #[test]
    fn nothing_prints_what_is_not_a_number(values in proptest::collection::vec(values(), 4)) {
        let runs: Vec<Values<'_>> = values
            .iter()
            .enumerate()
            .map(|(n, values)| Values(["base", "rt"][n % 2], "a.latency.max", values.clone()))
            .collect();
        let report = bare(&input(&["base", "rt"], &runs));
        for form in [text(&report), markdown(&report), json(&report)] {
            let lower = form.to_lowercase();
            let has = |bad: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == bad);
            prop_assert!(!has("nan") && !has("inf"), "{form}");
            prop_assert!(!form.contains(" -0.00 ") && !form.contains(" -0.00%"), "{form}");
        }
    }

    #[test]
    fn tables_line_up(cells in proptest::collection::vec("[ -~äöü\n\t]{0,12}", 0..24)) {
        let mut table = Table::new(["a", "second"]);
        for pair in cells.chunks(2) {
            table.row(pair.iter().map(String::as_str));
        }
        let shown = table.to_string();
        prop_assert_eq!(shown.lines().count(), 1 + cells.chunks(2).count());
        prop_assert!(!shown.contains('\t'));
        let at = shown.lines().next().unwrap().find("second").unwrap();
        for line in shown.lines().skip(1) {
            let gap: String = line.chars().skip(at - 2).take(2).collect();
            prop_assert!(gap.trim().is_empty(), "{shown}");
        }
    }
}

#[test]
fn hostile_text_stays_in_its_cell() {
    let mut report = common::full();
    report.boards[0].model = "a|b\n# <script>".to_owned();
    report.notes = vec!["first\nsecond".to_owned()];
    let markdown = markdown(&report);
    assert!(
        markdown.contains("| a\\|b \\# \\<script\\> |"),
        "{markdown}"
    );
    assert!(markdown.contains("- first second\n"));
    assert!(text(&report).contains("a|b # <script>"));
}
