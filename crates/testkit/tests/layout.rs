//! The levels of the crates, and what must never be on a board.

use std::collections::BTreeSet;
use std::process::Command;

use klab_testkit::repository;
use serde_json::Value;

/// A crate may use crates of lower levels only.
const LEVELS: [&[&str]; 6] = [
    &[
        "klab-model",
        "klab-stats",
        "klab-ftrace",
        "klab-klog",
        "klab-task",
    ],
    &[
        "klab-config",
        "klab-sched",
        "klab-proto",
        "klab-parse",
        "klab-kernel",
        "klab-series",
    ],
    &[
        "klab-compare",
        "klab-store",
        "klab-boot",
        "klab-measure",
        "klab-build",
    ],
    &["klab-report", "klab-vboard"],
    &["klab-controller", "klab-agent"],
    &["klab", "klab-testkit"],
];

/// Edges that levels allow and responsibilities forbid: results are computed in one place,
/// rows are read in one place, and what renders does not compute.
const FORBIDDEN: [(&str, &str); 7] = [
    ("klab-report", "klab-stats"),
    ("klab-report", "klab-store"),
    ("klab-vboard", "klab-store"),
    ("klab-vboard", "klab-sched"),
    ("klab", "klab-store"),
    ("klab", "klab-stats"),
    ("klab-boot", "klab-proto"),
];

/// What an agent must not carry: databases, TLS of its own kind, web servers, and every
/// crate that understands results.
const NOT_ON_A_BOARD: [&str; 11] = [
    "sqlx",
    "openssl",
    "axum",
    "reqwest",
    "object_store",
    "ssh2",
    "klab-store",
    "klab-parse",
    "klab-stats",
    "klab-compare",
    "klab-report",
];

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(repository())
        .output()
        .expect("cargo starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// The edges between the workspace's crates that a build follows; tests may use anything.
fn edges(metadata: &Value) -> BTreeSet<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut edges = BTreeSet::new();
    for package in list(&metadata["packages"]) {
        for dependency in list(&package["dependencies"]) {
            if !dependency["path"].is_null() && dependency["kind"] != "dev" {
                edges.insert((text(&package["name"]), text(&dependency["name"])));
            }
        }
    }
    edges
}

/// What is wrong with an edge, if anything.
fn objection(from: &str, to: &str) -> Option<String> {
    let (Some(above), Some(below)) = (level(from), level(to)) else {
        return Some(format!("{from} -> {to}: give both a level in LEVELS"));
    };
    if below >= above {
        return Some(format!(
            "{from} (level {above}) must not use {to} (level {below}): only lower levels"
        ));
    }
    if FORBIDDEN.contains(&(from, to)) {
        return Some(format!("{from} must not use {to}: see FORBIDDEN"));
    }
    None
}

#[test]
fn crates_use_lower_levels_only() {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&text).expect("metadata is JSON");
    let edges = edges(&metadata);
    assert!(edges.len() > 20, "cargo metadata names edges: {edges:?}");
    let wrong: Vec<String> = edges
        .iter()
        .filter_map(|(from, to)| objection(from, to))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_has_a_level_and_every_level_is_of_a_crate() {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&text).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let found: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let levelled: BTreeSet<&str> = LEVELS.iter().copied().flatten().copied().collect();
    assert_eq!(found, levelled);
}

#[test]
fn an_edge_upwards_or_sideways_is_refused() {
    assert_eq!(objection("klab-agent", "klab-boot"), None);
    for (from, to) in [
        ("klab-model", "klab-store"),
        ("klab-store", "klab-compare"),
        ("klab-report", "klab-stats"),
        ("klab-agent", "klab-unknown"),
    ] {
        assert!(objection(from, to).is_some(), "{from} -> {to}");
    }
}

#[test]
fn the_agent_carries_nothing_that_reads_results() {
    // A tree, not the metadata: those switch on the features of the whole workspace.
    let tree = cargo(&[
        "tree",
        "--package=klab-agent",
        "--edges=normal",
        "--prefix=none",
        "--format={p}",
        "--target=x86_64-unknown-linux-gnu",
    ]);
    let names: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.contains("klab-measure"), "cargo tree: {tree}");
    let found: Vec<&&str> = NOT_ON_A_BOARD
        .iter()
        .filter(|name| names.contains(**name))
        .collect();
    assert!(found.is_empty(), "klab-agent depends on {found:?}");
}
