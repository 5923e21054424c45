//! What kernels reported in their logs.

use klab_klog::Report;
use klab_model::{ArtifactId, ArtifactName, JobId, RunId, VariantName};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::row::{Cells, big, json};
use crate::samples::note_parse;
use crate::{ParserId, Store, StoreError, sql};

/// A report in a log of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReport {
    /// Whether the run's own kernel said it, and not another one whose boot is in the log.
    pub candidate: bool,
    /// The release of the kernel that said it, if the log tells.
    pub release: Option<String>,
    /// What it said.
    pub report: Report,
}

/// A report with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReportRecord {
    /// The run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The variant.
    pub variant: VariantName,
    /// The log.
    pub artifact: ArtifactId,
    /// The name of the log.
    pub file: ArtifactName,
    /// What it says.
    pub said: KernelReport,
}

impl Store {
    /// Saves what was read from a log, in place of whatever was read before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for an unknown artifact.
    pub async fn replace_kernel_reports(
        &self,
        artifact: ArtifactId,
        parser: &ParserId,
        reports: &[KernelReport],
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        note_parse(&mut tx, artifact, parser, None).await?;
        for (report, idx) in reports.iter().zip(0_i64..) {
            insert(&mut tx, artifact, idx, report).await?;
        }
        tx.commit()
            .await
            .map_err(StoreError::database("save kernel reports"))
    }

    /// What the logs of all attempts of a job say, by board, run, attempt and log.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn kernel_reports_of(
        &self,
        job: JobId,
    ) -> Result<Vec<KernelReportRecord>, StoreError> {
        let rows = sqlx::query(sql::KERNEL_REPORTS_OF_JOB)
            .bind(job.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list the kernel reports of a job"))?;
        rows.iter().map(read).collect()
    }
}

async fn insert(
    connection: &mut AnyConnection,
    artifact: ArtifactId,
    idx: i64,
    said: &KernelReport,
) -> Result<(), StoreError> {
    let report = &said.report;
    sqlx::query(sql::KERNEL_REPORT_ADD)
        .bind(artifact.to_string())
        .bind(idx)
        .bind(i64::from(said.candidate))
        .bind(said.release.as_deref())
        .bind(report.kind.as_str())
        .bind(report.title.as_str())
        .bind(report.function.as_deref())
        .bind(big(report.first_line))
        .bind(big(report.last_line))
        .bind(big(report.count))
        .bind(json(&report.quote))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::database("save a kernel report"))
}

fn read(row: &AnyRow) -> Result<KernelReportRecord, StoreError> {
    let cells = Cells::new(row, "kernel_reports", &["artifact", "idx"]);
    Ok(KernelReportRecord {
        run: cells.parsed("run")?,
        attempt: cells.int("attempt")?,
        variant: cells.parsed("variant")?,
        artifact: cells.parsed("artifact")?,
        file: cells.parsed("name")?,
        said: KernelReport {
            candidate: cells.int::<i64>("candidate")? == 1,
            release: cells.maybe_text("release")?,
            report: Report {
                kind: cells.parsed("kind")?,
                title: cells.text("title")?,
                function: cells.maybe_text("function")?,
                first_line: cells.int("first_line")?,
                last_line: cells.int("last_line")?,
                quote: cells.json("quote")?,
                count: cells.int("times")?,
            },
        },
    })
}
