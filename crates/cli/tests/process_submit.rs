//! `klab submit`: what is refused and how it is mended, what is taken, how `--wait` ends.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use insta::assert_snapshot;
use klab_proto::v1;
use serde_json::{Value, json};
use support::board::{Board, cyclictest, done, panicked};
use support::{Lab, write};

#[test]
fn process_submit_refuses_with_everything_that_is_wrong_and_its_mend() {
    let lab = Lab::ready();
    lab.kernel("rt-6.1");
    drop(Board::of_arch(lab.address(), "x86-1", v1::Arch::X8664));
    write(lab.path(), "binary.yaml", b"name: a\nabout: \xff\n");
    let mut said = String::new();
    for words in [
        "--variant base=k1 --boards b9",
        "--variant base=k1 --boards b1,b1",
        "--variant base=k1 --boards x86-1",
        "--variant base=k1 --boards arch=x86_64",
        "--variant base=k1 --boards room=shed",
        "--variant base=rt-6.2 --boards b1",
        "--variant base=k1 --variant base=rt-6.1 --boards b1",
        "--variant base=no --variant rt=none --boards b9",
        "--variant base=k1 --variant rt=rt-6.1 --boards b1 --rounds 1001",
        "--variant base=k1 --boards b1 --owner=",
        "--variant base=k1 --boards b1 --plan rt-latncy",
        "--variant base=k1 --boards b1 --plan missing.yaml",
        "--variant base=k1 --boards b1 --plan binary.yaml",
        "--variant k1 --boards b1",
        "--variant =k1 --boards b1",
        "--boards b1",
        "--variant base=k1",
    ] {
        let plan = if words.contains("--plan") {
            ""
        } else {
            " --plan quick.yaml"
        };
        let words = format!("{words}{plan}");
        let arguments: Vec<&str> = ["submit"].into_iter().chain(words.split(' ')).collect();
        let told = lab.klab(&arguments);
        assert_eq!(told.code, 2, "{words}");
        said += &format!("{words}\n{}\n", told.refused());
        let with_json = lab.klab(&[&arguments[..], &["--json"]].concat());
        let before_usage = |text: &'_ str| text.split("\n\nUsage").next().map(str::to_owned);
        assert_eq!(
            before_usage(with_json.refused()),
            before_usage(told.refused())
        );
    }
    assert_snapshot!(said);
    let jobs = lab.klab(&["jobs", "--json"]).json();
    assert_eq!(jobs, json!([]), "nothing is half accepted");
}

#[test]
fn process_submit_gives_the_id_of_the_job() {
    let lab = Lab::ready();
    let id = lab.submit("room=lab", &["--rounds", "2", "--owner", "alice"]);
    let mut job = lab.klab(&["jobs", "--json"]).json()[0].take();
    assert!(job["created_at"].take().as_str().unwrap().ends_with('Z'));
    let expected = json!({
        "id": id,
        "owner": "alice",
        "plan": "quick",
        "variants": [{ "name": "base", "kernels": ["k1"] }],
        "boards": ["room=lab"],
        "rounds": 2,
        "state": "queued",
        "failure_class": "",
        "runs_total": 2,
        "runs_ended": 0,
        "created_at": null,
    });
    assert_eq!(job, expected);
    // Without --owner it is the user, without --rounds there are three.
    let more = "--variant a=k1 --variant b=k1 --boards b1 --plan rt-latency --json";
    let words: Vec<&str> = ["submit"].into_iter().chain(more.split(' ')).collect();
    let job = lab.klab(&words).json();
    assert_eq!((&job["owner"], &job["rounds"]), (&json!("dev"), &json!(3)));
    assert_eq!(
        (&job["plan"], &job["runs_total"]),
        (&json!("rt-latency"), &json!(6))
    );
}

const WAIT: [&str; 10] = [
    "submit",
    "--variant",
    "base=k1",
    "--plan",
    "quick.yaml",
    "--boards",
    "b1",
    "--rounds",
    "1",
    "--wait",
];

#[test]
fn process_submit_and_wait_ends_with_the_comparison_and_the_outcome() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    for (end, code, last) in [(done(), 0, "job done"), (panicked(), 1, "job failed")] {
        let mut waiting = lab.spawn(&WAIT);
        let first = waiting.until("1 run").remove(0);
        board.work(
            &[("cyclictest.json", "cyclictest-json", &cyclictest(40))],
            end,
        );
        let told = waiting.end();
        assert_eq!(told.code, code, "{told:?}");
        assert!(told.err.trim_end().ends_with(last), "{told:?}");
        let compared = lab.klab(&["compare", "last"]);
        assert_eq!(told.out, compared.ok());
        assert!(
            first.starts_with("job ")
                && told
                    .out
                    .contains(first.split(' ').nth(1).unwrap().trim_end_matches(':'))
        );
    }
}

#[test]
fn process_submit_and_wait_outlives_the_controller() {
    let mut lab = Lab::ready();
    let mut waiting = lab.spawn(&WAIT);
    waiting.until("submitted: 1 run");
    lab.kill_controller();
    waiting.until("trying again");
    lab.start_controller_again();
    waiting.until("connected again");
    let mut board = Board::connect(lab.address(), "b1");
    board.work(&[], done());
    let told = waiting.end();
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(told.out, lab.klab(&["compare", "last"]).ok());
}

#[test]
fn process_submit_and_wait_quietly_prints_the_comparison_only() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let waiting = lab.spawn(&[&WAIT[..], &["--quiet"]].concat());
    board.work(&[], done());
    let told = waiting.end();
    assert_eq!(told.ok(), lab.klab(&["compare", "last"]).ok());
}

#[test]
fn process_submit_and_wait_prints_events_and_the_comparison_as_lines_of_json() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let waiting = lab.spawn(&[&WAIT[..], &["--json", "--quiet"]].concat());
    board.work(&[], done());
    let told = waiting.end();
    let lines = told.ok().lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (report, events) = lines.split_last().unwrap();
    assert_eq!(report["schema"], "klab.report/v1");
    assert_eq!(events.last().unwrap()["event"], "job-ended");
}
