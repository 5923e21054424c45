//! The stream between a builder and its controller.

use std::fs::File;
use std::sync::mpsc::{self as std_mpsc, Sender};
use std::thread::JoinHandle;

use klab_build::Cancel;
use klab_model::{Arch, BuildOrder, BuildRef, BuildReport};
use klab_proto::v1;
use klab_proto::v1::builder_service_client::BuilderServiceClient;
use klab_proto::v1::create_kernel_request::Part;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use klab_proto::v1::work_request::Message as Up;
use klab_proto::v1::work_response::Message as Down;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;
use tracing::info;

use super::work::{Answer, Package, Say, Work};
use super::{BuilderConfig, Toolchains, work};
use crate::link::{LinkError, endpoint};
use crate::outside::Outside;
use crate::socket::connect;

/// Bytes of a mailbox that are taken; the controller takes no more either.
const MAX_MBOX: usize = 64 << 20;

/// A connection to the controller.
pub(super) struct BuilderLink {
    channel: Channel,
    up: mpsc::Sender<v1::WorkRequest>,
    down: Streaming<v1::WorkResponse>,
}

/// A build at work. When it is dropped, the build is stopped.
struct Desk {
    at: BuildRef,
    cancel: Cancel,
    answers: Option<Sender<Answer>>,
    said: mpsc::UnboundedReceiver<Say>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.answers = None;
        if let Some(thread) = self.thread.take() {
            // It ends as soon as make and its children are killed.
            let _ = thread.join();
        }
    }
}

/// What comes next.
enum Next {
    Told(Box<Down>),
    Said(Say),
    /// The thread has said everything.
    Over,
}

impl BuilderLink {
    /// Dials out and says hello.
    ///
    /// # Errors
    /// [`LinkError`].
    pub(super) async fn open(
        config: &BuilderConfig,
        outside: &Outside,
        toolchains: &Toolchains,
    ) -> Result<Self, LinkError> {
        let endpoint = endpoint(&config.controller)?;
        let dial = std::sync::Arc::clone(&outside.dial);
        let (channel, _) = connect(&endpoint, dial).await.map_err(LinkError::Connect)?;
        let (up, requests) = mpsc::channel(32);
        let hello = v1::BuilderHello {
            builder: config.builder.to_string(),
            archs: toolchains
                .iter()
                .map(|(arch, _)| arch_number(*arch))
                .collect(),
            toolchains: toolchains.iter().map(|(_, words)| words.clone()).collect(),
        };
        let first = v1::WorkRequest {
            message: Some(Up::Hello(hello)),
        };
        up.send(first).await.map_err(|_| LinkError::Closed)?;
        let mut client = BuilderServiceClient::new(channel.clone());
        let mut down = client
            .work(ReceiverStream::new(requests))
            .await?
            .into_inner();
        match down.message().await?.and_then(|first| first.message) {
            Some(Down::Welcome(_)) => Ok(Self { channel, up, down }),
            Some(_) => Err(LinkError::BadMessage("expected a welcome".into())),
            None => Err(LinkError::Closed),
        }
    }

    /// Works until the stream ends.
    ///
    /// # Errors
    /// [`LinkError`], always: a stream does not end by itself.
    pub(super) async fn serve(mut self, config: &BuilderConfig) -> Result<(), LinkError> {
        let mut desk: Option<Desk> = None;
        loop {
            match self.next(desk.as_mut()).await? {
                Next::Told(told) => self.told(config, &mut desk, *told).await?,
                Next::Said(said) => {
                    if let Some(desk) = &desk {
                        self.heard(desk, said).await?;
                    }
                }
                Next::Over => desk = None,
            }
        }
    }

    async fn told(
        &mut self,
        config: &BuilderConfig,
        desk: &mut Option<Desk>,
        told: Down,
    ) -> Result<(), LinkError> {
        match told {
            Down::Order(order) => {
                let order = BuildOrder::try_from(order).map_err(bad)?;
                // A new order means that the controller has given the old build up.
                drop(desk.take());
                *desk = Some(self.begin(config, order).await?);
            }
            Down::Verdict(verdict) => {
                if let Some(desk) = of(desk, verdict.build)? {
                    desk.answer(Answer::Verdict(verdict.known));
                }
            }
            Down::Cancel(cancel) => {
                if let Some(desk) = of(desk, cancel.build)? {
                    info!(build = %desk.at.build, reason = cancel.reason, "told to stop");
                    desk.cancel.cancel();
                }
            }
            Down::Welcome(_) => return Err(bad("a second welcome")),
        }
        Ok(())
    }

    async fn next(&mut self, desk: Option<&mut Desk>) -> Result<Next, LinkError> {
        let said = async {
            match desk {
                Some(desk) => desk.said.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.down.message() => {
                let told = told?.ok_or(LinkError::Closed)?.message;
                told.map(|told| Next::Told(Box::new(told))).ok_or_else(|| bad("an empty message"))
            }
            said = said => Ok(said.map_or(Next::Over, Next::Said)),
        }
    }

    /// Starts the thread of a build.
    async fn begin(
        &mut self,
        config: &BuilderConfig,
        order: BuildOrder,
    ) -> Result<Desk, LinkError> {
        let at = order.at;
        info!(build = %at.build, attempt = at.attempt, tree = %order.tree.name, "build begins");
        let mbox = match &order.build.series {
            Some(_) => Some(self.series(at).await?),
            None => None,
        };
        let local = |error: &dyn std::fmt::Display| LinkError::BadMessage(error.to_string());
        let cancel = Cancel::new().map_err(|error| local(&error))?;
        let (say, said) = mpsc::unbounded_channel();
        let (answers, receiver) = std_mpsc::channel();
        let work = Work {
            order,
            mbox,
            builder: work::open(config).map_err(|error| local(&error))?,
            cancel: cancel.clone(),
            say,
            answers: receiver,
        };
        let thread = std::thread::Builder::new()
            .name("build".to_owned())
            .spawn(move || work.run())
            .map_err(|error| local(&error))?;
        Ok(Desk {
            at,
            cancel,
            answers: Some(answers),
            said,
            thread: Some(thread),
        })
    }

    async fn series(&mut self, at: BuildRef) -> Result<Vec<u8>, LinkError> {
        let request = v1::FetchSeriesRequest {
            build: Some(at.into()),
        };
        let mut client = BuilderServiceClient::new(self.channel.clone());
        let mut pieces = client.fetch_series(request).await?.into_inner();
        let mut mbox = Vec::new();
        while let Some(piece) = pieces.message().await? {
            mbox.extend_from_slice(&piece.data);
            if mbox.len() > MAX_MBOX {
                return Err(bad("a mailbox of more than 64 MiB"));
            }
        }
        Ok(mbox)
    }

    async fn heard(&mut self, desk: &Desk, said: Say) -> Result<(), LinkError> {
        match said {
            Say::Report(report) => {
                if let BuildReport::Finished { failure } = &report {
                    info!(build = %desk.at.build, ?failure, "build ends");
                }
                let message = Some(Up::Report(v1::BuildReport::of(desk.at, report)));
                let sent = self.up.send(v1::WorkRequest { message }).await;
                sent.map_err(|_| LinkError::Closed)
            }
            Say::Add(package) => {
                let added = self.add(&package).await;
                desk.answer(Answer::Added(added));
                Ok(())
            }
        }
    }

    async fn add(&mut self, package: &Package) -> Result<(), String> {
        let bytes = File::open(&package.path)
            .map_err(|error| format!("{}: {error}", package.path.display()))?;
        let start = v1::CreateKernelStart {
            name: package.name.to_string(),
            digest: package.digest.as_bytes().to_vec().into(),
            size: package.size,
        };
        let data = klab_proto::chunks(bytes).map(Part::Data);
        let parts = std::iter::once(Part::Start(start)).chain(data);
        let requests = parts.map(|part| v1::CreateKernelRequest { part: Some(part) });
        let mut client = KernelServiceClient::new(self.channel.clone());
        let added = client.create_kernel(tokio_stream::iter(requests)).await;
        added
            .map(|_| ())
            .map_err(|status| status.message().to_owned())
    }
}

impl Desk {
    fn answer(&self, answer: Answer) {
        if let Some(answers) = &self.answers {
            // A thread that has ended needs no answer.
            let _ = answers.send(answer);
        }
    }
}

/// The desk, if the message is about its build.
fn of(desk: &Option<Desk>, at: Option<v1::BuildRef>) -> Result<Option<&Desk>, LinkError> {
    let at = at.ok_or_else(|| bad("no build"))?;
    let at = BuildRef::try_from(at).map_err(bad)?;
    Ok(desk.as_ref().filter(|desk| desk.at == at))
}

fn arch_number(arch: Arch) -> i32 {
    v1::Arch::from(arch).into()
}

fn bad(what: impl ToString) -> LinkError {
    LinkError::BadMessage(what.to_string())
}
