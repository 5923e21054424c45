//! Attempts of runs, what their agents reported, and their trials.

use klab_model::{
    AgentEvent, Assignment, BoardName, EventBody, Failure, Fence, Identity, JobId, Outcome, RunId,
    Timestamp, TrialResult, VariantName, to_micros,
};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::row::{Cells, big, json};
use crate::{Store, StoreError, sql};

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The run.
    pub run: RunId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The board.
    pub board: BoardName,
    /// The fencing token.
    pub fence: Fence,
    /// The kernel that was proved to run; `None` before that.
    pub identity: Option<Identity>,
    /// When it was assigned.
    pub started_at: Timestamp,
    /// When and how it ended.
    pub ended: Option<(Timestamp, Outcome)>,
}

impl Attempt {
    /// Why it failed, if it did.
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.ended {
            Some((_, Outcome::Failed(failure))) => Some(failure),
            _ => None,
        }
    }
}

/// A trial with its place in the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialRecord {
    /// The run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The variant.
    pub variant: VariantName,
    /// The round, from 0.
    pub round: u32,
    /// The board slot of the job.
    pub slot: u32,
    /// The board.
    pub board: BoardName,
    /// What the trial gave.
    pub result: TrialResult,
}

impl Store {
    /// One attempt of a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn attempt(&self, run: RunId, attempt: u32) -> Result<Attempt, StoreError> {
        let row = sqlx::query(sql::ATTEMPT_GET)
            .bind(run.to_string())
            .bind(i64::from(attempt))
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read an attempt"))?
            .ok_or_else(|| StoreError::not_found("attempt", format!("{run}/{attempt}")))?;
        read_attempt(&row)
    }

    /// The attempts of every run of a job, run by run.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn attempts_of(&self, job: JobId) -> Result<Vec<Attempt>, StoreError> {
        let rows = sqlx::query(sql::ATTEMPTS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the attempts of a job"))?;
        rows.iter().map(read_attempt).collect()
    }

    /// The greatest sequence number of an attempt's events that is recorded; 0 if none is.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn last_agent_seq(&self, run: RunId, attempt: u32) -> Result<u64, StoreError> {
        let context = "read the last event of an attempt";
        let row = sqlx::query(sql::AGENT_EVENT_LAST)
            .bind(run.to_string())
            .bind(i64::from(attempt))
            .fetch_one(self.readers())
            .await
            .map_err(StoreError::database(context))?;
        row.try_get::<i64, _>("seq")
            .map(i64::unsigned_abs)
            .map_err(StoreError::database(context))
    }

    /// The trials of a job, each once: those of the last attempt of every run. That is the
    /// one that was done, if any was.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn trials_of(&self, job: JobId) -> Result<Vec<TrialRecord>, StoreError> {
        let rows = sqlx::query(sql::TRIALS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the trials of a job"))?;
        rows.iter().map(read_trial).collect()
    }
}

/// Notes that an attempt began; an attempt that is known stays as it is.
pub(crate) async fn begin(
    connection: &mut AnyConnection,
    run: RunId,
    assignment: &Assignment,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(sql::ATTEMPT_ADD)
        .bind(run.to_string())
        .bind(i64::from(assignment.attempt))
        .bind(assignment.board.as_str())
        .bind(big(assignment.fence.0))
        .bind(to_micros(at))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::missing(
            "save an attempt",
            "board",
            assignment.board.to_string(),
        ))
}

/// Notes how an attempt ended; the first word counts.
pub(crate) async fn end(
    connection: &mut AnyConnection,
    (run, attempt): (RunId, u32),
    at: Timestamp,
    outcome: &Outcome,
) -> Result<(), StoreError> {
    let class = match outcome {
        Outcome::Failed(failure) => Some(failure.class.as_str()),
        Outcome::Done | Outcome::Cancelled => None,
    };
    sqlx::query(sql::ATTEMPT_END)
        .bind(run.to_string())
        .bind(i64::from(attempt))
        .bind(to_micros(at))
        .bind(json(outcome))
        .bind(class)
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save the end of an attempt"))
}

/// Records an event of an agent. `false` if it was recorded before.
pub(crate) async fn record(
    connection: &mut AnyConnection,
    event: &AgentEvent,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(sql::AGENT_EVENT_ADD)
        .bind(event.run.to_string())
        .bind(i64::from(event.attempt))
        .bind(big(event.seq))
        .bind(big(event.fence.0))
        .bind(event.board_time_us)
        .bind(to_micros(at))
        .bind(json(&event.body))
        .execute(&mut *connection)
        .await
        .map_err(StoreError::missing(
            "record an event",
            "attempt",
            format!("{}/{}", event.run, event.attempt),
        ))?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    let place = (event.run, event.attempt);
    match &event.body {
        EventBody::Proved(identity) => prove(connection, place, identity).await?,
        EventBody::TrialEnded(result) => add_trial(connection, place, result).await?,
        EventBody::Finished { failure } => {
            let outcome = failure.clone().map_or(Outcome::Done, Outcome::Failed);
            end(connection, place, at, &outcome).await?;
        }
        EventBody::Cancelled => end(connection, place, at, &Outcome::Cancelled).await?,
        EventBody::StepStarted(_) | EventBody::Note(_) => {}
    }
    Ok(true)
}

async fn prove(
    connection: &mut AnyConnection,
    (run, attempt): (RunId, u32),
    identity: &Identity,
) -> Result<(), StoreError> {
    sqlx::query(sql::ATTEMPT_PROVED)
        .bind(run.to_string())
        .bind(i64::from(attempt))
        .bind(json(identity))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save the identity of a kernel"))
}

async fn add_trial(
    connection: &mut AnyConnection,
    (run, attempt): (RunId, u32),
    result: &TrialResult,
) -> Result<(), StoreError> {
    sqlx::query(sql::TRIAL_ADD)
        .bind(run.to_string())
        .bind(i64::from(attempt))
        .bind(i64::from(result.index.0))
        .bind(json(result))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save a trial"))
}

fn read_attempt(row: &AnyRow) -> Result<Attempt, StoreError> {
    let cells = Cells::new(row, "attempts", &["run", "attempt"]);
    Ok(Attempt {
        run: cells.parsed("run")?,
        attempt: cells.int("attempt")?,
        board: cells.parsed("board")?,
        fence: cells.int("fence").map(Fence)?,
        identity: cells.maybe_json("identity")?,
        started_at: cells.time("started_at")?,
        ended: cells
            .maybe_time("ended_at")?
            .zip(cells.maybe_json("outcome")?),
    })
}

fn read_trial(row: &AnyRow) -> Result<TrialRecord, StoreError> {
    let cells = Cells::new(row, "trials", &["run", "attempt", "idx"]);
    Ok(TrialRecord {
        run: cells.parsed("run")?,
        attempt: cells.int("attempt")?,
        variant: cells.parsed("variant")?,
        round: cells.int("round")?,
        slot: cells.int("slot")?,
        board: cells.parsed("board")?,
        result: cells.json("result")?,
    })
}
