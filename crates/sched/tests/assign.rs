//! The rules of assignment, one by one.

mod support;

use std::collections::BTreeSet;

use klab_model::{Arch, Board, BoardState, Job, Outcome, Run, RunState};
use klab_sched::{Decision, JobEntry, Lab, assign};
use support::{active_on, board, bound, job, open, runs};

const X86: Arch = Arch::X86_64;

fn decide(boards: &[Board], jobs: &[(Job, Vec<Run>)]) -> Vec<Decision> {
    let archs = BTreeSet::from([X86]);
    let entry = |(job, runs)| JobEntry {
        job,
        runs,
        archs: &archs,
    };
    let jobs: Vec<JobEntry<'_>> = jobs.iter().map(|(job, runs)| entry((job, runs))).collect();
    assign(&Lab {
        boards,
        jobs: &jobs,
    })
}

fn with_runs(job: Job) -> (Job, Vec<Run>) {
    let runs = runs(&job);
    (job, runs)
}

fn done() -> RunState {
    RunState::Ended {
        attempts: 1,
        outcome: Outcome::Done,
    }
}

/// `job@board` for each decision, with `+` where a slot is bound.
fn shown(decisions: &[Decision], jobs: &[(Job, Vec<Run>)]) -> Vec<String> {
    let line = |decision: &Decision| {
        let job = jobs.iter().position(|(job, _)| job.id == decision.job);
        let bind = if decision.bind { "+" } else { "" };
        format!("{}@{}{bind}", job.expect("a known job"), decision.board)
    };
    decisions.iter().map(line).collect()
}

#[test]
fn the_lowest_queued_position_is_next_and_a_repeat_is_not_overtaken() {
    let boards = [board("b", X86, "a")];
    let (job, mut runs) = with_runs(job(1, "ann", 0, vec![bound("b")], (2, 2)));
    runs[0].state = done();
    runs[1].state = RunState::Queued { next_attempt: 2 };
    let second = runs[1].id;
    runs.reverse();
    let decisions = decide(&boards, &[(job, runs)]);
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0].run, second);
    assert!(!decisions[0].bind);
}

#[test]
fn a_slot_waits_for_its_active_run() {
    // The board calls itself free, but one of the runs still names another board.
    let boards = [board("b", X86, "a")];
    let (job, mut runs) = with_runs(job(1, "ann", 0, vec![bound("b")], (2, 1)));
    runs[0].state = active_on("elsewhere");
    assert_eq!(decide(&boards, &[(job, runs)]), []);
}

#[test]
fn a_board_that_a_run_still_names_is_not_free() {
    let boards = [board("b", X86, "a")];
    let mut old = with_runs(job(1, "ann", 0, vec![bound("b")], (1, 1)));
    old.1[0].state = active_on("b");
    let young = with_runs(job(2, "bob", 1, vec![bound("b")], (1, 1)));
    assert_eq!(decide(&boards, &[old, young]), []);
}

#[test]
fn boards_that_are_offline_or_of_another_arch_get_nothing() {
    let mut offline = board("off", X86, "a");
    offline.state = BoardState::new();
    let other = board("riscv", Arch::Riscv64, "a");
    let jobs = [
        with_runs(job(1, "ann", 0, vec![bound("off"), bound("riscv")], (1, 1))),
        with_runs(job(2, "ann", 1, vec![open(&["lab=a"])], (1, 1))),
    ];
    assert_eq!(decide(&[offline, other], &jobs), []);
}

#[test]
fn the_older_job_gets_the_board_whether_its_slot_is_open_or_bound() {
    let boards = [board("b", X86, "a")];
    for (old, young, expected) in [
        (open(&["lab=a"]), bound("b"), "0@b+"),
        (bound("b"), open(&["lab=a"]), "0@b"),
    ] {
        let jobs = [
            with_runs(job(9, "ann", 0, vec![old], (1, 1))),
            with_runs(job(1, "bob", 1, vec![young], (1, 1))),
        ];
        assert_eq!(shown(&decide(&boards, &jobs), &jobs), [expected]);
        let turned = [jobs[1].clone(), jobs[0].clone()];
        assert_eq!(decide(&boards, &turned), decide(&boards, &jobs));
    }
}

#[test]
fn of_jobs_of_the_same_moment_the_owner_with_less_goes_first() {
    let boards = [board("b1", X86, "a"), board("b2", X86, "a")];
    let mut busy = with_runs(job(1, "ann", 0, vec![bound("far")], (1, 1)));
    busy.1[0].state = active_on("far");
    let jobs = [
        busy,
        with_runs(job(2, "ann", 5, vec![bound("b1")], (1, 1))),
        with_runs(job(3, "bob", 5, vec![bound("b1"), bound("b2")], (1, 1))),
    ];
    // Bob has nothing and takes b1; then both have one, and the smaller id wins, but b1
    // is gone; so bob takes b2 as well.
    assert_eq!(shown(&decide(&boards, &jobs), &jobs), ["2@b1", "2@b2"]);
    let without_busy = &jobs[1..];
    let decisions = decide(&boards, without_busy);
    assert_eq!(shown(&decisions, without_busy), ["0@b1", "1@b2"]);
}

#[test]
fn an_open_slot_takes_the_board_with_least_bound_to_it_then_the_first_name() {
    let boards = [
        board("c", X86, "a"),
        board("b", X86, "a"),
        board("a", X86, "a"),
        board("0", X86, "other"),
    ];
    // Two runs are bound to `a`; the first of them is over.
    let mut heavy = with_runs(job(1, "ann", 0, vec![bound("a")], (2, 1)));
    heavy.1[0].state = done();
    heavy.1[1].state = active_on("elsewhere");
    let jobs = [
        heavy,
        with_runs(job(2, "ann", 1, vec![open(&["lab=a"])], (1, 1))),
        with_runs(job(
            3,
            "ann",
            2,
            vec![open(&["lab=a", "arch=x86_64"])],
            (1, 1),
        )),
        with_runs(job(4, "ann", 3, vec![open(&["lab=a"])], (1, 1))),
        with_runs(job(5, "ann", 4, vec![open(&["lab=a"])], (1, 1))),
    ];
    let decisions = decide(&boards, &jobs);
    assert_eq!(shown(&decisions, &jobs), ["1@b+", "2@c+", "3@a+"]);
}

#[test]
fn a_bound_slot_waits_for_its_board_while_others_are_free() {
    let mut gone = board("b1", X86, "a");
    gone.state = BoardState::new();
    let boards = [gone, board("b2", X86, "a")];
    let jobs = [with_runs(job(1, "ann", 0, vec![bound("b1")], (1, 1)))];
    assert_eq!(decide(&boards, &jobs), []);
}

#[test]
fn two_open_slots_of_a_job_get_two_boards() {
    let slots = || vec![open(&["lab=a"]), open(&["lab=a"])];
    let jobs = [with_runs(job(1, "ann", 0, slots(), (1, 1)))];
    let one = [board("b1", X86, "a")];
    assert_eq!(shown(&decide(&one, &jobs), &jobs), ["0@b1+"]);
    let two = [board("b1", X86, "a"), board("b2", X86, "a")];
    assert_eq!(shown(&decide(&two, &jobs), &jobs), ["0@b1+", "0@b2+"]);
}

#[test]
fn an_open_slot_leaves_the_boards_of_its_job_alone_even_when_they_are_done() {
    let slots = vec![bound("b1"), open(&["lab=a"])];
    let (job, mut runs) = with_runs(job(1, "ann", 0, slots, (1, 1)));
    runs[0].state = done();
    let jobs = [(job, runs)];
    assert_eq!(decide(&[board("b1", X86, "a")], &jobs), []);
    let two = [board("b1", X86, "a"), board("b2", X86, "a")];
    assert_eq!(shown(&decide(&two, &jobs), &jobs), ["0@b2+"]);
}

#[test]
fn what_an_owner_gets_counts_at_once() {
    let boards = [board("b1", X86, "a"), board("b2", X86, "a")];
    let jobs = [
        with_runs(job(1, "ann", 0, vec![bound("b1")], (1, 1))),
        with_runs(job(2, "ann", 0, vec![bound("b2")], (1, 1))),
        with_runs(job(3, "bob", 0, vec![bound("b2")], (1, 1))),
    ];
    assert_eq!(shown(&decide(&boards, &jobs), &jobs), ["0@b1", "2@b2"]);
}
