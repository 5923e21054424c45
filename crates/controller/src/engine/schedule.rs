//! Asks the scheduler after every change and carries out what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use klab_model::{
    Arch, Board, BoardName, BoardState, Busy, JobEventBody, JobId, Presence, Run, RunEvent, RunId,
};
use klab_sched::{Decision, JobEntry, Lab, assign};
use klab_store::{JobRecord, NewEvent, Transition, Versioned};
use tracing::{error, info};

use super::{AttemptKey, Down, Engine, EngineError, LEASE};

const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// What was read for one round of scheduling.
struct Snapshot {
    boards: BTreeMap<BoardName, Versioned<Board>>,
    jobs: Vec<(JobRecord, BTreeSet<Arch>)>,
}

impl Engine {
    pub(super) async fn schedule_loop(self: Arc<Self>) {
        loop {
            self.assignable.notified().await;
            match self.schedule().await {
                Ok(()) => {}
                Err(error) if error.is_conflict() => self.assignable.notify_one(),
                Err(error) => {
                    error!(%error, "failed to schedule");
                    self.clock.sleep(PAUSE_AFTER_ERROR).await;
                    self.assignable.notify_one();
                }
            }
        }
    }

    async fn schedule(&self) -> Result<(), EngineError> {
        let _turn = self.turn().await;
        let snapshot = self.snapshot().await?;
        let mut begun = false;
        for decision in decide_runs(&snapshot) {
            begun |= self.begin(&snapshot, &decision).await?;
        }
        if begun {
            self.feed_changed();
            self.leases.notify_one();
        }
        Ok(())
    }

    async fn snapshot(&self) -> Result<Snapshot, EngineError> {
        let occupied = self.sessions.occupied();
        let mut boards = BTreeMap::new();
        for mut board in self.store.list_boards().await? {
            // An agent that still works on something that is over cannot take an order.
            if occupied.contains(&board.value.name) {
                board.value.state = BoardState {
                    presence: Presence::Offline,
                    busy: board.value.state.busy,
                };
            }
            boards.insert(board.value.name.clone(), board);
        }
        let mut jobs = Vec::new();
        for record in self.store.live_jobs().await? {
            // A job whose kernels are still built waits as a whole: its rounds are interleaved.
            if let Some(archs) = self.settle_kernels(&record).await? {
                jobs.push((self.store.job(record.job.id).await?, archs));
            }
        }
        Ok(Snapshot { boards, jobs })
    }

    /// Carries a decision out; `false` if it no longer fits.
    async fn begin(&self, snapshot: &Snapshot, decision: &Decision) -> Result<bool, EngineError> {
        let Some((run, board)) = snapshot.find(decision) else {
            return Ok(false);
        };
        let fence = self.store.next_fence().await?;
        let event = RunEvent::Assigned {
            board: decision.board.clone(),
            fence,
        };
        let busy = Busy {
            run: decision.run,
            fence,
            lease_until: self.in_future(LEASE),
        };
        let (Ok(run_state), Ok(board_state)) =
            (run.value.state.apply(event), board.value.state.assign(busy))
        else {
            return Ok(false);
        };
        let after = Run {
            state: run_state.clone(),
            ..run.value.clone()
        };
        let Some(key) = AttemptKey::assigned(&after) else {
            return Ok(false);
        };
        let assigned = JobEventBody::RunAssigned {
            attempt: key.attempt,
        };
        let mut transition = Transition::new(self.now())
            .run(run, run_state)
            .board(board, board_state)
            .event(NewEvent::of_run(
                decision.job,
                decision.run,
                Some(decision.board.clone()),
                assigned,
            ));
        if decision.bind {
            transition = transition.bind(decision.job, decision.slot, decision.board.clone());
        }
        self.store.transition(&transition).await?;
        info!(run = %key.run, attempt = key.attempt, board = %decision.board, "assigned");
        self.consoles.begin(&decision.board, key);
        if let Some(order) = self.order_of(&after).await? {
            self.sessions
                .send(&decision.board, Down::Order(Box::new(order)));
        }
        Ok(true)
    }
}

impl Snapshot {
    fn find(&self, decision: &Decision) -> Option<(&Versioned<Run>, &Versioned<Board>)> {
        let run = self.run(decision.job, decision.run)?;
        Some((run, self.boards.get(&decision.board)?))
    }

    fn run(&self, job: JobId, run: RunId) -> Option<&Versioned<Run>> {
        let (record, _) = self.jobs.iter().find(|(record, _)| record.job.id == job)?;
        record.runs.iter().find(|known| known.value.id == run)
    }
}

fn decide_runs(snapshot: &Snapshot) -> Vec<Decision> {
    let boards: Vec<Board> = snapshot
        .boards
        .values()
        .map(|board| board.value.clone())
        .collect();
    let runs: Vec<Vec<Run>> = snapshot
        .jobs
        .iter()
        .map(|(record, _)| record.runs().cloned().collect())
        .collect();
    let jobs: Vec<JobEntry<'_>> = snapshot
        .jobs
        .iter()
        .zip(&runs)
        .map(|((record, archs), runs)| JobEntry {
            job: &record.job,
            runs,
            archs,
        })
        .collect();
    assign(&Lab {
        boards: &boards,
        jobs: &jobs,
    })
}
