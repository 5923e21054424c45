//! Mails that are damaged or mean no good, one by one: `tests/data` holds them, the golden
//! file what is said.
#![allow(missing_docs)]

mod support;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use klab_series::{Options, Series, Summary};
use support::{Letter, diff, read, told};

fn inputs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(folder).expect("the inputs");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an input").path())
        .collect();
    paths.sort();
    paths
}

/// What people see of a good one.
fn shown(series: &Series) -> String {
    let summary = Summary::new(series, None);
    let mut text = format!("{} by {}", summary.subject, summary.author);
    for file in summary.patches.iter().flat_map(|patch| &patch.files) {
        write!(text, "\n  {:?} {}", file.kind, file.path).expect("text");
    }
    for warning in &summary.warnings {
        write!(text, "\n  warning: {warning}").expect("text");
    }
    text
}

#[test]
fn every_input_is_refused_or_defused() {
    let mut said = String::new();
    for path in inputs() {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let bytes = fs::read(&path).expect("an input");
        let answer = match klab_series::read_bytes(&name, &bytes, &Options::default()) {
            Ok(series) => format!("good: {}", shown(&series)),
            Err(error) => told(&error),
        };
        let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!answer.contains(acts), "{answer:?}");
        writeln!(said, "{name}\n  {answer}").expect("text");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_good_stays_in_the_tree() {
    for path in inputs() {
        let bytes = fs::read(&path).expect("an input");
        let Ok(series) = read(&bytes) else {
            continue;
        };
        for patch in &series.patches {
            for file in &patch.files {
                let mut parts = Path::new(file.path.as_str()).components();
                let normal = |part| matches!(part, std::path::Component::Normal(_));
                assert!(parts.all(normal), "{}", path.display());
            }
        }
    }
}

#[test]
fn headers_without_end_are_refused() {
    let letter = Letter::new("a", "[PATCH] mm: a", &diff("x"));
    let good = letter
        .clone()
        .header(&format!("To: {}", "a@b, ".repeat(1000)));
    assert!(read(good.mail().as_bytes()).is_ok());
    let long = letter
        .clone()
        .header(&format!("To: {}", "a@b, ".repeat(60_000)));
    let many = letter.header(&"X-A: b\n".repeat(40_000));
    for letter in [long, many] {
        let error = told(&read(letter.mail().as_bytes()).expect_err("endless"));
        assert_eq!(
            error,
            "thread.mbox: mail 1 (line 1): header of more than 256 KiB: is this a mail?"
        );
    }
}

#[test]
fn deep_nesting_and_long_lines_end_in_words() {
    let mut nested = String::from("Subject: [PATCH] a\n");
    for n in 0..2000 {
        nested += &format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n");
    }
    let rfc822 = "Content-Type: message/rfc822\n\nSubject: [PATCH] a\n".repeat(5000);
    let long = format!(
        "Subject: [PATCH] {}\n\n{}",
        "[x] ".repeat(50_000),
        "y".repeat(10 << 20)
    );
    let names = format!(
        "Subject: [PATCH] a\n\ndiff --git \"a/{}",
        "\\303".repeat(100_000)
    );
    let brackets = format!("Subject: {}\n\nx\n", "[PATCHPATCHRFC".repeat(10_000));
    for text in [
        nested,
        format!("Subject: x\n{rfc822}"),
        long,
        names,
        brackets,
    ] {
        let started = std::time::Instant::now();
        let error = told(&read(text.as_bytes()).expect_err("no series"));
        assert!(error.len() < 2000, "{}", error.len());
        // Seconds would be quadratic; the limit leaves room for a busy machine.
        assert!(started.elapsed().as_secs() < 20, "{}", &text[..60]);
    }
}
