//! `klab watch`: every event once, from the start to the end, and the outcome as exit code.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use insta::assert_snapshot;
use klab_model::{EventBody, Failure};
use serde_json::Value;
use support::Lab;
use support::board::{Board, done, fetching, panicked, trial};

/// Lines of events without their times.
fn untimed<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let words = lines.map(|line| {
        let (time, words) = line.split_once(' ').unwrap();
        assert!(time.ends_with('Z') && time.len() == 20, "{line}");
        format!("{words}\n")
    });
    words.collect()
}

#[test]
fn process_watch_follows_a_job_from_its_start_to_its_end() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let id = lab.submit("b1", &["--rounds", "1"]);
    let at = board.order();
    board.report(at, 1, fetching());
    let mut watch = lab.spawn(&["watch", "last"]);
    let mut lines = watch.until("fetch");
    board.upload(at, "stdout", "log", b"x");
    board.report(at, 2, trial());
    lines.extend(watch.until("trial 1 (cyclictest) done"));
    board.report(at, 3, done());
    let told = watch.end();
    assert_eq!((told.code, told.out.as_str()), (0, ""), "{told:?}");
    let lines = lines.iter().map(String::as_str).chain(told.err.lines());
    let said = untimed(lines);
    assert_snapshot!(said, @r"
    submitted: 1 run
    b1 round 1 base: assigned, attempt 1
    b1 round 1 base: fetch
    b1 round 1 base: stored stdout of trial 1
    b1 round 1 base: trial 1 (cyclictest) done
    b1 round 1 base: run done
    job done
    ");
    // A job that has ended is told in the same words.
    let again = lab.klab(&["watch", &id]);
    assert_eq!((again.code, again.out.as_str()), (0, ""));
    assert_eq!(untimed(again.err.lines()), said);
}

#[test]
fn process_watch_prints_events_as_lines_of_json() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let id = lab.submit("b1", &["--rounds", "1"]);
    let watch = lab.spawn(&["watch", &id, "--json"]);
    board.work(&[("stdout", "log", b"x")], panicked());
    let told = watch.end();
    assert_eq!((told.code, told.err.as_str()), (1, ""), "{told:?}");
    let mut events: Vec<Value> = told
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = events.len() - 1;
    for (index, event) in events.iter_mut().enumerate() {
        assert_eq!(event["seq"].take(), index + 1);
        assert!(event["at"].take().as_str().unwrap().ends_with('Z'));
        let of_a_run = 0 < index && index < last;
        assert_eq!(
            event["run"].take().as_str().unwrap().len(),
            if of_a_run { 36 } else { 0 }
        );
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    assert_snapshot!(lines.join("\n"));
    let again = lab.klab(&["watch", &id, "--json"]);
    assert_eq!((again.code, again.out), (1, told.out));
}

#[test]
fn process_watch_ends_with_the_outcome_of_the_job() {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    let failed = |failure| EventBody::Finished {
        failure: Some(failure),
    };
    let lost = || failed(Failure::infrastructure("the disk is full"));
    let ends = [
        (vec![done()], 0),
        (vec![panicked()], 1),
        (
            vec![failed(Failure::workload("cyclictest ended with 1"))],
            1,
        ),
        (vec![lost(), lost(), lost()], 3),
        (vec![lost(), done()], 0),
    ];
    for (attempts, code) in ends {
        let id = lab.submit("b1", &["--rounds", "1"]);
        let watch = lab.spawn(&["watch", &id, "--quiet"]);
        for end in attempts {
            board.work(&[], end);
        }
        let told = watch.end();
        let nothing = (told.out.as_str(), told.err.as_str());
        assert_eq!((told.code, nothing), (code, ("", "")), "{told:?}");
        assert_eq!(lab.klab(&["watch", &id, "--quiet"]).code, code);
    }
    drop(board);
    lab.submit("b1", &[]);
    let mut watch = lab.spawn(&["watch", "last"]);
    watch.until("submitted: 3 runs");
    lab.klab(&["cancel", "last"]).ok();
    let told = watch.end();
    assert_eq!(told.code, 3);
    assert!(told.err.ends_with("job cancelled\n"), "{told:?}");
}

#[test]
fn process_watch_outlives_the_controller_and_shows_every_event_once() {
    let mut lab = Lab::ready();
    let id = lab.submit("b1", &["--rounds", "2"]);
    let mut watch = lab.spawn(&["watch", &id]);
    let mut lines = watch.until("submitted: 2 runs");
    for run in ["first", "second"] {
        lab.kill_controller();
        let said = watch.until("trying again");
        assert_eq!(
            said,
            ["the controller does not answer; trying again"],
            "{run}"
        );
        lab.start_controller_again();
        assert_eq!(watch.until("connected again"), ["connected again"]);
        let mut board = Board::connect(lab.address(), "b1");
        board.work(&[], done());
        lines.extend(watch.until("run done"));
    }
    let told = watch.end();
    assert_eq!(told.code, 0);
    lines.extend(told.err.lines().map(str::to_owned));
    let again = lab.klab(&["watch", &id]);
    let again: Vec<&str> = again.err.lines().collect();
    assert_eq!(lines, again);
}
