//! Builds for users.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream;
use klab_model::{BuildEvent, BuildEventBody, BuildProgress, BuildTaskId};
use klab_proto::v1;
use klab_proto::v1::build_service_server::BuildService;
use klab_proto::v1::create_build_request::Part;
use klab_proto::v1::watch_build_response::News;
use klab_store::BuildRecord;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use super::{Answers, drain, inside, page, wrong};
use crate::engine::{BuildUpload, Engine, store_status};

/// The service for builds.
#[derive(Debug, Clone)]
pub(crate) struct Builds(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl BuildService for Builds {
    type WatchBuildStream = Answers<v1::WatchBuildResponse>;
    type ReadBuildLogStream = Answers<v1::ReadBuildLogResponse>;

    async fn create_build(
        &self,
        request: Request<Streaming<v1::CreateBuildRequest>>,
    ) -> Result<Response<v1::CreateBuildResponse>, Status> {
        let mut parts = request.into_inner();
        match self.receive(&mut parts).await {
            Ok(record) => Ok(Response::new(v1::CreateBuildResponse {
                build: Some(message(record)),
            })),
            Err(refusal) => {
                drain(&mut parts).await;
                Err(refusal)
            }
        }
    }

    async fn get_build(
        &self,
        request: Request<v1::GetBuildRequest>,
    ) -> Result<Response<v1::GetBuildResponse>, Status> {
        let record = self.record(&request.into_inner().id).await?;
        Ok(Response::new(v1::GetBuildResponse {
            build: Some(message(record)),
        }))
    }

    async fn list_builds(
        &self,
        request: Request<v1::ListBuildsRequest>,
    ) -> Result<Response<v1::ListBuildsResponse>, Status> {
        let request = request.into_inner();
        let page = page(request.page_size, request.page_token);
        let builds = self.0.store().list_builds(&page).await;
        let builds = builds.map_err(|error| store_status(&error))?;
        Ok(Response::new(v1::ListBuildsResponse {
            builds: builds.items.into_iter().map(message).collect(),
            next_page_token: builds.next.unwrap_or_default(),
        }))
    }

    async fn watch_build(
        &self,
        request: Request<v1::WatchBuildRequest>,
    ) -> Result<Response<Self::WatchBuildStream>, Status> {
        let request = request.into_inner();
        let record = self.record(&request.id).await?;
        let watch = Watch::new(&self.0, record, request.after);
        let news = stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(news)) => {
                    let news = v1::WatchBuildResponse { news: Some(news) };
                    Some((Ok(news), Some(watch)))
                }
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Response::new(Box::pin(news)))
    }

    async fn cancel_build(
        &self,
        request: Request<v1::CancelBuildRequest>,
    ) -> Result<Response<v1::CancelBuildResponse>, Status> {
        let id = build_id(&request.into_inner().id)?;
        let record = self.0.cancel_build(id).await?;
        Ok(Response::new(v1::CancelBuildResponse {
            build: Some(message(record)),
        }))
    }

    async fn read_build_log(
        &self,
        request: Request<v1::ReadBuildLogRequest>,
    ) -> Result<Response<Self::ReadBuildLogStream>, Status> {
        let request = request.into_inner();
        let record = self.record(&request.id).await?;
        let reading = Reading {
            changes: self.0.feed_changes(),
            engine: Arc::clone(&self.0),
            build: record.build.id,
            offset: request.offset,
            follow: request.follow,
        };
        let pieces = stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(data)) => Some((Ok(v1::ReadBuildLogResponse { data }), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Response::new(Box::pin(pieces)))
    }
}

impl Builds {
    async fn record(&self, id: &str) -> Result<BuildRecord, Status> {
        let record = self.0.store().build(build_id(id)?).await;
        record.map_err(|error| store_status(&error))
    }

    async fn receive(
        &self,
        parts: &mut Streaming<v1::CreateBuildRequest>,
    ) -> Result<BuildRecord, Status> {
        let Some(Part::Start(start)) = parts.message().await?.and_then(|first| first.part) else {
            return Err(wrong("start", "must be the first part"));
        };
        let request = start.try_into().map_err(inside("start"))?;
        let mut upload = self.0.begin_build(request).await?;
        let result = self.rest(parts, &mut upload).await;
        // After a success nothing is staged any more.
        upload.discard().await;
        result
    }

    async fn rest(
        &self,
        parts: &mut Streaming<v1::CreateBuildRequest>,
        upload: &mut BuildUpload,
    ) -> Result<BuildRecord, Status> {
        while let Some(part) = parts.message().await? {
            match part.part {
                Some(Part::Data(data)) => self.0.append_build(upload, data).await?,
                Some(Part::Start(_)) => return Err(wrong("start", "was sent before")),
                None => {}
            }
        }
        Ok(self.0.finish_build(upload).await?)
    }
}

fn build_id(text: &str) -> Result<BuildTaskId, Status> {
    text.parse().map_err(|_| {
        wrong(
            "id",
            format!("{text:?} is no build id; `klab builds` lists them"),
        )
    })
}

fn message(record: BuildRecord) -> v1::Build {
    v1::Build::of(record.build, &record.state.value)
}

/// A feed that is followed until its build has ended.
struct Watch {
    engine: Arc<Engine>,
    record: BuildRecord,
    after: u64,
    ready: VecDeque<BuildEvent>,
    changes: watch::Receiver<u64>,
    progress: Option<BuildProgress>,
    ended: bool,
}

const BATCH: u32 = 200;

impl Watch {
    fn new(engine: &Arc<Engine>, record: BuildRecord, after: u64) -> Self {
        Self {
            changes: engine.feed_changes(),
            engine: Arc::clone(engine),
            ended: !record.state.value.is_live(),
            record,
            after,
            ready: VecDeque::new(),
            progress: None,
        }
    }

    /// What comes next; `None` when there will be no more.
    async fn next(&mut self) -> Result<Option<News>, Status> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = event.seq;
                self.ended |= matches!(event.body, BuildEventBody::Ended { .. });
                return Ok(Some(News::Event(event.into())));
            }
            self.changes.mark_unchanged();
            let build = self.record.build.id;
            let events = self.engine.store().build_events(build, self.after, BATCH);
            self.ready = events.await.map_err(|error| store_status(&error))?.into();
            if !self.ready.is_empty() {
                continue;
            }
            let progress = self.engine.build_progress(build);
            if progress != self.progress && progress.is_some() {
                self.progress = progress;
                if let Some(news) = progress.and_then(|progress| self.told(progress)) {
                    return Ok(Some(news));
                }
            }
            if self.ended || !changed(&self.engine, &mut self.changes).await {
                return Ok(None);
            }
        }
    }

    fn told(&self, progress: BuildProgress) -> Option<News> {
        let target = self.record.build.targets.get(progress.index as usize)?;
        Some(News::Progress(v1::BuildProgress {
            variant: target.variant.to_string(),
            files_done: progress.files_done,
            files_total: progress.files_total,
        }))
    }
}

/// Waits for news; `false` when the controller stops.
async fn changed(engine: &Engine, changes: &mut watch::Receiver<u64>) -> bool {
    let stop = engine.shutdown().token().clone();
    tokio::select! {
        () = stop.cancelled() => false,
        changed = changes.changed() => changed.is_ok(),
    }
}

/// A log that is read.
struct Reading {
    engine: Arc<Engine>,
    build: BuildTaskId,
    offset: u64,
    follow: bool,
    changes: watch::Receiver<u64>,
}

impl Reading {
    /// The next piece; `None` when there will be no more.
    async fn next(&mut self) -> Result<Option<bytes::Bytes>, Status> {
        loop {
            self.changes.mark_unchanged();
            // Looked at before the log is read, so that nothing said before the end is missed.
            let record = self.engine.store().build(self.build).await;
            let live = record
                .map_err(|error| store_status(&error))?
                .state
                .value
                .is_live();
            let piece = self.engine.build_log(self.build, self.offset).await?;
            if !piece.is_empty() {
                let piece = piece.slice(..piece.len().min(klab_proto::CHUNK));
                self.offset += piece.len() as u64;
                return Ok(Some(piece));
            }
            if !(self.follow && live && changed(&self.engine, &mut self.changes).await) {
                return Ok(None);
            }
        }
    }
}
