//! Faults in the middle of whole jobs: kills, cuts, two of a name.
#![allow(missing_docs)]

mod support;

use std::time::Duration;

use klab_testkit::{CuttingProxy, lines, until};
use support::*;

/// That a job came to its end with every trial there once, and counted once.
fn assert_counted_once(lab: &klab_testkit::Lab, job: &str, rounds: u64) {
    let told = lab.klab(&["watch", job]);
    assert_eq!(told.code, 0, "{told:?}");
    let shown = lab.json(&["job", "show", job]);
    for run in shown["runs"].as_array().expect("runs") {
        assert_eq!(run["state"], "done", "{run}");
        assert_eq!(run["attempt"], 1, "{run}");
    }
    // 2 variants x rounds x 2 trials.
    let all = artifacts(lab, job);
    let logs = all.iter().filter(|(_, name)| name == "dmesg.log");
    assert_eq!(logs.count() as u64, 2 * rounds, "{all:?}");
    let results = all.iter().filter(|(_, name)| name == "cyclictest.json");
    assert_eq!(results.count() as u64, 4 * rounds);
    let report = lab.json(&["compare", job]);
    let boards = report["comparison"]["boards"].as_array().expect("boards");
    let metrics = boards[0]["metrics"].as_array().expect("metrics");
    let wanted = "cyclictest.latency.avg";
    let metric = metrics.iter().find(|metric| metric["metric"] == wanted);
    let rows = metric.expect("the metric")["rows"]
        .as_array()
        .expect("rows");
    let counts = rows.iter().find(|row| row["statistic"] == "n");
    for cell in counts.expect("a row")["cells"].as_array().expect("cells") {
        // One sample per trial.
        assert_eq!(
            cell["value"].as_f64(),
            Some((2 * rounds) as f64),
            "{report}"
        );
    }
}

#[test]
fn process_an_agent_killed_in_a_trial_repeats_it_and_it_counts_once() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    std::fs::write(board.path("hold"), "").expect("a file");
    let job = submitted(&lab, &["--rounds", "1"]);
    let starts = || lines(&board.path("starts")).len();
    until("a trial runs", || starts() == 1);
    assert!(board.kill_agent());
    until("the trial runs again", || starts() == 2);
    assert_eq!(held(&board), 1, "what the dead agent left was ended");
    std::fs::remove_file(board.path("hold")).expect("it was there");
    assert!(board.kill_agent());
    assert_counted_once(&lab, &job, 1);
    assert_eq!(starts(), 4 + 2);
    assert_eq!(held(&board), 0, "nothing is left");
}

/// How many of the board's cyclictests are alive.
fn held(board: &klab_testkit::FakeBoard) -> usize {
    let script = board.path("bin/cyclictest");
    let script = script.to_str().expect("a path of text");
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter(|pid| {
        let command = std::fs::read(pid.path().join("cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        // The interpreter comes first.
        words.nth(1) == Some(script.as_bytes())
    })
    .count()
}

#[test]
fn process_an_agent_killed_at_any_moment_loses_nothing_and_counts_once() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    let job = submitted(&lab, &["--rounds", "3"]);
    // A fixed list of pauses between kills, from a few milliseconds up.
    let mut pause = 7_u64;
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(20 + pause));
        pause = pause * 73 % 397;
        let _ = board.kill_agent();
    }
    assert_counted_once(&lab, &job, 3);
    until("the board is idle", || {
        lab.json(&["boards"])[0]["state"] == "idle"
    });
    assert_eq!(board.boots().last().map(String::as_str), Some("good"));
}

#[test]
fn process_a_controller_killed_in_a_run_goes_on_with_it() {
    let mut lab = lab(1000);
    let board = online(&lab, "b1");
    std::fs::write(board.path("hold"), "").expect("a file");
    let job = submitted(&lab, &["--rounds", "1"]);
    until("a trial runs", || !lines(&board.path("starts")).is_empty());
    lab.kill_controller();
    std::fs::remove_file(board.path("hold")).expect("it was there");
    lab.start_again();
    assert!(board.kill_agent(), "the trial that was held");
    assert_counted_once(&lab, &job, 1);
}

#[test]
fn process_transfers_that_are_cut_go_on_where_they_were() {
    const SIZE: usize = 3_000_000;
    let lab = lab(SIZE);
    // The agent's answers are small until it sends what it measured.
    let proxy = CuttingProxy::start(lab.address(), |number| match number {
        // Each life of a connection brings a piece further.
        0..=7 => Some(600_000),
        _ => None,
    });
    let mut board = board(&lab, "b1", &format!("http://{}", proxy.address()));
    let result = lab.folder().join("cyclictest.json").display().to_string();
    board.install(
        "cyclictest",
        &format!(
            "#!/bin/sh\ncp {result} \"$1\"\nhead -c {SIZE} /dev/urandom >\"${{1%/*}}/big\"\n\
             cat \"${{1%/*}}/big\" >>{}\n",
            board.path("sent").display()
        ),
    );
    board.switch_on();
    lab.wait_for_board("b1");
    let plan = PLAN.replace("    artifacts:\n", "    artifacts:\n      - file: big\n");
    lab.write("plan.yaml", &plan);
    let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
    assert_eq!(told.code, 0, "{told:?}");
    assert!(proxy.cuts() > 3, "{} cuts", proxy.cuts());

    let told = lab.klab(&["artifacts", "get", "last", "--output", "got"]);
    assert_eq!(told.code, 0, "{told:?}");
    let mut sent = std::fs::read(board.path("sent")).expect("what was measured");
    let mut got: Vec<Vec<u8>> = Vec::new();
    find_big(&lab.folder().join("got"), &mut got);
    assert_eq!(got.len(), 4);
    // Run by run as the trials came, whatever the order of their folders.
    while let Some(first) = sent.get(..SIZE) {
        assert!(got.iter().any(|bytes| bytes == first), "a file is damaged");
        sent.drain(..SIZE);
    }
}

fn find_big(folder: &std::path::Path, got: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_big(&path, got);
        } else if path.ends_with("big") {
            got.push(std::fs::read(path).expect("a file"));
        }
    }
}

#[test]
fn process_a_second_agent_of_a_name_is_refused_and_the_first_is_untouched() {
    let lab = lab(1000);
    let first = online(&lab, "b1");
    std::fs::create_dir(lab.folder().join("second")).expect("a folder");
    let mut second =
        klab_testkit::FakeBoard::create(&lab.folder().join("second"), "b1", &lab.url(), &[]);
    second.switch_on();
    until("the second is refused", || {
        second.log().contains("the name is held by")
    });
    let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(lines(&first.path("starts")).len(), 4);
    assert_eq!(second.boots(), ["good"]);
    assert!(second.log().contains("give this board another name"));
}

#[test]
fn process_a_known_good_kernel_that_is_upgraded_meanwhile_is_home() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    std::fs::write(board.path("hold"), "").expect("a file");
    let job = submitted(&lab, &["--rounds", "1"]);
    until("a trial runs", || lines(&board.path("starts")).len() == 1);
    std::fs::write(board.path("kernels/good/release"), "6.1.0-good2\n").expect("a file");
    std::fs::remove_file(board.path("hold")).expect("it was there");
    // The trial that is held is repeated by the agent that comes next.
    assert!(board.kill_agent());
    let told = lab.klab(&["watch", &job]);
    assert_eq!(told.code, 0, "{told:?}");
    let note = "the board's known-good kernel is 6.1.0-good2 now; it was 6.1.0-good";
    assert_eq!(
        told.err.matches(note).count() + told.out.matches(note).count(),
        1,
        "{told:?}"
    );
    // The first boot, and there and back for each of two runs.
    assert_eq!(board.boots().len(), 1 + 2 * 2, "{:?}", board.boots());
}
