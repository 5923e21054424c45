//! Boards and jobs to decisions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use klab_model::{
    Arch, Board, BoardName, BoardSlot, Job, JobId, Owner, Run, RunId, RunState, TagSelector,
};

/// A job with everything that the scheduler must know about it.
#[derive(Debug, Clone, Copy)]
pub struct JobEntry<'a> {
    /// The job. An open slot that has been bound appears as bound.
    pub job: &'a Job,
    /// All its runs, in any order.
    pub runs: &'a [Run],
    /// The architectures that it has kernels for.
    pub archs: &'a BTreeSet<Arch>,
}

/// What [`assign`] looks at. The order of boards and jobs does not matter.
#[derive(Debug, Clone, Copy)]
pub struct Lab<'a> {
    /// Every board.
    pub boards: &'a [Board],
    /// Every job that is live; others are ignored.
    pub jobs: &'a [JobEntry<'a>],
}

/// One run that begins now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// Its job.
    pub job: JobId,
    /// Its slot: an index into [`Job::boards`].
    pub slot: u32,
    /// The board that executes it.
    pub board: BoardName,
    /// Whether the slot was open and is bound to this board from now on.
    pub bind: bool,
}

/// Says which runs begin now, in the order in which they were chosen.
///
/// A run is chosen only if it is queued, its board is connected and idle and has the
/// right architecture (the job has a kernel for it), and every other run of its slot is either over or comes later.
pub fn assign(lab: &Lab<'_>) -> Vec<Decision> {
    let mut boards = Boards::of(lab);
    let mut shares = Shares::of(lab);
    let mut waiting: Vec<Waiting<'_>> = lab.jobs.iter().flat_map(waiting_slots).collect();
    // Latest first: the next one is taken from the end.
    waiting.sort_by_key(|slot| Reverse(slot.fixed_key()));
    let mut decisions = Vec::new();
    while let Some(slot) = take_next(&mut waiting, &shares) {
        if let Some(decision) = boards.serve(&slot) {
            shares.add(&slot.entry.job.owner);
            decisions.push(decision);
        }
    }
    decisions
}

/// A slot with nothing active and something queued.
struct Waiting<'a> {
    entry: &'a JobEntry<'a>,
    slot: u32,
    place: &'a BoardSlot,
    run: RunId,
}

impl Waiting<'_> {
    /// Age, then the ids, which decide between equals in the same way every time.
    fn fixed_key(&self) -> (klab_model::Timestamp, JobId, u32) {
        (self.entry.job.created_at, self.entry.job.id, self.slot)
    }
}

fn waiting_slots<'a>(entry: &'a JobEntry<'a>) -> Vec<Waiting<'a>> {
    let mut next: BTreeMap<u32, &Run> = BTreeMap::new();
    let mut active = BTreeSet::new();
    for run in entry.runs {
        match run.state {
            RunState::Queued { .. } => {
                let first = next.entry(run.slot).or_insert(run);
                if run.position < first.position {
                    *first = run;
                }
            }
            RunState::Active { .. } => {
                active.insert(run.slot);
            }
            RunState::Ended { .. } => {}
        }
    }
    next.into_iter()
        .filter(|(slot, _)| !active.contains(slot))
        .filter_map(|(slot, run)| {
            let place = entry.job.boards.get(slot as usize)?;
            Some(Waiting {
                entry,
                slot,
                place,
                run: run.id,
            })
        })
        .collect()
}

/// Takes the slot that chooses next: of the oldest jobs, one whose owner has least.
/// `waiting` is sorted with the oldest at the end.
fn take_next<'a>(waiting: &mut Vec<Waiting<'a>>, shares: &Shares<'_>) -> Option<Waiting<'a>> {
    let oldest = waiting.last()?.entry.job.created_at;
    let index = waiting
        .iter()
        .enumerate()
        .rev()
        .take_while(|(_, slot)| slot.entry.job.created_at == oldest)
        .min_by_key(|(_, slot)| (shares.of_owner(&slot.entry.job.owner), slot.fixed_key()))
        .map(|(index, _)| index)?;
    Some(waiting.remove(index))
}

/// How many active runs each owner has.
struct Shares<'a>(BTreeMap<&'a Owner, usize>);

impl<'a> Shares<'a> {
    fn of(lab: &Lab<'a>) -> Self {
        let mut shares = Self(BTreeMap::new());
        for entry in lab.jobs {
            for run in entry.runs {
                if run.state.assignment().is_some() {
                    shares.add(&entry.job.owner);
                }
            }
        }
        shares
    }

    fn of_owner(&self, owner: &Owner) -> usize {
        self.0.get(owner).copied().unwrap_or(0)
    }

    fn add(&mut self, owner: &'a Owner) {
        *self.0.entry(owner).or_insert(0) += 1;
    }
}

/// The boards that can still be given away, and what is bound to each board.
struct Boards<'a> {
    free: BTreeMap<&'a BoardName, &'a Board>,
    bound_runs: BTreeMap<&'a BoardName, usize>,
}

impl<'a> Boards<'a> {
    fn of(lab: &Lab<'a>) -> Self {
        let mut bound_runs: BTreeMap<&BoardName, usize> = BTreeMap::new();
        let mut at_work = BTreeSet::new();
        for entry in lab.jobs {
            for run in entry.runs.iter().filter(|run| run.state.is_live()) {
                let slot = entry.job.boards.get(run.slot as usize);
                if let Some(board) = slot.and_then(BoardSlot::board) {
                    *bound_runs.entry(board).or_insert(0) += 1;
                }
                at_work.extend(run.state.assignment().map(|a| &a.board));
            }
        }
        // A board without a run of its own may still be named by one, between two steps
        // of a caller; it is not free then.
        let free = lab.boards.iter().filter(|board| board.state.is_free());
        let free = free.filter(|board| !at_work.contains(&board.name));
        Self {
            free: free.map(|board| (&board.name, board)).collect(),
            bound_runs,
        }
    }

    /// Gives the slot its board, if that can be had now.
    fn serve(&mut self, slot: &Waiting<'a>) -> Option<Decision> {
        let board = match slot.place {
            BoardSlot::Bound(name) => self.named(name, slot.entry.archs),
            BoardSlot::Open(tags) => self.fitting(tags, slot.entry),
        }?;
        self.free.remove(board);
        Some(Decision {
            run: slot.run,
            job: slot.entry.job.id,
            slot: slot.slot,
            board: board.clone(),
            bind: slot.place.board().is_none(),
        })
    }

    fn named(&self, name: &BoardName, archs: &BTreeSet<Arch>) -> Option<&'a BoardName> {
        let (name, board) = self.free.get_key_value(name)?;
        archs.contains(&board.arch).then_some(*name)
    }

    /// The free board that fits and has least to do for others; then the first by name.
    /// Two slots of one job never share a board.
    fn fitting(&self, tags: &TagSelector, entry: &JobEntry<'_>) -> Option<&'a BoardName> {
        let taken = |name: &BoardName| {
            let slots = &entry.job.boards;
            slots.iter().any(|slot| slot.board() == Some(name))
        };
        self.free
            .iter()
            .filter(|(_, board)| entry.archs.contains(&board.arch))
            .filter(|(_, board)| tags.matches(board.arch, &board.tags))
            .filter(|(name, _)| !taken(name))
            .min_by_key(|(name, _)| (self.bound_runs.get(*name).copied().unwrap_or(0), **name))
            .map(|(name, _)| *name)
    }
}
