//! Records of artifacts.

use klab_model::{
    Artifact, ArtifactId, ArtifactKind, BoardName, JobEvent, JobEventBody, JobId, RunId,
    TrialIndex, to_micros,
};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::feed::{self, NewEvent};
use crate::row::{Cells, big};
use crate::{ParserId, Store, StoreError, sql};

/// An artifact that is recorded now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedArtifact {
    /// The record; its id is the one it was added with first.
    pub artifact: Artifact,
    /// The job it belongs to.
    pub job: JobId,
    /// What was added to the feed of the job; `None` if it had been recorded before.
    pub event: Option<JobEvent>,
}

impl Store {
    /// Records an artifact whose bytes are among the objects, and adds
    /// [`JobEventBody::ArtifactStored`] to the feed of its job. Adding the same bytes under
    /// the same name again changes nothing and gives the first record.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] if the name stands for other bytes,
    /// [`StoreError::NotFound`] if the object or the attempt is not there.
    pub async fn add_artifact(&self, artifact: &Artifact) -> Result<AddedArtifact, StoreError> {
        self.objects()
            .require(&artifact.digest, artifact.size)
            .await?;
        let mut tx = self.begin().await?;
        let (job, board) = context(&mut tx, artifact).await?;
        let new = insert(&mut tx, artifact).await?;
        let stored = find(&mut tx, artifact).await?;
        if stored.digest != artifact.digest {
            return Err(StoreError::AlreadyExists {
                what: "artifact",
                name: describe(artifact),
                existing: Some(stored.digest),
            });
        }
        let mut event = None;
        if new {
            let body = JobEventBody::ArtifactStored {
                name: artifact.name.clone(),
                kind: artifact.kind,
                trial: artifact.trial,
            };
            let fed = NewEvent::of_run(job, artifact.run, Some(board), body);
            event = Some(feed::append(&mut tx, artifact.created_at, &fed).await?);
        }
        tx.commit()
            .await
            .map_err(StoreError::database("record an artifact"))?;
        Ok(AddedArtifact {
            artifact: stored,
            job,
            event,
        })
    }

    /// The record of an artifact.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn artifact(&self, id: ArtifactId) -> Result<Artifact, StoreError> {
        let row = sqlx::query(sql::ARTIFACT_GET)
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read an artifact"))?
            .ok_or_else(|| StoreError::not_found("artifact", id))?;
        read_artifact(&row)
    }

    /// The artifacts of every attempt of every run of a job.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn artifacts_of_job(&self, job: JobId) -> Result<Vec<Artifact>, StoreError> {
        let rows = sqlx::query(sql::ARTIFACTS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list the artifacts of a job"))?;
        rows.iter().map(read_artifact).collect()
    }

    /// The artifacts of every attempt of a run.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn artifacts_of_run(&self, run: RunId) -> Result<Vec<Artifact>, StoreError> {
        let rows = sqlx::query(sql::ARTIFACTS_OF_RUN)
            .bind(run.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list the artifacts of a run"))?;
        rows.iter().map(read_artifact).collect()
    }

    /// Artifacts of a kind that this version of the parser has not seen: those that came
    /// in before a crash, and all of them after the parser changed. At most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn artifacts_to_parse(
        &self,
        kind: ArtifactKind,
        parser: &ParserId,
        limit: u32,
    ) -> Result<Vec<Artifact>, StoreError> {
        let rows = sqlx::query(sql::ARTIFACTS_UNPARSED)
            .bind(kind.as_str())
            .bind(parser.name.as_str())
            .bind(i64::from(parser.version))
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list artifacts to parse"))?;
        rows.iter().map(read_artifact).collect()
    }
}

/// The job and board of the attempt that an artifact belongs to.
async fn context(
    connection: &mut AnyConnection,
    artifact: &Artifact,
) -> Result<(JobId, BoardName), StoreError> {
    let name = format!("{}/{}", artifact.run, artifact.attempt);
    let row = sqlx::query(sql::ATTEMPT_CONTEXT)
        .bind(artifact.run.to_string())
        .bind(i64::from(artifact.attempt))
        .fetch_optional(connection)
        .await
        .map_err(StoreError::database("read an attempt"))?
        .ok_or_else(|| StoreError::not_found("attempt", name))?;
    let cells = Cells::new(&row, "attempts", &["job", "board"]);
    Ok((cells.parsed("job")?, cells.parsed("board")?))
}

async fn insert(connection: &mut AnyConnection, artifact: &Artifact) -> Result<bool, StoreError> {
    let done = sqlx::query(sql::ARTIFACT_ADD)
        .bind(artifact.id.to_string())
        .bind(artifact.run.to_string())
        .bind(i64::from(artifact.attempt))
        .bind(trial_number(artifact.trial))
        .bind(artifact.name.as_str())
        .bind(artifact.kind.as_str())
        .bind(artifact.digest.to_string())
        .bind(big(artifact.size))
        .bind(to_micros(artifact.created_at))
        .execute(connection)
        .await
        .map_err(StoreError::database("record an artifact"))?;
    Ok(done.rows_affected() == 1)
}

async fn find(connection: &mut AnyConnection, artifact: &Artifact) -> Result<Artifact, StoreError> {
    let row = sqlx::query(sql::ARTIFACT_FIND)
        .bind(artifact.run.to_string())
        .bind(i64::from(artifact.attempt))
        .bind(trial_number(artifact.trial))
        .bind(artifact.name.as_str())
        .fetch_one(connection)
        .await
        .map_err(StoreError::database("read an artifact"))?;
    read_artifact(&row)
}

fn describe(artifact: &Artifact) -> String {
    let place = artifact
        .trial
        .map_or_else(String::new, |trial| format!("trial {trial} "));
    format!(
        "{} of {place}in attempt {} of run {}",
        artifact.name, artifact.attempt, artifact.run
    )
}

const WHOLE_RUN: i64 = -1;

fn trial_number(trial: Option<TrialIndex>) -> i64 {
    trial.map_or(WHOLE_RUN, |trial| i64::from(trial.0))
}

/// The trial in column `trial`.
pub(crate) fn read_trial_number(cells: &Cells<'_>) -> Result<Option<TrialIndex>, StoreError> {
    match cells.int::<i64>("trial")? {
        WHOLE_RUN => Ok(None),
        _ => cells.int("trial").map(TrialIndex).map(Some),
    }
}

fn read_artifact(row: &AnyRow) -> Result<Artifact, StoreError> {
    let cells = Cells::new(row, "artifacts", &["id"]);
    Ok(Artifact {
        id: cells.parsed("id")?,
        run: cells.parsed("run")?,
        attempt: cells.int("attempt")?,
        trial: read_trial_number(&cells)?,
        name: cells.parsed("name")?,
        kind: cells.parsed("kind")?,
        digest: cells.parsed("digest")?,
        size: cells.int("size")?,
        created_at: cells.time("created_at")?,
    })
}
