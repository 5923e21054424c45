//! Standard output and standard error, in one place.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{ErrorKind, Write};

use crate::exit::{CliError, ExitCode};

/// Prints a result; foreign text in it does nothing to a terminal. That its reader went away,
/// as `head` does, ends a command quietly.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), CliError> {
    print(&klab_series::defuse_lines(text.as_ref()))
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => CliError::silent(ExitCode::Done),
            _ => CliError::infrastructure(format!("cannot write to standard output: {error}")),
        })
}

/// Prints a JSON document on one line.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), CliError> {
    document(&value.to_string())
}

/// Prints a JSON document as it is written.
pub(crate) fn document(text: &str) -> Result<(), CliError> {
    print(&klab_series::defuse_json(text))
}

/// An indented JSON document as one line, as the other documents are. Line breaks inside of
/// strings are escaped, so every one of them is between tokens.
pub(crate) fn on_one_line(document: &str) -> String {
    document.lines().map(str::trim_start).collect()
}

/// `1 run`, `2 runs`.
pub(crate) fn runs(count: u32) -> String {
    counted(count.into(), "run", "runs")
}

/// A number of things.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `oops: TITLE [FUNCTION], 2 times`.
pub(crate) fn kernel_report(kind: &str, title: &str, function: Option<&str>, count: u64) -> String {
    let function = function.map(|function| format!(" [{function}]"));
    let times = (count > 1).then(|| format!(", {count} times"));
    let (function, times) = (function.unwrap_or_default(), times.unwrap_or_default());
    format!("{kind}: {title}{function}{times}")
}

/// The first lines of a kernel report.
pub(crate) fn quote(lines: &[String]) -> String {
    lines.iter().map(|line| format!("    | {line}\n")).collect()
}

/// Says what is going on.
pub(crate) fn say(text: impl AsRef<str>) {
    let _ = writeln!(
        std::io::stderr().lock(),
        "{}",
        klab_series::defuse_lines(text.as_ref())
    );
}

/// Says what went wrong.
pub(crate) fn error(text: &str) {
    say(format!("klab: {text}"));
}

#[cfg(test)]
mod tests {
    use super::on_one_line;

    #[test]
    fn a_document_on_one_line_says_the_same() {
        let document = serde_json::json!({ "a": ["  two\n  lines ", 1.5], "b": {}, "c": null });
        let pretty = serde_json::to_string_pretty(&document).expect("text");
        let line = on_one_line(&pretty);
        assert!(pretty.contains('\n') && !line.contains('\n'));
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(read, document);
    }
}
