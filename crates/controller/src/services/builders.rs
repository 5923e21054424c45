//! What builders say.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use klab_model::{BuildRef, BuilderName};
use klab_proto::status::{Reason, status};
use klab_proto::v1::builder_service_server::BuilderService;
use klab_proto::v1::work_request::Message as Up;
use klab_proto::v1::work_response::Message as Answer;
use klab_proto::{arch_of, v1};
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument, debug, info_span};

use super::{Answers, inside, object, wrong};
use crate::engine::{BuilderConnection, BuilderDown, BuilderHello, Engine, store_status};

/// A builder says who it is at once.
const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// The service for builders.
#[derive(Debug, Clone)]
pub(crate) struct Builders(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl BuilderService for Builders {
    type WorkStream = Answers<v1::WorkResponse>;
    type FetchSeriesStream = Answers<v1::FetchSeriesResponse>;

    async fn work(
        &self,
        request: Request<Streaming<v1::WorkRequest>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        if self.0.shutdown().is_requested() {
            return Err(status(
                Reason::ShuttingDown,
                "the controller is shutting down: connect again later",
            ));
        }
        let mut requests = request.into_inner();
        let hello = first_message(&mut requests).await?;
        let connection = self.0.connect_builder(hello).await?;
        Ok(Response::new(converse(
            Arc::clone(&self.0),
            requests,
            connection,
        )))
    }

    async fn fetch_series(
        &self,
        request: Request<v1::FetchSeriesRequest>,
    ) -> Result<Response<Self::FetchSeriesStream>, Status> {
        let at = request.into_inner().build;
        let at = at.ok_or_else(|| wrong("build", "is missing"))?;
        let at: BuildRef = at.try_into().map_err(inside("build"))?;
        let record = self.0.store().build(at.build).await;
        let record = record.map_err(|error| store_status(&error))?;
        let Some(series) = record.build.series else {
            return Err(wrong("build", "has no series"));
        };
        let bytes = object(&self.0, &series.mbox, 0).await?;
        let answers = bytes.map(|data| data.map(|data| v1::FetchSeriesResponse { data }));
        Ok(Response::new(Box::pin(answers)))
    }
}

async fn first_message(requests: &mut Streaming<v1::WorkRequest>) -> Result<BuilderHello, Status> {
    let first = tokio::time::timeout(HELLO_LIMIT, requests.message())
        .await
        .map_err(|_| wrong("hello", "nothing was said for 30 seconds"))??;
    match first.and_then(|request| request.message) {
        Some(Up::Hello(hello)) => hello_of(hello),
        _ => Err(wrong("hello", "must be the first message of a builder")),
    }
}

fn hello_of(hello: v1::BuilderHello) -> Result<BuilderHello, Status> {
    let archs: Result<Vec<_>, _> = hello
        .archs
        .iter()
        .map(|arch| arch_of("archs", *arch))
        .collect();
    let archs = archs.map_err(inside("hello"))?;
    if archs.is_empty() {
        return Err(wrong("hello.archs", "there are none: nothing can be built"));
    }
    Ok(BuilderHello {
        builder: BuilderName::parse(&hello.builder)
            .map_err(|error| wrong("hello.builder", error))?,
        archs,
        toolchains: hello.toolchains,
    })
}

/// Listens to the builder in a task of its own; the answers are what the engine sends.
fn converse(
    engine: Arc<Engine>,
    requests: Streaming<v1::WorkRequest>,
    connection: BuilderConnection,
) -> Answers<v1::WorkResponse> {
    let BuilderConnection {
        builder,
        number,
        down,
        end,
    } = connection;
    let (failed, failure) = tokio::sync::oneshot::channel();
    let span = info_span!("builder", %builder);
    let tasks = engine.shutdown().clone();
    let ended = end.clone();
    let listening = async move {
        let result = tokio::select! {
            result = listen(&engine, &builder, requests) => result,
            () = ended.cancelled() => Err(status(
                Reason::ShuttingDown,
                "the connection ended: connect again",
            )),
        };
        engine.disconnect_builder(&builder, number).await;
        if let Err(refusal) = result {
            debug!(%refusal, "connection ends");
            // The builder may have gone away.
            let _ = failed.send(refusal);
        }
        ended.cancel();
    };
    tasks.spawn("builder", listening.instrument(span));
    // When the builder goes away, this stream is dropped and the task above must end.
    let guard = end.clone().drop_guard();
    let answers = stream::unfold((down, guard), |(mut down, guard)| async move {
        let message = down.recv().await?;
        Some((Ok(answer(message)), (down, guard)))
    });
    let last = async move {
        match failure.await {
            Ok(refusal) => stream::iter(Some(Err(refusal))),
            Err(_) => stream::iter(None),
        }
    };
    let stop = async move { end.cancelled().await };
    Box::pin(answers.take_until(stop).chain(stream::once(last).flatten()))
}

async fn listen(
    engine: &Engine,
    builder: &BuilderName,
    mut requests: Streaming<v1::WorkRequest>,
) -> Result<(), Status> {
    loop {
        let request = match requests.message().await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                debug!(%error, "connection lost");
                return Ok(());
            }
        };
        match request.message {
            Some(Up::Report(report)) => {
                let (at, report) = report.try_into().map_err(inside("report"))?;
                engine.build_report(builder, at, report).await?;
            }
            Some(Up::Hello(_)) => {
                return Err(wrong("hello", "was said before on this connection"));
            }
            // A message of a newer builder that this controller does not know.
            None => {}
        }
    }
}

fn answer(message: BuilderDown) -> v1::WorkResponse {
    let message = match message {
        BuilderDown::Welcome => Answer::Welcome(v1::BuilderWelcome {}),
        BuilderDown::Order {
            at,
            tree,
            build,
            state,
        } => Answer::Order(v1::BuildOrder::of(at, tree, *build, &state)),
        BuilderDown::Verdict { at, index, known } => Answer::Verdict(v1::Verdict {
            build: Some(at.into()),
            index,
            known,
        }),
        BuilderDown::Cancel { at, reason } => Answer::Cancel(v1::BuildCancel {
            build: Some(at.into()),
            reason,
        }),
    };
    v1::WorkResponse {
        message: Some(message),
    }
}
