//! The fragments and the series of the repository are what they should be.
#![allow(missing_docs)]

use std::fs;

use klab_build::Fragment;
use klab_testkit::repository;

fn fragments() -> Vec<(String, String)> {
    let folder = repository().join("configs/kernel");
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .expect("fragments")
        .map(|entry| {
            let path = entry.expect("entry").path();
            let name = path
                .file_name()
                .expect("name")
                .to_string_lossy()
                .into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_fragment_of_the_repository_is_read() {
    let names: Vec<String> = fragments().into_iter().map(|(name, _)| name).collect();
    let expected = [
        "debug-off.config",
        "ftrace.config",
        "preempt-rt.config",
        "virtual-riscv64.config",
        "virtual-x86_64.config",
    ];
    assert_eq!(names, expected);
    for (name, text) in fragments() {
        Fragment::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn settings_are_sorted_in_groups_that_say_why() {
    for (name, text) in fragments() {
        for group in text.trim_end().split("\n\n") {
            let lines: Vec<&str> = group.lines().collect();
            assert!(
                lines[0].starts_with("# "),
                "{name}: a group without a comment: {lines:?}"
            );
            let settings: Vec<&&str> = lines.iter().filter(|l| l.starts_with("CONFIG_")).collect();
            let symbol = |line: &&&str| line.split('=').next().map(str::to_owned);
            assert!(settings.is_sorted_by_key(symbol), "{name}: {settings:?}");
        }
    }
}

#[test]
fn the_series_of_the_demo_is_one_mail_with_one_patch() {
    let mail = fs::read_to_string(repository().join("tests/data/series/madvise-resched.mbox"));
    let mail = mail.expect("a series");
    assert!(mail.starts_with("From "));
    assert_eq!(mail.matches("\nSubject: [PATCH] mm/madvise: ").count(), 1);
    assert_eq!(
        mail.matches("\ndiff --git a/mm/madvise.c b/mm/madvise.c\n")
            .count(),
        1
    );
}
