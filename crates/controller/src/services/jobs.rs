//! Jobs for users.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::stream;
use klab_model::{JobEvent, JobEventBody, JobId, Run, RunId};
use klab_proto::v1;
use klab_proto::v1::job_service_server::JobService;
use klab_store::{JobRecord, KernelReport, KernelReportRecord};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::{Answers, job_id, page};
use crate::engine::{Engine, Submission, store_status};

/// Kernel reports in an answer: with quotes of any length they fit into one message.
const KERNEL_REPORTS: usize = 200;

/// The service for jobs.
#[derive(Debug, Clone)]
pub(crate) struct Jobs(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl JobService for Jobs {
    async fn create_job(
        &self,
        request: Request<v1::CreateJobRequest>,
    ) -> Result<Response<v1::CreateJobResponse>, Status> {
        let request = request.into_inner();
        let plan = request.plan.unwrap_or_default();
        let submission = Submission {
            owner: request.owner,
            variants: request
                .variants
                .into_iter()
                .map(|variant| (variant.name, variant.kernels))
                .collect(),
            boards: request.boards,
            rounds: request.rounds,
            plan_file: plan.file_name,
            plan_text: plan.text,
        };
        let record = self.0.submit(submission).await?;
        Ok(Response::new(v1::CreateJobResponse {
            job: Some(job(record).0),
        }))
    }

    async fn get_job(
        &self,
        request: Request<v1::GetJobRequest>,
    ) -> Result<Response<v1::GetJobResponse>, Status> {
        let id = job_id("id", &request.into_inner().id)?;
        let record = self.0.store().job(id).await;
        let (job, runs) = job(record.map_err(|error| store_status(&error))?);
        let mut reports = self.0.kernel_reports(id).await?.into_records();
        let more = reports.len().saturating_sub(KERNEL_REPORTS);
        reports.truncate(KERNEL_REPORTS);
        Ok(Response::new(v1::GetJobResponse {
            job: Some(job),
            runs: runs.into_iter().map(Into::into).collect(),
            kernel_reports: reports.into_iter().map(kernel_report).collect(),
            more_kernel_reports: u32::try_from(more).unwrap_or(u32::MAX),
        }))
    }

    async fn list_jobs(
        &self,
        request: Request<v1::ListJobsRequest>,
    ) -> Result<Response<v1::ListJobsResponse>, Status> {
        let request = request.into_inner();
        let page = page(request.page_size, request.page_token);
        let jobs = self.0.store().list_jobs(&page).await;
        let jobs = jobs.map_err(|error| store_status(&error))?;
        Ok(Response::new(v1::ListJobsResponse {
            jobs: jobs.items.into_iter().map(|record| job(record).0).collect(),
            next_page_token: jobs.next.unwrap_or_default(),
        }))
    }

    type WatchJobStream = Answers<v1::WatchJobResponse>;

    async fn watch_job(
        &self,
        request: Request<v1::WatchJobRequest>,
    ) -> Result<Response<Self::WatchJobStream>, Status> {
        let request = request.into_inner();
        let watch = Watch::new(&self.0, job_id("id", &request.id)?, request.after).await?;
        let events = stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(watch))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Response::new(Box::pin(events)))
    }

    async fn cancel_job(
        &self,
        request: Request<v1::CancelJobRequest>,
    ) -> Result<Response<v1::CancelJobResponse>, Status> {
        let id = job_id("id", &request.into_inner().id)?;
        let record = self.0.cancel(id).await?;
        Ok(Response::new(v1::CancelJobResponse {
            job: Some(job(record).0),
        }))
    }
}

fn job(record: JobRecord) -> (v1::Job, Vec<Run>) {
    let runs: Vec<Run> = record.runs.into_iter().map(|run| run.value).collect();
    (v1::Job::of(record.job, &runs), runs)
}

fn kernel_report(record: KernelReportRecord) -> v1::KernelReport {
    let KernelReport {
        candidate,
        release,
        report,
    } = record.said;
    v1::KernelReport {
        run: record.run.to_string(),
        attempt: record.attempt,
        candidate,
        release: release.unwrap_or_default(),
        artifact: record.artifact.to_string(),
        file: record.file.into(),
        first_line: report.first_line,
        last_line: report.last_line,
        kind: report.kind.to_string(),
        title: report.title,
        function: report.function.unwrap_or_default(),
        count: report.count,
        quote: report.quote,
    }
}

/// A feed that is followed until its job has ended.
struct Watch {
    engine: Arc<Engine>,
    job: JobId,
    runs: HashMap<RunId, Run>,
    after: u64,
    ready: VecDeque<JobEvent>,
    changes: watch::Receiver<u64>,
    ended: bool,
}

const BATCH: u32 = 200;

impl Watch {
    async fn new(engine: &Arc<Engine>, job: JobId, after: u64) -> Result<Self, Status> {
        let record = engine.store().job(job).await;
        let record = record.map_err(|error| store_status(&error))?;
        // A job that ended before number `after` has nothing more to say.
        let live = record.state().is_live();
        let runs = record.runs.into_iter().map(|run| (run.value.id, run.value));
        Ok(Self {
            engine: Arc::clone(engine),
            job,
            runs: runs.collect(),
            after,
            ready: VecDeque::new(),
            changes: engine.feed_changes(),
            ended: !live,
        })
    }

    /// The next event; `None` when there will be no more.
    async fn next(&mut self) -> Result<Option<v1::WatchJobResponse>, Status> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = event.seq;
                self.ended |= matches!(event.body, JobEventBody::JobEnded { .. });
                let run = event.run.and_then(|id| self.runs.get(&id));
                return Ok(Some(v1::WatchJobResponse {
                    event: Some(v1::JobEvent::of(event, run)),
                }));
            }
            self.changes.mark_unchanged();
            let events = self.engine.store().job_events(self.job, self.after, BATCH);
            self.ready = events.await.map_err(|error| store_status(&error))?.into();
            if self.ready.is_empty() && (self.ended || !self.changed().await) {
                return Ok(None);
            }
        }
    }

    /// Waits for news; `false` when the controller stops.
    async fn changed(&mut self) -> bool {
        let stop = self.engine.shutdown().token().clone();
        tokio::select! {
            () = stop.cancelled() => false,
            changed = self.changes.changed() => changed.is_ok(),
        }
    }
}
