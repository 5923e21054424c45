//! The feed of a job.

use klab_model::{
    BoardName, JobEvent, JobEventBody, JobId, RunId, Timestamp, from_micros, to_micros,
};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::row::{Cells, big, json};
use crate::{Store, StoreError, sql};

/// An event before it has its place in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The job.
    pub job: JobId,
    /// The run it is about; `None` if it is about the whole job.
    pub run: Option<RunId>,
    /// The board that the run is on.
    pub board: Option<BoardName>,
    /// What happened.
    pub body: JobEventBody,
}

impl NewEvent {
    /// About the whole job.
    pub const fn of_job(job: JobId, body: JobEventBody) -> Self {
        Self {
            job,
            run: None,
            board: None,
            body,
        }
    }

    /// About a run.
    pub const fn of_run(
        job: JobId,
        run: RunId,
        board: Option<BoardName>,
        body: JobEventBody,
    ) -> Self {
        Self {
            job,
            run: Some(run),
            board,
            body,
        }
    }
}

impl Store {
    /// At most `limit` events of a job after number `after`; 0 is from the start.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn job_events(
        &self,
        job: JobId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<JobEvent>, StoreError> {
        let rows = sqlx::query(sql::EVENTS_AFTER)
            .bind(job.to_string())
            .bind(big(after))
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the feed of a job"))?;
        rows.iter().map(read_event).collect()
    }
}

/// Appends to the feed. The job's row stays locked until the transaction ends, so numbers
/// appear in order and without gaps.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    at: Timestamp,
    event: &NewEvent,
) -> Result<JobEvent, StoreError> {
    let context = "append to the feed of a job";
    let job = event.job.to_string();
    let row = sqlx::query(sql::EVENT_SEQ)
        .bind(job.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(StoreError::database(context))?
        .ok_or_else(|| StoreError::not_found("job", &job))?;
    let seq: i64 = row
        .try_get("events")
        .map_err(StoreError::database(context))?;
    sqlx::query(sql::EVENT_ADD)
        .bind(job.as_str())
        .bind(seq)
        .bind(to_micros(at))
        .bind(event.run.map(|run| run.to_string()))
        .bind(event.board.as_ref().map(ToString::to_string))
        .bind(json(&event.body))
        .execute(connection)
        .await
        .map_err(StoreError::missing(
            context,
            "run",
            event.run.map(|run| run.to_string()).unwrap_or_default(),
        ))?;
    Ok(JobEvent {
        seq: seq.unsigned_abs(),
        // As it will be read back.
        at: from_micros(to_micros(at)),
        run: event.run,
        board: event.board.clone(),
        body: event.body.clone(),
    })
}

fn read_event(row: &AnyRow) -> Result<JobEvent, StoreError> {
    let cells = Cells::new(row, "job_events", &["job", "seq"]);
    Ok(JobEvent {
        seq: cells.int("seq")?,
        at: cells.time("at")?,
        run: cells.maybe_parsed("run")?,
        board: cells.maybe_parsed("board")?,
        body: cells.json("body")?,
    })
}
