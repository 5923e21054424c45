//! Deciding for a whole lab, against walking over all its runs once.
#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use klab_model::{Arch, Board, Job, Run};
use klab_sched::{JobEntry, Lab, assign};
use klab_testkit::bench::{compare, timed};
use support::{board, job, open, runs};

const BOARDS: usize = 200;
const JOBS: u128 = 200;

/// Half of the boards are idle; each job has 2 slots of 4 variants in 5 rounds.
fn lab() -> (Vec<Board>, Vec<(Job, Vec<Run>)>) {
    let boards = (0..BOARDS).map(|n| board(&format!("b{n}"), Arch::X86_64, "here"));
    let jobs = (0..JOBS).map(|n| {
        let slots = vec![open(&["lab=here"]), open(&["lab=here"])];
        let owner = format!("dev{}", n % 10);
        let job = job(n + 1, &owner, i64::try_from(n).unwrap_or(0), slots, (4, 5));
        let runs = runs(&job);
        (job, runs)
    });
    (boards.collect(), jobs.collect())
}

fn main() {
    let (boards, jobs) = lab();
    let archs = BTreeSet::from([Arch::X86_64]);
    let entries: Vec<JobEntry<'_>> = jobs
        .iter()
        .map(|(job, runs)| JobEntry {
            job,
            runs,
            archs: &archs,
        })
        .collect();
    let lab = Lab {
        boards: &boards,
        jobs: &entries,
    };
    let live = || entries.iter().flat_map(|entry| entry.runs);
    compare(
        ("assign, 200 boards and 8000 runs", || {
            timed(|| assign(&lab))
        }),
        ("counting the live runs", || {
            timed(|| live().filter(|run| run.state.is_live()).count())
        }),
        200,
    );
}
