//! Where the programs of klab are.

use std::path::PathBuf;

/// A program of the workspace, built beside the test that asks.
///
/// # Panics
/// If it was not built: cargo builds the programs of other crates only when told to.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    // TARGET/debug/deps/TEST
    let folder = own.ancestors().nth(2).expect("a target folder");
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo build --workspace --bins` first, as ./test does",
        path.display()
    );
    path
}
