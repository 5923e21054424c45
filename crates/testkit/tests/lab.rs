//! Whole jobs: command line, controller and agents are the real programs; boards are folders.
#![allow(missing_docs)]

mod support;

use klab_testkit::{lines, until};
use support::*;

/// What a board keeps of an attempt must be gone when it is closed.
fn assert_idle(board: &klab_testkit::FakeBoard) {
    let spool = std::fs::read_dir(board.path("state/spool")).expect("a spool");
    assert_eq!(spool.count(), 0, "the spool is empty");
    assert!(!board.path("armed").exists(), "nothing is armed");
    assert_eq!(board.boots().last().map(String::as_str), Some("good"));
}

#[test]
fn process_a_comparison_from_submission_to_table() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    let told = lab.klab(&submit(&["--rounds", "2", "--wait"]));
    assert_eq!(told.code, 0, "{told:?}");
    // The names of both variants head the table; positive is better, and that is said.
    for word in ["base", "rt", "positive"] {
        assert!(told.out.contains(word), "{word} in {}", told.out);
    }

    let job = lab.json(&["job", "show", "last"]);
    assert_eq!(job["job"]["state"], "done");
    assert_eq!(job["runs"].as_array().map(Vec::len), Some(4));
    // The board booted each candidate once per round and came back after each.
    let boots = board.boots();
    assert_eq!(boots.len(), 9, "{boots:?}");
    for (n, boot) in boots.iter().enumerate() {
        assert_eq!(boot == "good", n % 2 == 0, "{boots:?}");
    }
    // The rounds are interleaved: both kernels ran before any ran again.
    assert_ne!(boots[1], boots[3]);
    assert_ne!(boots[5], boots[7]);
    // 2 variants x 2 rounds x 2 trials.
    assert_eq!(lines(&board.path("starts")).len(), 8);
    let results = artifacts(&lab, "last");
    let results = results.iter().filter(|(_, name)| name == "cyclictest.json");
    assert_eq!(results.count(), 8);
    until("the board is idle", || {
        lab.json(&["boards"])[0]["state"] == "idle"
    });
    assert_idle(&board);
}

#[test]
fn process_a_job_on_two_boards_runs_every_variant_on_each() {
    let lab = lab(1000);
    let boards = [online(&lab, "b1"), online(&lab, "b2")];
    let told = lab.klab(&[
        "submit",
        "--variant",
        "base=base",
        "--variant",
        "rt=rt",
        "--plan",
        "plan.yaml",
        "--boards",
        "b1,b2",
        "--rounds",
        "1",
        "--wait",
    ]);
    assert_eq!(told.code, 0, "{told:?}");
    for board in &boards {
        let mut booted = board.boots();
        booted.retain(|boot| boot != "good");
        booted.sort();
        assert_eq!(booted, [BASE, RT]);
        assert_idle(board);
    }
}

#[test]
fn process_a_missing_tool_is_named_before_any_reboot() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    // A well-known program is named with its package; this one is nowhere.
    lab.write(
        "plan.yaml",
        &PLAN.replace("[cyclictest,", "[klab-no-such-tool,"),
    );
    let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
    assert_eq!(told.code, 3, "{told:?}");
    let failure = &runs(&lab, "last")[0]["failure"];
    assert_eq!(failure["class"], "infrastructure");
    let reason = failure["reason"].as_str().expect("a reason");
    for word in ["board b1", "plan fake-latency", "klab-no-such-tool"] {
        assert!(reason.contains(word), "{word} in {reason}");
    }
    assert_eq!(board.boots(), ["good"], "no reboot");
}

#[test]
fn process_a_workload_that_fails_is_told_with_its_words() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    board.install("cyclictest", "#!/bin/sh\necho no timer >&2\nexit 7\n");
    let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
    assert_eq!(told.code, 1, "{told:?}");
    let failure = &runs(&lab, "last")[0]["failure"];
    assert_eq!(failure["class"], "workload");
    assert!(failure["reason"].as_str().expect("a reason").contains('7'));
    let files = artifacts(&lab, "last");
    assert!(
        files.iter().any(|(_, name)| name == "cyclictest.stderr"),
        "what it said is kept: {files:?}"
    );
    assert_idle(&board);
}

/// What becomes of a candidate: exit code, class and words. That something boots what nobody
/// asked for is the lab's fault, not the kernel's.
const FATES: [(&str, i32, &str, &str); 2] = [
    ("dies", 1, "kernel", "fell back to its known-good kernel"),
    ("other", 3, "infrastructure", "5.10.0-other"),
];

#[test]
fn process_a_candidate_that_does_not_come_up_fails_and_the_board_goes_on() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    for (fate, code, class, words) in FATES {
        std::fs::write(board.path("fate"), fate).expect("a fate");
        let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
        assert_eq!(told.code, code, "{fate}: {told:?}");
        for run in runs(&lab, "last") {
            assert_eq!(run["failure"]["class"], class, "{run}");
            let reason = run["failure"]["reason"].as_str().expect("a reason");
            assert!(reason.contains(words), "{fate}: {reason}");
        }
    }
    assert_eq!(
        lines(&board.path("starts")).len(),
        0,
        "nothing was measured"
    );
    std::fs::remove_file(board.path("fate")).expect("a fate");
    let told = lab.klab(&submit(&["--rounds", "1", "--wait"]));
    assert_eq!(told.code, 0, "{told:?}");
    assert_idle(&board);
}

#[test]
fn process_a_cancelled_job_leads_the_board_home() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    std::fs::write(board.path("hold"), "").expect("a file");
    let job = submitted(&lab, &["--rounds", "3"]);
    until("a trial runs", || !lines(&board.path("starts")).is_empty());
    let told = lab.klab(&["cancel", &job]);
    assert_eq!(told.code, 0, "{told:?}");
    // An agent hears nothing while a trial runs; this ends it.
    assert!(board.kill_agent());
    assert_eq!(lab.klab(&["watch", &job]).code, 3);
    until("the board is idle", || {
        lab.json(&["boards"])[0]["state"] == "idle"
    });
    assert_idle(&board);
    assert_eq!(
        lab.json(&["job", "show", &job])["job"]["state"],
        "cancelled"
    );
    assert_eq!(lines(&board.path("starts")).len(), 1, "no other trial");
}

/// Connections to a port on loopback that are open, as `/proc/net/tcp` counts them.
fn open_connections(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc");
    let peer = format!("0100007F:{port:04X}");
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    // Remote address, then 01 for an established connection.
    rows.filter(|row| row.get(2) == Some(&peer.as_str()) && row.get(3) == Some(&"01"))
        .count()
}

#[test]
fn process_no_connection_is_open_while_a_trial_runs() {
    let lab = lab(1000);
    let board = online(&lab, "b1");
    std::fs::write(board.path("hold"), "").expect("a file");
    let job = submitted(&lab, &["--rounds", "1"]);
    until("a trial runs", || !lines(&board.path("starts")).is_empty());
    assert_eq!(open_connections(lab.address().port()), 0);
    std::fs::remove_file(board.path("hold")).expect("it was there");
    assert!(board.kill_agent());
    assert_eq!(lab.klab(&["watch", &job]).code, 0);
}
