//! `klab compare`, and what standard output is for: results and nothing else.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::File;
use std::process::Stdio;

use serde_json::Value;
use support::board::{Board, cyclictest, done};
use support::{Lab, Told};

/// A lab with a job that has ended: three rounds of two kernels.
fn lab_with_samples() -> (Lab, String) {
    let lab = Lab::ready();
    lab.kernel("k2");
    let mut board = Board::connect(lab.address(), "b1");
    let id = lab.submit("b1", &["--variant", "rt=k2"]);
    for run in 0..6 {
        let result = cyclictest(40 + run);
        board.work(&[("cyclictest.json", "cyclictest-json", &result)], done());
    }
    (lab, id)
}

#[test]
fn process_compare_prints_the_samples_in_every_form() {
    let (lab, id) = lab_with_samples();
    let text = lab.klab(&["compare", "last"]);
    let text = text.ok();
    for expected in [
        id.as_str(),
        "cyclictest.latency.max",
        "base",
        "rt",
        "k2",
        "b1",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert_eq!(lab.klab(&["compare", &id, "--format", "text"]).ok(), text);
    let markdown = lab.klab(&["compare", "last", "--format", "markdown"]);
    assert!(markdown.ok().contains("| "), "{markdown:?}");
    let json = lab.klab(&["compare", "last", "--json"]).json();
    assert_eq!(json["schema"], "klab.report/v1");
    assert_eq!(json["job"], id);
    let indented = lab.klab(&["compare", "last", "--format", "json"]);
    assert!(indented.ok().lines().count() > 1);
    assert_eq!(serde_json::from_str::<Value>(indented.ok()).unwrap(), json);
}

#[test]
fn process_compare_of_a_job_without_samples_says_so() {
    let lab = Lab::ready();
    let id = lab.submit("b1", &[]);
    let told = lab.klab(&["compare", "last"]);
    let said = told.ok();
    assert!(
        said.contains(&id) && said.contains("\nNo samples.\n"),
        "{said}"
    );
    assert!(
        said.contains("base: no samples: none of its 3 runs was done: 3 not ended"),
        "{said}"
    );
    assert_eq!(lab.klab(&["compare", "last", "--json"]).json()["job"], id);
}

/// Commands that print a result, and whether they know the outcome of a job by then.
const RESULTS: [&str; 14] = [
    "jobs",
    "jobs --json",
    "job show last",
    "job show last --json",
    "boards",
    "kernel list",
    "artifacts list last",
    "artifacts get last",
    "compare last",
    "compare last --json",
    "plan list",
    "plan show rt-latency",
    "plan check quick.yaml",
    "cancel last",
];

fn told(lab: &Lab, words: &str, out: impl Into<Stdio>) -> Told {
    let words: Vec<&str> = words.split(' ').collect();
    Told::by(lab.command(&words).stdout(out))
}

#[test]
fn process_a_reader_that_goes_away_ends_a_command_quietly() {
    let (lab, _) = lab_with_samples();
    for words in RESULTS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let told = told(&lab, words, writer);
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{words}");
    }
    // Nobody waits for the outcome of a job then, so it is not called done.
    lab.submit("b1", &[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let told = told(&lab, "watch last --json", writer);
    assert_eq!((told.code, told.err.as_str()), (3, ""));
}

#[test]
fn process_a_result_that_cannot_be_written_is_an_error() {
    let (lab, _) = lab_with_samples();
    for words in RESULTS.into_iter().chain(["watch last --json"]) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let told = told(&lab, words, full);
        let expected =
            "klab: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((told.code, told.err.as_str()), (3, expected), "{words}");
    }
}

#[test]
fn process_with_json_standard_output_is_one_document_and_nothing_else_is_said() {
    let (lab, _) = lab_with_samples();
    for words in RESULTS.into_iter().chain(["kernel add k1 k1"]) {
        let words: Vec<&str> = words.split(' ').chain(["--json"]).collect();
        if !words[..words.len() - 1].contains(&"--json") {
            lab.klab(&words).json();
        }
    }
}

#[test]
fn process_what_a_user_names_does_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = "esc\u{1b}[31mred\u{7}\u{202e}";
    support::write(folder.path(), name, "no: plan\n");
    for arguments in [
        &["plan", "check"][..],
        &["log", "check"],
        &["series", "show"],
        &["kernel", "add", "k"],
    ] {
        for more in [&[][..], &["--json"]] {
            let told = support::klab(folder.path(), &[arguments, &[name], more].concat());
            assert_ne!(told.code, 0, "{told:?}");
            let said = told.out + &told.err;
            let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!said.chars().any(acts), "{arguments:?}: {said:?}");
        }
    }
}

#[test]
fn process_files_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = support::klab(folder.path(), &["plan", "check", "/dev/zero"]);
    assert_eq!(
        told.refused(),
        "klab: cannot read /dev/zero: it has more than 1048576 bytes, which is the most that is read\n"
    );
}
