//! Reports as they are printed.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Values, bare, full, input};
use klab_report::{Report, json, markdown, text};

#[test]
fn text_of_a_full_report() {
    insta::assert_snapshot!(text(&full()));
}

#[test]
fn markdown_of_a_full_report() {
    insta::assert_snapshot!(markdown(&full()));
}

#[test]
fn json_of_a_full_report() {
    insta::assert_snapshot!(json(&full()));
}

#[test]
fn text_of_one_sample_each() {
    let runs = [
        Values("base", "cyclictest.latency.max", vec![100.0]),
        Values("rt", "cyclictest.latency.max", vec![81.3]),
    ];
    insta::assert_snapshot!(text(&bare(&input(&["base", "rt"], &runs))));
}

#[test]
fn text_of_long_names() {
    let (a, b) = ("6.18.0-rc1-".to_owned() + &"x".repeat(52), "y".repeat(63));
    let metric = format!("{}.latency.max", "cyclictest-with-a-long-name".repeat(4));
    let runs = [
        Values(&a, &metric, vec![1e12, 2e12]),
        Values(&b, &metric, vec![3e15, 1e13]),
        Values("c", &metric, vec![0.25, 0.5]),
    ];
    insta::assert_snapshot!(text(&bare(&input(&[&a, &b, "c"], &runs))));
}

#[test]
fn text_of_a_missing_reference_and_of_nothing() {
    let runs = [
        Values("base", "cyclictest.latency.max", vec![]),
        Values("rt", "cyclictest.latency.max", vec![0.125, 0.25]),
    ];
    let some = text(&bare(&input(&["base", "rt"], &runs)));
    let none = text(&bare(&input(&["base"], &[])));
    insta::assert_snapshot!(some + "\n=====\n" + &none);
}

#[test]
fn json_is_read_back_and_names_its_schema() {
    let report = full();
    let written = json(&report);
    assert!(written.starts_with("{\n  \"schema\": \"klab.report/v1\",\n"));
    let read: Report = serde_json::from_str(&written).unwrap();
    assert_eq!(read, report);
    let other = written.replace("klab.report/v1", "klab.report/v2");
    assert!(serde_json::from_str::<Report>(&other).is_err());
}

#[test]
fn every_form_counts_rounds_and_trials_from_one() {
    let mut report = full();
    report.worst_traces.truncate(1);
    let shown = &report.worst_traces[0];
    assert_eq!((shown.round, shown.trial.0), (0, 1), "places in lists");
    for form in [text(&report), markdown(&report)] {
        assert!(
            form.contains("worst trial: base round 1 trial 2: "),
            "{form}"
        );
    }
    let document: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let compared = &document["comparison"]["boards"][0]["metrics"][0]["worst"][0];
    for worst in [&document["worst_traces"][0], compared] {
        assert_eq!(worst["variant"], "base");
        assert_eq!(worst["round"], 1, "{worst}");
        assert_eq!(worst["trial"], 2, "{worst}");
    }
    for field in ["round", "trial"] {
        let mut other = document.clone();
        other["worst_traces"][0][field] = 0.into();
        let error = serde_json::from_value::<Report>(other).unwrap_err();
        assert!(error.to_string().contains("counted from 1"), "{error}");
    }
}
