//! Samples, and which parser made them from which artifact.

use klab_model::{ArtifactId, BoardName, JobId, RunId, Sample, TrialIndex, VariantName};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::artifacts::read_trial_number;
use crate::row::Cells;
use crate::{Store, StoreError, sql};

/// A parser and its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParserId {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
}

/// A sample with its place in the comparison and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRecord {
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
    /// The trial; `None` if the artifact belongs to the whole run.
    pub trial: Option<TrialIndex>,
    /// The artifact it was derived from.
    pub artifact: ArtifactId,
    /// What derived it.
    pub parser: ParserId,
    /// The number.
    pub sample: Sample,
}

/// An artifact that a parser could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseProblem {
    /// The artifact.
    pub artifact: ArtifactId,
    /// The parser.
    pub parser: ParserId,
    /// What was wrong, for people.
    pub problem: String,
}

impl Store {
    /// Saves what a parser read from an artifact, in place of whatever was read before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for an unknown artifact.
    pub async fn replace_samples(
        &self,
        artifact: ArtifactId,
        parser: &ParserId,
        samples: &[Sample],
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        note_parse(&mut tx, artifact, parser, None).await?;
        for (sample, idx) in samples.iter().zip(0_i64..) {
            insert(&mut tx, artifact, idx, sample).await?;
        }
        tx.commit()
            .await
            .map_err(StoreError::database("save samples"))
    }

    /// Saves that a parser could not read an artifact. What was read before is removed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for an unknown artifact.
    pub async fn record_parse_problem(
        &self,
        artifact: ArtifactId,
        parser: &ParserId,
        problem: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        note_parse(&mut tx, artifact, parser, Some(problem)).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("save a parse problem"))
    }

    /// The artifacts of a job that could not be read.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn parse_problems_of(&self, job: JobId) -> Result<Vec<ParseProblem>, StoreError> {
        let rows = sqlx::query(sql::PARSE_PROBLEMS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list parse problems"))?;
        rows.iter().map(read_problem).collect()
    }

    /// The samples of a job: those of the last attempt of every run, but none of an attempt
    /// that ended with an infrastructure failure.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn samples_of(&self, job: JobId) -> Result<Vec<SampleRecord>, StoreError> {
        let rows = sqlx::query(sql::SAMPLES_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the samples of a job"))?;
        rows.iter().map(read_sample).collect()
    }
}

pub(crate) async fn note_parse(
    connection: &mut AnyConnection,
    artifact: ArtifactId,
    parser: &ParserId,
    problem: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query(sql::PARSE_SET)
        .bind(artifact.to_string())
        .bind(parser.name.as_str())
        .bind(i64::from(parser.version))
        .bind(problem)
        .execute(&mut *connection)
        .await
        .map_err(StoreError::missing(
            "save that an artifact was parsed",
            "artifact",
            artifact.to_string(),
        ))?;
    for delete in [sql::SAMPLES_DELETE, sql::KERNEL_REPORTS_DELETE] {
        sqlx::query(delete)
            .bind(artifact.to_string())
            .execute(&mut *connection)
            .await
            .map_err(StoreError::database("remove what was read before"))?;
    }
    Ok(())
}

async fn insert(
    connection: &mut AnyConnection,
    artifact: ArtifactId,
    idx: i64,
    sample: &Sample,
) -> Result<(), StoreError> {
    sqlx::query(sql::SAMPLE_ADD)
        .bind(artifact.to_string())
        .bind(idx)
        .bind(sample.metric.as_str())
        .bind(sample.value)
        .bind(sample.unit.as_str())
        .bind(sample.direction.as_str())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save a sample"))
}

fn read_sample(row: &AnyRow) -> Result<SampleRecord, StoreError> {
    let cells = Cells::new(row, "samples", &["artifact", "idx"]);
    Ok(SampleRecord {
        run: cells.parsed("run")?,
        attempt: cells.int("attempt")?,
        variant: cells.parsed("variant")?,
        round: cells.int("round")?,
        slot: cells.int("slot")?,
        board: cells.parsed("board")?,
        trial: read_trial_number(&cells)?,
        artifact: cells.parsed("artifact")?,
        parser: read_parser(&cells)?,
        sample: Sample {
            metric: cells.parsed("metric")?,
            value: cells.real("value")?,
            unit: cells.parsed("unit")?,
            direction: cells.parsed("direction")?,
        },
    })
}

fn read_problem(row: &AnyRow) -> Result<ParseProblem, StoreError> {
    let cells = Cells::new(row, "parses", &["artifact"]);
    Ok(ParseProblem {
        artifact: cells.parsed("artifact")?,
        parser: read_parser(&cells)?,
        problem: cells.text("problem")?,
    })
}

fn read_parser(cells: &Cells<'_>) -> Result<ParserId, StoreError> {
    Ok(ParserId {
        name: cells.text("parser")?,
        version: cells.int("version")?,
    })
}
