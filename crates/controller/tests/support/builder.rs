//! Builders that follow a script, and builds for them.

use klab_model::{BuildOrder, BuildRef, BuildReport, Digest, Failure};
use klab_proto::v1;
use klab_proto::v1::build_service_client::BuildServiceClient;
use klab_proto::v1::build_target::Source;
use klab_proto::v1::builder_service_client::BuilderServiceClient;
use klab_proto::v1::create_build_request::Part;
use klab_proto::v1::kernel_config::{Base, Tinyconfig};
use klab_proto::v1::tree_service_client::TreeServiceClient;
use klab_proto::v1::work_request::Message as Up;
use klab_proto::v1::work_response::Message as Down;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::within;

pub(crate) fn trees(channel: &Channel) -> TreeServiceClient<Channel> {
    TreeServiceClient::new(channel.clone())
}

pub(crate) fn builds(channel: &Channel) -> BuildServiceClient<Channel> {
    BuildServiceClient::new(channel.clone())
}

pub(crate) async fn add_tree(
    channel: &Channel,
    name: &str,
    source: &str,
) -> Result<v1::Tree, Status> {
    let request = v1::CreateTreeRequest {
        name: name.to_owned(),
        source: source.to_owned(),
    };
    let answer = trees(channel).create_tree(request).await?;
    Ok(answer.into_inner().tree.unwrap())
}

pub(crate) const MBOX: &[u8] =
    b"From mboxrd@z Thu Jan  1 00:00:00 1970\nSubject: [PATCH] mm: a\n\nx\n";

/// Base and +1 of a series of one patch, on tree linux.
pub(crate) fn wish() -> v1::CreateBuildStart {
    let target = |variant: &str, patches: u32| v1::BuildTarget {
        variant: variant.to_owned(),
        source: Some(Source::Patches(patches)),
        ..Default::default()
    };
    v1::CreateBuildStart {
        owner: "ada".to_owned(),
        tree: "linux".to_owned(),
        base: "v6.1".to_owned(),
        series: Some(v1::Series {
            subject: "mm: a".to_owned(),
            revision: 1,
            base_commit: String::new(),
            patches: vec![v1::Patch {
                subject: "mm: a".to_owned(),
                message_id: String::new(),
            }],
        }),
        mbox_digest: Digest::of(MBOX).as_bytes().to_vec().into(),
        mbox_size: MBOX.len() as u64,
        config: Some(v1::KernelConfig {
            base: Some(Base::Tinyconfig(Tinyconfig {})),
            fragments: Vec::new(),
            allow_missing: false,
        }),
        arch: v1::Arch::X8664.into(),
        targets: vec![target("base", 0), target("+1", 1)],
    }
}

pub(crate) async fn create_build(
    channel: &Channel,
    start: v1::CreateBuildStart,
    mbox: &'static [u8],
) -> Result<v1::Build, Status> {
    let part = |part| v1::CreateBuildRequest { part: Some(part) };
    let parts = [part(Part::Start(start)), part(Part::Data(mbox.into()))];
    let answer = builds(channel)
        .create_build(futures::stream::iter(parts))
        .await?;
    Ok(answer.into_inner().build.unwrap())
}

pub(crate) async fn find_build(channel: &Channel, id: &str) -> v1::Build {
    let request = v1::GetBuildRequest { id: id.to_owned() };
    let answer = builds(channel).get_build(request).await.unwrap();
    answer.into_inner().build.unwrap()
}

/// Everything that is said about a build until it ends.
pub(crate) async fn watch_build(
    channel: &Channel,
    id: &str,
) -> Vec<v1::watch_build_response::News> {
    let request = v1::WatchBuildRequest {
        id: id.to_owned(),
        after: 0,
    };
    let mut news = Vec::new();
    let mut stream = builds(channel)
        .watch_build(request)
        .await
        .unwrap()
        .into_inner();
    while let Some(told) = within(stream.message()).await.unwrap() {
        news.push(told.news.unwrap());
    }
    news
}

pub(crate) async fn build_log(channel: &Channel, id: &str, offset: u64, follow: bool) -> Vec<u8> {
    let request = v1::ReadBuildLogRequest {
        id: id.to_owned(),
        offset,
        follow,
    };
    let mut log = Vec::new();
    let mut stream = builds(channel)
        .read_build_log(request)
        .await
        .unwrap()
        .into_inner();
    while let Some(piece) = within(stream.message()).await.unwrap() {
        log.extend_from_slice(&piece.data);
    }
    log
}

pub(crate) struct FakeBuilder {
    up: mpsc::UnboundedSender<v1::WorkRequest>,
    down: Streaming<v1::WorkResponse>,
}

impl FakeBuilder {
    pub(crate) async fn connect(
        channel: &Channel,
        name: &str,
        archs: &[v1::Arch],
    ) -> Result<Self, Status> {
        let (up, requests) = mpsc::unbounded_channel();
        let hello = v1::BuilderHello {
            builder: name.to_owned(),
            archs: archs.iter().map(|arch| (*arch).into()).collect(),
            toolchains: vec!["gcc 12.2.0".to_owned()],
        };
        let first = v1::WorkRequest {
            message: Some(Up::Hello(hello)),
        };
        up.send(first).unwrap();
        let stream = futures::stream::unfold(requests, |mut requests| async move {
            let request = requests.recv().await?;
            Some((request, requests))
        });
        let down = BuilderServiceClient::new(channel.clone())
            .work(stream)
            .await?
            .into_inner();
        let mut builder = Self { up, down };
        match builder.next().await {
            Down::Welcome(_) => Ok(builder),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn next(&mut self) -> Down {
        let message = within(self.down.message()).await.unwrap();
        message.unwrap().message.unwrap()
    }

    pub(crate) async fn end(&mut self) -> Status {
        loop {
            match within(self.down.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("ended without a word"),
                Err(status) => return status,
            }
        }
    }

    pub(crate) async fn order(&mut self) -> BuildOrder {
        match self.next().await {
            Down::Order(order) => order.try_into().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Whether the lab has the kernel already.
    pub(crate) async fn verdict(&mut self) -> bool {
        match self.next().await {
            Down::Verdict(verdict) => verdict.known,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn say(&self, at: BuildRef, report: BuildReport) {
        let message = Some(Up::Report(v1::BuildReport::of(at, report)));
        let _ = self.up.send(v1::WorkRequest { message });
    }

    pub(crate) fn key(&self, at: BuildRef, index: u32, key: &[u8]) {
        let key = Digest::of(key);
        self.say(at, BuildReport::TargetKey { index, key });
    }

    /// Builds a target, whatever the verdict; its kernel is added.
    pub(crate) async fn build(
        &mut self,
        channel: &Channel,
        order: &BuildOrder,
        index: u32,
        key: &[u8],
    ) -> bool {
        self.key(order.at, index, key);
        if self.verdict().await {
            return false;
        }
        let name = order.build.targets[index as usize].kernel.as_str();
        super::kernel(channel, name, order.build.arch.as_str()).await;
        self.say(
            order.at,
            BuildReport::TargetBuilt {
                index,
                key: Digest::of(key),
                duration_ms: 1500,
            },
        );
        true
    }

    pub(crate) fn fail(&self, at: BuildRef, index: u32, reason: &str) {
        self.say(
            at,
            BuildReport::TargetFailed {
                index,
                reason: reason.to_owned(),
                duration_ms: 10,
            },
        );
    }

    pub(crate) fn finish(&self, at: BuildRef, failure: Option<Failure>) {
        self.say(at, BuildReport::Finished { failure });
    }
}
