//! The report as JSON.

use crate::Report;

/// The report under schema `klab.report/v1`, indented, with a newline at the end.
///
/// Rounds and trials are counted from 1, as in the other forms. Numbers that do not exist (no samples, no spread) are `null`.
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report)
        .expect("a report has only text keys and serialises into memory");
    text.push('\n');
    text
}
