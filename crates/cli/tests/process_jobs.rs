//! `klab jobs`, `klab job show`, `klab cancel`, and the short names of jobs.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use serde_json::json;
use support::board::{Board, cancelled, done, fetching, panicked};
use support::{Lab, until};

fn words(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines();
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn process_jobs_lists_the_newest_first() {
    let lab = Lab::ready();
    assert_eq!(lab.klab(&["jobs", "--json"]).json(), json!([]));
    let empty = lab.klab(&["jobs"]);
    let head = [
        "JOB",
        "STATE",
        "RUNS",
        "PLAN",
        "VARIANTS",
        "OWNER",
        "SUBMITTED",
    ];
    assert_eq!(words(empty.ok()), [head]);
    let first = lab.submit("b1", &["--rounds", "2"]);
    let second = lab.submit("b1", &["--variant", "rt=k1", "--owner", "alice"]);
    let table = lab.klab(&["jobs"]);
    let table = words(table.ok());
    assert_eq!(table[0], head);
    assert_eq!(
        table[1][..6],
        [&second, "queued", "0/6", "quick", "base,rt", "alice"]
    );
    assert_eq!(
        table[2][..6],
        [&first, "queued", "0/2", "quick", "base", "dev"]
    );
    assert_eq!(table.len(), 3);
    let listed = lab.klab(&["jobs", "--json"]).json();
    assert_eq!(
        (&listed[0]["id"], &listed[1]["id"]),
        (&json!(second), &json!(first))
    );
}

#[test]
fn process_job_show_tells_where_every_run_stands() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let id = lab.submit("b1", &["--rounds", "3"]);
    board.work(&[], done());
    board.work(&[], panicked());
    let at = board.order();
    board.report(at, 1, fetching());
    let shown = lab.klab(&["job", "show", &id]);
    let expected = format!(
        "job      {id}\nstate    running\nplan     quick, 3 round(s)\n\
         variant  base = k1\nboards   b1\n\n\
         ROUND  VARIANT  BOARD  STATE    ATTEMPT  FAILURE\n\
         1      base     b1     done     1\n\
         2      base     b1     failed   1        kernel: it panicked\n\
         3      base     b1     running  1\n"
    );
    assert_eq!(shown.ok(), expected);
    let mut shown = lab.klab(&["job", "show", &id, "--json"]).json();
    let listed = lab.klab(&["jobs", "--json"]).json()[0].take();
    assert_eq!(shown["job"], listed);
    for run in shown["runs"].as_array_mut().unwrap() {
        assert_eq!(run["id"].take().as_str().unwrap().len(), 36);
    }
    let run = |round: u32, state: &str, failure| {
        json!({
            "id": null, "variant": "base", "round": round, "state": state, "board": "b1",
            "attempt": 1, "failure": failure,
        })
    };
    let panicked = json!({ "class": "kernel", "reason": "it panicked" });
    let expected = json!([
        run(1, "done", json!(null)),
        run(2, "failed", panicked),
        run(3, "running", json!(null)),
    ]);
    assert_eq!(shown["runs"], expected);
}

/// The commands that name a job.
const NAMING: [&[&str]; 6] = [
    &["job", "show"],
    &["watch"],
    &["cancel"],
    &["compare"],
    &["artifacts", "list"],
    &["artifacts", "get"],
];

#[test]
fn process_a_job_that_is_not_named_well_is_asked_for_again() {
    let lab = Lab::ready();
    let refused = |job: &str, expected: &str| {
        for command in NAMING {
            for more in [&[][..], &["--json"]] {
                let told = lab.klab(&[command, &[job], more].concat());
                assert_eq!(told.refused(), format!("klab: {expected}\n"), "{command:?}");
            }
        }
    };
    refused("last", "there is no job yet");
    let first = lab.submit("b1", &[]);
    let second = lab.submit("b1", &[]);
    refused(
        "abc",
        "job \"abc\": give at least 4 characters of its id, or `last`",
    );
    refused(
        "",
        "job \"\": give at least 4 characters of its id, or `last`",
    );
    let both = format!("job \"{}\" fits 2 jobs; give more of its id", &first[..4]);
    refused(&first[..4], &both);
    refused("zzzz", "there is no job \"zzzz\"; `klab jobs` lists them");
    // A whole id is not looked up before it is used.
    let whole = "01990000-0000-7000-8000-00000000000b";
    for command in &NAMING[..5] {
        let told = lab.klab(&[command, &[whole][..]].concat());
        let expected = format!("klab: there is no job \"{whole}\"; `klab jobs` lists them\n");
        assert_eq!(told.refused(), expected, "{command:?}");
    }
    for (text, id) in [
        ("last", &second),
        (&first[24..], &first),
        (&second[..], &second),
        (&second.to_uppercase(), &second),
    ] {
        let shown = lab.klab(&["job", "show", text, "--json"]).json();
        assert_eq!(shown["job"]["id"], json!(id), "{text}");
    }
}

#[test]
fn process_cancel_ends_a_job_that_waits() {
    let lab = Lab::ready();
    let id = lab.submit("b1", &[]);
    let said = format!("job {id} is cancelled\n");
    assert_eq!(lab.klab(&["cancel", "last"]).ok(), said);
    // Once more is no error and changes nothing.
    assert_eq!(lab.klab(&["cancel", &id]).ok(), said);
    let job = lab.klab(&["cancel", &id, "--json"]).json();
    assert_eq!(job, lab.klab(&["jobs", "--json"]).json()[0]);
    assert_eq!(
        (&job["state"], &job["runs_ended"]),
        (&json!("cancelled"), &json!(3))
    );
}

#[test]
fn process_cancel_tells_a_board_at_work_to_stop() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let id = lab.submit("b1", &[]);
    let at = board.order();
    board.report(at, 1, fetching());
    let told = lab.klab(&["cancel", &id]);
    let expected = format!("job {id} is cancelled; still to end: 1 run\n");
    assert_eq!(told.ok(), expected);
    board.cancellation();
    board.report(at, 2, cancelled());
    until("the job has ended", || {
        lab.klab(&["jobs", "--json"]).json()[0]["state"] == "cancelled"
    });
}

#[test]
fn process_cancel_leaves_a_job_that_has_ended_as_it_is() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    for (end, state) in [(done(), "done"), (panicked(), "failed")] {
        let id = lab.submit("b1", &["--rounds", "1"]);
        board.work(&[], end);
        let before = lab.klab(&["job", "show", &id, "--json"]).json();
        let told = lab.klab(&["cancel", &id]);
        let expected = format!("job {id} had ended already: {state}\n");
        assert_eq!(told.ok(), expected);
        assert_eq!(lab.klab(&["job", "show", &id, "--json"]).json(), before);
    }
}
