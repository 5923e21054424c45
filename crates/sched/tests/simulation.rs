//! Whole lives of random labs: assign, carry out, finish, again.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use klab_model::{
    Arch, Board, BoardName, BoardSlot, Busy, Failure, Fence, Job, JobId, Run, RunEvent, RunId,
    from_micros,
};
use klab_sched::{Decision, JobEntry, Lab, assign};
use proptest::prelude::*;
use support::{board, bound, job, open, runs};

#[derive(Debug, Clone)]
struct World {
    boards: Vec<Board>,
    jobs: Vec<(Job, Vec<Run>, BTreeSet<Arch>)>,
    fence: u64,
    /// Slot to the board that its first run had, and the last position that began.
    history: BTreeMap<(JobId, u32), (BoardName, u32)>,
}

impl World {
    fn decide(&self) -> Vec<Decision> {
        let entries: Vec<JobEntry<'_>> = self
            .jobs
            .iter()
            .map(|(job, runs, archs)| JobEntry { job, runs, archs })
            .collect();
        assign(&Lab {
            boards: &self.boards,
            jobs: &entries,
        })
    }

    /// Checks every decision against the rules that hold always, then carries it out.
    fn carry_out(&mut self, decisions: &[Decision]) {
        let boards: BTreeSet<_> = decisions.iter().map(|d| &d.board).collect();
        assert_eq!(boards.len(), decisions.len(), "a board twice");
        let runs: BTreeSet<RunId> = decisions.iter().map(|d| d.run).collect();
        assert_eq!(runs.len(), decisions.len(), "a run twice");
        for decision in decisions {
            self.carry_out_one(decision);
        }
    }

    fn carry_out_one(&mut self, decision: &Decision) {
        self.fence += 1;
        let fence = Fence(self.fence);
        let of_job = |(job, _, _): &&mut (Job, Vec<Run>, BTreeSet<Arch>)| job.id == decision.job;
        let (job, runs, archs) = self.jobs.iter_mut().find(of_job).expect("a known job");
        let busy = runs.iter().filter(|run| run.slot == decision.slot);
        let busy = busy.filter(|run| run.state.assignment().is_some()).count();
        assert_eq!(busy, 0, "a slot with two active runs");
        let run = runs.iter_mut().find(|run| run.id == decision.run);
        let run = run.expect("a known run");
        assert_eq!(run.slot, decision.slot);
        let board = self.boards.iter_mut().find(|b| b.name == decision.board);
        let board = board.expect("a known board");
        assert!(archs.contains(&board.arch));
        let slot = &mut job.boards[decision.slot as usize];
        match slot {
            BoardSlot::Bound(name) => assert!(*name == decision.board && !decision.bind),
            BoardSlot::Open(tags) => {
                assert!(decision.bind && tags.matches(board.arch, &board.tags));
                *slot = BoardSlot::Bound(decision.board.clone());
            }
        }
        let key = (decision.job, decision.slot);
        let new = (decision.board.clone(), run.position);
        if let Some((name, position)) = self.history.insert(key, new) {
            assert_eq!(name, decision.board, "a slot moved");
            assert!(position == run.position || position + 1 == run.position);
        }
        // Only queued runs and free boards accept these.
        let assigned = RunEvent::Assigned {
            board: decision.board.clone(),
            fence,
        };
        run.state = run.state.apply(assigned).expect("a queued run");
        let busy = Busy {
            run: run.id,
            fence,
            lease_until: from_micros(0),
        };
        board.state = board.state.assign(busy).expect("a free board");
    }

    /// Ends the attempt on one of the busy boards, `pick` says which and how.
    fn finish_one(&mut self, pick: usize) {
        let busy: Vec<usize> = (0..self.boards.len())
            .filter(|n| self.boards[*n].state.busy.is_some())
            .collect();
        let board = &mut self.boards[busy[pick % busy.len()]];
        let work = board.state.busy.expect("chosen because it is busy");
        board.state = board.state.release(work.fence);
        let mut all = self.jobs.iter_mut().flat_map(|(_, runs, _)| runs);
        let run = all.find(|run| run.id == work.run).expect("a known run");
        let failure = pick
            .is_multiple_of(3)
            .then(|| Failure::infrastructure("the network is gone"));
        let event = RunEvent::Finished {
            fence: work.fence,
            failure,
        };
        run.state = run.state.apply(event).expect("the fence in charge");
    }

    fn live_runs(&self) -> usize {
        let runs = self.jobs.iter().flat_map(|(_, runs, _)| runs);
        runs.filter(|run| run.state.is_live()).count()
    }

    fn busy_boards(&self) -> usize {
        self.boards
            .iter()
            .filter(|b| b.state.busy.is_some())
            .count()
    }
}

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Riscv64];
const LABS: [&str; 2] = ["a", "b"];

/// Boards of both architectures in both labs, so that every job below can be served.
fn worlds() -> impl Strategy<Value = World> {
    let extra = prop::collection::vec((0..2usize, 0..2usize), 0..4);
    let one_job = (
        0..2usize, // arch
        prop::sample::select(vec!["ann", "bob"]),
        0..3i64,            // time
        0..7usize,          // which slots
        (1..4u32, 1..4u32), // variants, rounds
    );
    (extra, prop::collection::vec(one_job, 0..7)).prop_map(|(extra, specs)| {
        let fixed = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let kinds = fixed.into_iter().chain(extra);
        let boards: Vec<Board> = (0..)
            .zip(kinds)
            .map(|(n, (arch, lab)): (u32, _)| board(&format!("b{n}"), ARCHES[arch], LABS[lab]))
            .collect();
        let jobs = (1..)
            .zip(specs)
            .map(|(n, (arch, owner, time, slots, size))| {
                let first = arch * 2;
                let slots = match slots {
                    0 => vec![open(&["lab=a"])],
                    1 => vec![open(&["lab=b"])],
                    2 => vec![open(&[]), open(&[])],
                    3 => vec![bound(&format!("b{first}"))],
                    4 => vec![bound(&format!("b{}", first + 1))],
                    5 => vec![
                        bound(&format!("b{first}")),
                        bound(&format!("b{}", first + 1)),
                    ],
                    // Boards of both architectures.
                    _ => vec![bound("b0"), bound("b2")],
                };
                let archs = match slots.as_slice() {
                    [one, other] if *one == bound("b0") && *other == bound("b2") => {
                        BTreeSet::from(ARCHES)
                    }
                    _ => BTreeSet::from([ARCHES[arch]]),
                };
                let job = job(n, owner, time, slots, size);
                let runs = runs(&job);
                (job, runs, archs)
            });
        World {
            jobs: jobs.collect(),
            boards,
            fence: 0,
            history: BTreeMap::new(),
        }
    })
}

proptest! {
    /// As long as boards stay up every job ends, whatever the order in which attempts end
    /// and however many are repeated, and no rule is broken on the way.
    #[test]
    fn every_job_ends(mut world in worlds(), picks in prop::collection::vec(0..60usize, 1..20)) {
        let mut picks = picks.into_iter().cycle();
        loop {
            let decisions = world.decide();
            world.carry_out(&decisions);
            prop_assert_eq!(world.decide(), []);
            if world.busy_boards() == 0 {
                break;
            }
            world.finish_one(picks.next().unwrap_or(1));
        }
        prop_assert_eq!(world.live_runs(), 0);
    }

    /// The order of boards, jobs and runs in the input changes nothing.
    #[test]
    fn the_order_of_the_input_does_not_matter(
        mut world in worlds(),
        steps in 0..10usize,
        turn in 0..5usize,
    ) {
        for step in 0..steps {
            let decisions = world.decide();
            world.carry_out(&decisions);
            if world.busy_boards() > 0 {
                world.finish_one(step);
            }
        }
        let mut turned = world.clone();
        turned.boards.reverse();
        let middle = turn.min(turned.jobs.len());
        turned.jobs.rotate_left(middle);
        for (_, runs, _) in &mut turned.jobs {
            runs.reverse();
        }
        prop_assert_eq!(world.decide(), turned.decide());
    }

    /// Nobody waits for a board that idles: after a decision no slot that could run on a
    /// free board is left.
    #[test]
    fn no_board_idles_while_somebody_could_use_it(mut world in worlds()) {
        let decisions = world.decide();
        world.carry_out(&decisions);
        for (job, runs, archs) in &world.jobs {
            for (slot, place) in (0u32..).zip(&job.boards) {
                let mut of_slot = runs.iter().filter(|run| run.slot == slot);
                if of_slot.any(|run| run.state.assignment().is_some()) {
                    continue;
                }
                let own: Vec<_> = job.boards.iter().filter_map(BoardSlot::board).collect();
                let usable = world.boards.iter().filter(|b| b.state.is_free() && archs.contains(&b.arch));
                let usable = usable.filter(|board| match place {
                    BoardSlot::Bound(name) => board.name == *name,
                    BoardSlot::Open(tags) => {
                        tags.matches(board.arch, &board.tags) && !own.contains(&&board.name)
                    }
                });
                prop_assert_eq!(usable.count(), 0);
            }
        }
    }
}
