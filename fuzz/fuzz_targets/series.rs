//! The mail front: any bytes as a mailbox.
//!
//! Nothing may panic, hang or grow without end; what is refused is said in calm words, and
//! what is good stays inside of its tree and can be written and summed up.
#![no_main]

use klab_series::{Options, Series, Summary, defuse, read_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for revision in [None, Some(1)] {
        match read_bytes("input", bytes, &Options { revision }) {
            Ok(series) => check(&series),
            Err(error) => assert!(error.to_string().lines().all(is_calm), "{error}"),
        }
    }
});

fn check(series: &Series) {
    assert!(!series.patches.is_empty());
    for file in series.patches.iter().flat_map(|patch| &patch.files) {
        let path = file.path.as_str();
        assert!(
            path.split('/')
                .all(|part| !["", ".", "..", ".git"].contains(&part)),
            "{path:?}"
        );
    }
    let summary = serde_json::to_string(&Summary::new(series, None)).expect("a summary");
    assert!(
        !summary.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
        "{summary}"
    );
    // Everything in the mailbox is a mail again.
    let again = read_bytes("again", &series.mbox(), &Options::default());
    if series.patches.len() == 1 && series.patches[0].number == 1 {
        assert!(again.is_ok(), "{:?}", again.err());
    }
}

/// Whether a line has nothing that acts on a terminal; a longer one was cut to be calm.
fn is_calm(line: &str) -> bool {
    line.chars().count() > 400 || defuse(line) == line
}
