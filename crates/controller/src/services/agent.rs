//! What boards say.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use klab_model::{ArtifactKind, ArtifactName, BoardName, Digest, TrialIndex};
use klab_proto::status::{Reason, status};
use klab_proto::v1::agent_service_server::AgentService;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Answer;
use klab_proto::v1::upload_artifact_request::Part;
use klab_proto::{arch_of, attempt_ref, duration, duration_of, tags_of, v1};
use klab_store::BoardConfig;
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument, debug, info_span};

use super::{Answers, inside, object, wrong};
use crate::engine::{
    AttemptKey, Connection, Down, Engine, EngineError, HEARTBEAT, Hello, Upload, UploadStat,
};

/// An agent says who it is at once.
const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// The service for agents.
#[derive(Debug, Clone)]
pub(crate) struct Agents(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl AgentService for Agents {
    type SessionStream = Answers<v1::SessionResponse>;
    type FetchKernelStream = Answers<v1::FetchKernelResponse>;

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        if self.0.shutdown().is_requested() {
            return Err(status(
                Reason::ShuttingDown,
                "the controller is shutting down: connect again later",
            ));
        }
        let mut requests = request.into_inner();
        let hello = first_message(&mut requests).await?;
        let connection = self.0.connect(hello).await?;
        Ok(Response::new(converse(
            Arc::clone(&self.0),
            requests,
            connection,
        )))
    }

    async fn fetch_kernel(
        &self,
        request: Request<v1::FetchKernelRequest>,
    ) -> Result<Response<Self::FetchKernelStream>, Status> {
        let request = request.into_inner();
        let digest = Digest::from_bytes(&request.digest).map_err(|error| wrong("digest", error))?;
        let bytes = object(&self.0, &digest, request.offset).await?;
        let answers = bytes.map(|data| data.map(|data| v1::FetchKernelResponse { data }));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn stat_upload(
        &self,
        request: Request<v1::StatUploadRequest>,
    ) -> Result<Response<v1::StatUploadResponse>, Status> {
        let upload = upload_of(request.into_inner().key)?;
        let UploadStat {
            committed,
            complete,
        } = self.0.stat_upload(&upload).await?;
        Ok(Response::new(v1::StatUploadResponse {
            committed,
            complete,
        }))
    }

    async fn upload_artifact(
        &self,
        request: Request<Streaming<v1::UploadArtifactRequest>>,
    ) -> Result<Response<v1::UploadArtifactResponse>, Status> {
        let mut parts = request.into_inner();
        match receive(&self.0, &mut parts).await {
            Ok(UploadStat {
                committed,
                complete,
            }) => Ok(Response::new(v1::UploadArtifactResponse {
                committed,
                complete,
            })),
            Err(refusal) => {
                super::drain(&mut parts).await;
                Err(refusal)
            }
        }
    }
}

async fn first_message(requests: &mut Streaming<v1::SessionRequest>) -> Result<Hello, Status> {
    let first = tokio::time::timeout(HELLO_LIMIT, requests.message())
        .await
        .map_err(|_| wrong("hello", "nothing was said for 30 seconds"))??;
    match first.and_then(|request| request.message) {
        Some(Up::Hello(hello)) => hello_of(hello),
        _ => Err(wrong("hello", "must be the first message of a session")),
    }
}

fn hello_of(hello: v1::Hello) -> Result<Hello, Status> {
    let named = |field| move |error: klab_model::InvalidText| wrong(field, error);
    let current = hello.current.map(|current| key_of(Some(current)));
    let digest = hello.config_digest;
    let config = (!digest.is_empty())
        .then(|| Digest::from_bytes(&digest).map_err(named("hello.config_digest")));
    Ok(Hello {
        board: BoardName::parse(&hello.board).map_err(named("hello.board"))?,
        instance: hello.instance.parse().map_err(|_| {
            wrong(
                "hello.instance",
                format!("{:?} is no instance id", hello.instance),
            )
        })?,
        arch: arch_of("arch", hello.arch).map_err(inside("hello"))?,
        tags: tags_of(hello.tags).map_err(inside("hello"))?,
        facts: hello.facts.unwrap_or_default().into(),
        current: current.transpose()?,
        config: config.transpose()?,
    })
}

fn key_of(attempt: Option<v1::AttemptRef>) -> Result<AttemptKey, Status> {
    let attempt = attempt.ok_or_else(|| wrong("attempt", "is missing"))?;
    let (run, attempt, fence) = attempt.parts().map_err(inside("attempt"))?;
    Ok(AttemptKey {
        run,
        attempt,
        fence,
    })
}

/// Listens to the agent in a task of its own; the answers are what the engine sends.
fn converse(
    engine: Arc<Engine>,
    requests: Streaming<v1::SessionRequest>,
    connection: Connection,
) -> Answers<v1::SessionResponse> {
    let Connection {
        board,
        session,
        down,
        end,
    } = connection;
    let (failed, failure) = tokio::sync::oneshot::channel();
    let span = info_span!("session", %board);
    let tasks = engine.shutdown().clone();
    let ended = end.clone();
    let listening = async move {
        let result = tokio::select! {
            result = listen(&engine, &board, session, requests) => result,
            () = ended.cancelled() => Err(status(
                Reason::ShuttingDown,
                "the session ended: connect again",
            )),
        };
        engine.disconnect(&board, session).await;
        if let Err(refusal) = result {
            debug!(%refusal, "session ends");
            // The agent may have gone away.
            let _ = failed.send(refusal);
        }
        ended.cancel();
    };
    tasks.spawn("session", listening.instrument(span));
    // When the agent goes away, this stream is dropped and the task above must end.
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
    board: &BoardName,
    session: klab_model::SessionId,
    mut requests: Streaming<v1::SessionRequest>,
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
            Some(Up::Event(event)) => {
                let event = event.try_into().map_err(inside("event"))?;
                engine.agent_event(board, event).await?;
            }
            Some(Up::Heartbeat(_)) => engine.heartbeat(board, session).await?,
            Some(Up::Quiet(quiet)) => {
                let silence = duration_of("for", quiet.r#for).map_err(inside("quiet"))?;
                engine.quiet(board, key_of(quiet.attempt)?, silence).await?;
            }
            Some(Up::KernelConfig(file)) => {
                let config = BoardConfig {
                    release: file.release,
                    content: file.content.into(),
                };
                engine.keep_board_config(board, config).await?;
            }
            Some(Up::Hello(_)) => {
                return Err(wrong("hello", "was said before in this session"));
            }
            // A message of a newer agent that this controller does not know.
            None => {}
        }
    }
}

fn answer(message: Down) -> v1::SessionResponse {
    let attempt = |key: AttemptKey| Some(attempt_ref(key.run, key.attempt, key.fence));
    let message = match message {
        Down::Welcome {
            session,
            wants_config,
        } => Answer::Welcome(v1::Welcome {
            session: session.to_string(),
            heartbeat_every: Some(duration(HEARTBEAT)),
            wants_config,
        }),
        Down::Order(order) => Answer::Order((*order).into()),
        Down::Ack(key, seq) => Answer::Ack(v1::Ack {
            attempt: attempt(key),
            seq,
        }),
        Down::Cancel(key, reason) => Answer::Cancel(v1::Cancel {
            attempt: attempt(key),
            reason,
        }),
        Down::QuietGranted(key) => Answer::QuietGranted(v1::QuietGranted {
            attempt: attempt(key),
        }),
    };
    v1::SessionResponse {
        message: Some(message),
    }
}

fn upload_of(key: Option<v1::UploadKey>) -> Result<Upload, Status> {
    let key = key.ok_or_else(|| wrong("key", "is missing"))?;
    Ok(Upload {
        key: key_of(key.attempt)?,
        trial: key.trial.map(TrialIndex),
        name: ArtifactName::parse(&key.name).map_err(|error| wrong("key.name", error))?,
        kind: ArtifactKind::parse(&key.kind).map_err(|error| wrong("key.kind", error))?,
        digest: Digest::from_bytes(&key.digest).map_err(|error| wrong("key.digest", error))?,
        size: key.size,
    })
}

/// Takes the parts of an upload; what arrived before the connection broke is kept.
async fn receive(
    engine: &Engine,
    parts: &mut Streaming<v1::UploadArtifactRequest>,
) -> Result<UploadStat, Status> {
    let Some(Part::Start(start)) = parts.message().await?.and_then(|first| first.part) else {
        return Err(wrong("start", "must be the first part of an upload"));
    };
    let upload = upload_of(start.key)?;
    let stat = engine.begin_upload(&upload, start.offset).await?;
    if stat.complete {
        super::drain(parts).await;
        return Ok(stat);
    }
    let mut committed = stat.committed;
    while let Some(part) = parts.message().await? {
        match part.part {
            Some(Part::Data(data)) => {
                committed = engine.append_upload(&upload, committed, data).await?;
            }
            Some(Part::Start(_)) => return Err(wrong("start", "was sent before")),
            None => {}
        }
    }
    let complete = committed == upload.size;
    if complete {
        finish(engine, &upload).await?;
    }
    Ok(UploadStat {
        committed,
        complete,
    })
}

async fn finish(engine: &Engine, upload: &Upload) -> Result<(), EngineError> {
    engine.finish_upload(upload).await
}
