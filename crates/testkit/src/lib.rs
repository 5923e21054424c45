//! What tests of several crates share, and the tests of the repository itself.
//!
//! [`skip`] is how a test says that it cannot run here: a skipped test is named with its
//! reason at the end of `./test`, never silently counted as passed.
//!
//! [`Lab`] is a real controller on loopback with the real command line; a [`FakeBoard`] is a
//! folder that the real agent takes for a board, and [`SmallKernel`] is what such boards boot.
//! [`BuilderProcess`] is a real builder, [`SmallTree`] the kernel tree that it builds.
//! [`CuttingProxy`] breaks connections. Only what a board boots is not real. [`mod@bench`] is
//! how benchmarks measure and print.
//!
//! The folder `tests` guards the repository: `layout` holds the levels of the crates and
//! what the agent may depend on, `hygiene` keeps names of one machine out of the text;
//! `lab`, `faults` and `series` run whole jobs, `qemu_demo` the demo with boards that really boot.

pub mod bench;
mod board;
mod builder;
mod kernels;
mod lab;
mod programs;
mod proxy;

pub use board::{FakeBoard, lines};
pub use builder::{BuilderProcess, SMALL_RELEASE, SmallTree};
pub use kernels::SmallKernel;
pub use lab::{Lab, Told, until};
pub use programs::program;
pub use proxy::CuttingProxy;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The environment variable that names the file in which `./test` collects skipped tests.
pub const SKIPPED_LOG: &str = "KLAB_SKIPPED_LOG";

/// Says that the test `name` cannot run here, and why; the test then returns.
///
/// Prints `skipped: NAME: REASON` and adds the line without its first word to the file that
/// [`SKIPPED_LOG`] names.
///
/// # Panics
/// If that file cannot be written: a skipped test must not go unnoticed.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn skip(name: &str, reason: &str) {
    println!("skipped: {name}: {reason}");
    if let Some(log) = std::env::var_os(SKIPPED_LOG) {
        record(Path::new(&log), name, reason);
    }
}

/// Prints a line of a benchmark.
#[expect(clippy::print_stdout, reason = "benchmarks print")]
fn say(line: &str) {
    println!("{line}");
}

/// Tells whoever reads why a test failed.
#[expect(clippy::print_stderr, reason = "tests print")]
fn tell(text: &str) {
    eprintln!("{text}");
}

/// One write per line, so that lines of tests that run side by side do not mix.
fn record(log: &Path, name: &str, reason: &str) {
    let line = format!("{name}: {}\n", reason.replace('\n', " "));
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("{SKIPPED_LOG} {}: {error}", log.display());
    }
}

/// The top folder of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skipped_test_is_one_line_of_the_log() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let log = folder.path().join("skipped");
        record(&log, "first", "no\nKVM");
        record(&log, "second", "no QEMU");
        let text = std::fs::read_to_string(log).expect("log");
        assert_eq!(text, "first: no KVM\nsecond: no QEMU\n");
    }

    #[test]
    fn the_repository_is_where_the_workspace_manifest_is() {
        let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).expect("manifest");
        assert!(manifest.contains("[workspace]"));
    }
}
