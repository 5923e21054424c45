//! Jobs and their runs.

use klab_model::{BoardSlot, Job, JobEvent, JobEventBody, JobId, JobState, Run, RunId, to_micros};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::feed::{self, NewEvent};
use crate::row::{Cells, json};
use crate::{Page, PageRequest, Store, StoreError, Versioned, sql};

/// A job with all its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// The job; slots that have been bound show their board.
    pub job: Job,
    /// Its runs, slot by slot in order of execution.
    pub runs: Vec<Versioned<Run>>,
}

impl JobRecord {
    /// Where the job stands.
    pub fn state(&self) -> JobState {
        JobState::of(self.runs())
    }

    /// The runs without their versions.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|run| &run.value)
    }
}

impl Store {
    /// Saves a new job with its runs and begins its feed with
    /// [`JobEventBody::Submitted`], which is given back.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`].
    pub async fn create_job(&self, job: &Job, runs: &[Run]) -> Result<JobEvent, StoreError> {
        let mut tx = self.begin().await?;
        insert_job(&mut tx, job).await?;
        for (slot, number) in job.boards.iter().zip(0_i64..) {
            insert_slot(&mut tx, job.id, number, slot).await?;
        }
        for run in runs {
            insert_run(&mut tx, run).await?;
        }
        let submitted = JobEventBody::Submitted {
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        };
        let event = NewEvent::of_job(job.id, submitted);
        let event = feed::append(&mut tx, job.created_at, &event).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("save a job"))?;
        Ok(event)
    }

    /// A job with its runs.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn job(&self, id: JobId) -> Result<JobRecord, StoreError> {
        let row = sqlx::query(sql::JOB_GET)
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a job"))?
            .ok_or_else(|| StoreError::not_found("job", id))?;
        self.record(&row).await
    }

    /// Jobs with their runs, newest first.
    ///
    /// # Errors
    /// [`StoreError::BadPageToken`].
    pub async fn list_jobs(&self, page: &PageRequest) -> Result<Page<JobRecord>, StoreError> {
        let before = match &page.after {
            // Greater than every id.
            None => "~".to_owned(),
            Some(token) => match token.parse::<JobId>() {
                Ok(id) => id.to_string(),
                Err(_) => {
                    return Err(StoreError::BadPageToken {
                        found: token.clone(),
                    });
                }
            },
        };
        let rows = sqlx::query(sql::JOBS_PAGE)
            .bind(before)
            .bind(page.fetch())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list jobs"))?;
        let jobs = self.records(&rows).await?;
        Ok(Page::cut(jobs, page.limit(), |record| {
            record.job.id.to_string()
        }))
    }

    /// Every job that has a live run, oldest first: what the scheduler works on.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn live_jobs(&self) -> Result<Vec<JobRecord>, StoreError> {
        let rows = sqlx::query(sql::JOBS_LIVE)
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list live jobs"))?;
        self.records(&rows).await
    }

    /// The runs of a job, slot by slot in order of execution.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn runs_of(&self, job: JobId) -> Result<Vec<Versioned<Run>>, StoreError> {
        let rows = sqlx::query(sql::RUNS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the runs of a job"))?;
        rows.iter().map(read_run).collect()
    }

    /// A run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn run(&self, id: RunId) -> Result<Versioned<Run>, StoreError> {
        let row = sqlx::query(sql::RUN_GET)
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a run"))?
            .ok_or_else(|| StoreError::not_found("run", id))?;
        read_run(&row)
    }

    async fn records(&self, rows: &[AnyRow]) -> Result<Vec<JobRecord>, StoreError> {
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            records.push(self.record(row).await?);
        }
        Ok(records)
    }

    async fn record(&self, row: &AnyRow) -> Result<JobRecord, StoreError> {
        let cells = Cells::new(row, "jobs", &["id"]);
        let id: JobId = cells.parsed("id")?;
        let slots = sqlx::query(sql::SLOTS_OF_JOB)
            .bind(id.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the boards of a job"))?;
        let job = Job {
            id,
            owner: cells.parsed("owner")?,
            variants: cells.json("variants")?,
            boards: slots.iter().map(read_slot).collect::<Result<_, _>>()?,
            rounds: cells.int("rounds")?,
            plan: cells.json("plan")?,
            created_at: cells.time("created_at")?,
        };
        let runs = self.runs_of(id).await?;
        Ok(JobRecord { job, runs })
    }
}

async fn insert_job(connection: &mut AnyConnection, job: &Job) -> Result<(), StoreError> {
    let done = sqlx::query(sql::JOB_ADD)
        .bind(job.id.to_string())
        .bind(job.owner.as_str())
        .bind(json(&job.variants))
        .bind(i64::from(job.rounds))
        .bind(json(&job.plan))
        .bind(to_micros(job.created_at))
        .execute(connection)
        .await
        .map_err(StoreError::database("save a job"))?;
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(StoreError::AlreadyExists {
            what: "job",
            name: job.id.to_string(),
            existing: None,
        })
    }
}

async fn insert_slot(
    connection: &mut AnyConnection,
    job: JobId,
    number: i64,
    slot: &BoardSlot,
) -> Result<(), StoreError> {
    sqlx::query(sql::SLOT_ADD)
        .bind(job.to_string())
        .bind(number)
        .bind(json(slot))
        .bind(slot.board().map(ToString::to_string))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save the boards of a job"))
}

async fn insert_run(connection: &mut AnyConnection, run: &Run) -> Result<(), StoreError> {
    sqlx::query(sql::RUN_ADD)
        .bind(run.id.to_string())
        .bind(run.job.to_string())
        .bind(i64::from(run.slot))
        .bind(i64::from(run.round))
        .bind(i64::from(run.position))
        .bind(run.variant.as_str())
        .bind(json(&run.state))
        .bind(i64::from(run.state.is_live()))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::missing(
            "save a run",
            "board slot of job",
            format!("{}/{}", run.job, run.slot),
        ))
}

fn read_slot(row: &AnyRow) -> Result<BoardSlot, StoreError> {
    let cells = Cells::new(row, "job_slots", &["job", "slot"]);
    match cells.maybe_parsed("board")? {
        Some(board) => Ok(BoardSlot::Bound(board)),
        None => cells.json("wanted"),
    }
}

pub(crate) fn read_run(row: &AnyRow) -> Result<Versioned<Run>, StoreError> {
    let cells = Cells::new(row, "runs", &["id"]);
    Ok(Versioned {
        value: Run {
            id: cells.parsed("id")?,
            job: cells.parsed("job")?,
            slot: cells.int("slot")?,
            round: cells.int("round")?,
            position: cells.int("position")?,
            variant: cells.parsed("variant")?,
            state: cells.json("state")?,
        },
        version: cells.version()?,
    })
}
