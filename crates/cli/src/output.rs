//! Standard output and standard error, in one place.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write;

/// Prints a result. A reader that went away, such as `head`, is no error.
pub(crate) fn line(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.as_ref().trim_end_matches('\n'));
    let _ = out.flush();
}

/// Prints a JSON document on one line.
pub(crate) fn json(value: &serde_json::Value) {
    line(value.to_string());
}

/// Says what is going on.
pub(crate) fn say(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
}

/// Says what went wrong.
pub(crate) fn error(text: &str) {
    say(format!("klab: {text}"));
}
