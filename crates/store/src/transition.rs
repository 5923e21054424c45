//! One transaction per transition.

use klab_model::{
    AgentEvent, Board, BoardName, BoardState, JobEvent, JobId, Outcome, Run, RunId, RunState,
    Timestamp,
};
use sqlx::AnyConnection;

use crate::row::json;
use crate::{NewEvent, Store, StoreError, Version, Versioned, attempts, boards, feed, sql};

/// Changes that belong together: all of them happen, or none.
///
/// ```no_run
/// # use klab_model::*; use klab_store::*;
/// # async fn f(store: Store, now: Timestamp, run: Versioned<Run>, new_run: RunState,
/// #     board: Versioned<Board>, new_board: BoardState, fed: NewEvent) -> Result<(), StoreError> {
/// let transition = Transition::new(now)
///     .run(&run, new_run)
///     .board(&board, new_board)
///     .event(fed);
/// store.transition(&transition).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Transition {
    at: Timestamp,
    runs: Vec<(RunId, Version, RunState)>,
    boards: Vec<(Board, Option<Version>)>,
    bindings: Vec<(JobId, u32, BoardName)>,
    attempt_ends: Vec<(RunId, u32, Outcome)>,
    events: Vec<NewEvent>,
}

/// A transition that happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The events as they stand in the feeds now, in the order in which they were given.
    pub events: Vec<(JobId, JobEvent)>,
}

/// What became of an event of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// It was new; it is recorded and its transition has happened.
    New(Applied),
    /// It had been recorded before; nothing was changed.
    Again,
}

impl Transition {
    /// No change yet; `at` is the time that events and attempts get.
    pub const fn new(at: Timestamp) -> Self {
        Self {
            at,
            runs: Vec::new(),
            boards: Vec::new(),
            bindings: Vec::new(),
            attempt_ends: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A run gets a new state. A state that names a new attempt begins that attempt.
    #[must_use]
    pub fn run(mut self, run: &Versioned<Run>, state: RunState) -> Self {
        self.runs.push((run.value.id, run.version, state));
        self
    }

    /// A board gets a new state.
    #[must_use]
    pub fn board(self, board: &Versioned<Board>, state: BoardState) -> Self {
        let new = Board {
            state,
            ..board.value.clone()
        };
        self.whole_board(new, Some(board.version))
    }

    /// A board gets new facts, tags, holder and state; without a version it is new.
    #[must_use]
    pub fn whole_board(mut self, board: Board, expected: Option<Version>) -> Self {
        self.boards.push((board, expected));
        self
    }

    /// A slot of a job gets its board for good.
    #[must_use]
    pub fn bind(mut self, job: JobId, slot: u32, board: BoardName) -> Self {
        self.bindings.push((job, slot, board));
        self
    }

    /// An attempt ended without a word of its agent, for example because its lease ran
    /// out. Ends that the agent reports are taken from its events.
    #[must_use]
    pub fn attempt_ended(mut self, run: RunId, attempt: u32, outcome: Outcome) -> Self {
        self.attempt_ends.push((run, attempt, outcome));
        self
    }

    /// Adds to the feed of a job.
    #[must_use]
    pub fn event(mut self, event: NewEvent) -> Self {
        self.events.push(event);
        self
    }
}

impl Store {
    /// Makes a transition.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if anything was changed since it was read, a run has ended,
    /// or a slot has another board; [`StoreError::NotFound`]. Nothing has changed then.
    pub async fn transition(&self, transition: &Transition) -> Result<Applied, StoreError> {
        let mut tx = self.begin().await?;
        let applied = apply(&mut tx, transition).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("save a transition"))?;
        Ok(applied)
    }

    /// Records an event of an agent together with the transition that it causes. A proved
    /// identity, the result of a trial and the end of the attempt are saved from the event.
    ///
    /// # Errors
    /// As [`Store::transition`]; [`StoreError::NotFound`] for an attempt that was never
    /// assigned.
    pub async fn record_agent_event(
        &self,
        event: &AgentEvent,
        transition: &Transition,
    ) -> Result<Recorded, StoreError> {
        let mut tx = self.begin().await?;
        if !attempts::record(&mut tx, event, transition.at).await? {
            return Ok(Recorded::Again);
        }
        let applied = apply(&mut tx, transition).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("record an event"))?;
        Ok(Recorded::New(applied))
    }
}

/// Rows are locked in the same order everywhere, so that transitions do not deadlock.
async fn apply(
    connection: &mut AnyConnection,
    transition: &Transition,
) -> Result<Applied, StoreError> {
    let mut boards: Vec<_> = transition.boards.iter().collect();
    boards.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    for (board, expected) in boards {
        boards::save(connection, board, *expected).await?;
    }
    let mut runs: Vec<_> = transition.runs.iter().collect();
    runs.sort_by_key(|(id, _, _)| *id);
    for (id, version, state) in runs {
        update_run(connection, *id, *version, state).await?;
        if let RunState::Active { assignment, .. } = state {
            attempts::begin(connection, *id, assignment, transition.at).await?;
        }
    }
    for (run, attempt, outcome) in &transition.attempt_ends {
        attempts::end(connection, (*run, *attempt), transition.at, outcome).await?;
    }
    for (job, slot, board) in &transition.bindings {
        bind(connection, *job, *slot, board).await?;
    }
    let mut applied = Applied::default();
    for event in &transition.events {
        let fed = feed::append(connection, transition.at, event).await?;
        applied.events.push((event.job, fed));
    }
    Ok(applied)
}

async fn update_run(
    connection: &mut AnyConnection,
    id: RunId,
    version: Version,
    state: &RunState,
) -> Result<(), StoreError> {
    let done = sqlx::query(sql::RUN_UPDATE)
        .bind(id.to_string())
        .bind(version.0)
        .bind(json(state))
        .bind(i64::from(state.is_live()))
        .execute(connection)
        .await
        .map_err(StoreError::database("save the state of a run"))?;
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(StoreError::conflict("run", id))
    }
}

async fn bind(
    connection: &mut AnyConnection,
    job: JobId,
    slot: u32,
    board: &BoardName,
) -> Result<(), StoreError> {
    let done = sqlx::query(sql::SLOT_BIND)
        .bind(job.to_string())
        .bind(i64::from(slot))
        .bind(board.as_str())
        .execute(connection)
        .await
        .map_err(StoreError::database("bind a board to a job"))?;
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(StoreError::conflict("board slot", format!("{job}/{slot}")))
    }
}
