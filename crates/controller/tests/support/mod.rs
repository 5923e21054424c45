//! A controller on loopback and agents that follow a script.
#![allow(dead_code, missing_docs)] // Each test program uses a part of it.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

pub(crate) mod process;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use klab_controller::{Controller, ControllerConfig, Seams};
use klab_model::{
    AgentEvent, Digest, EventBody, Failure, Fence, Order, Perturbation, RunId, Step, TrialFacts,
    TrialIndex, TrialResult, WorkloadName,
};
use klab_proto::v1::agent_service_client::AgentServiceClient;
use klab_proto::v1::board_service_client::BoardServiceClient;
use klab_proto::v1::job_service_client::JobServiceClient;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use klab_proto::{CHUNK, attempt_ref, v1};
use klab_task::{CancellationToken, ManualClock, SystemIds};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Nothing here takes long; the limit only keeps a broken test from hanging.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) const PLAN: &str = "\
name: quick
about: One trial.
workloads:
  - name: cyclictest
    command: [cyclictest, --duration=1s, '--json={out}/cyclictest.json']
    trials: 1
    time-limit: 1m
    artifacts:
      - { file: cyclictest.json, format: cyclictest-json }
";

pub(crate) const INSTANCE_A: &str = "01990000-0000-7000-8000-00000000000a";
pub(crate) const INSTANCE_B: &str = "01990000-0000-7000-8000-00000000000b";

pub(crate) struct Lab {
    pub clock: ManualClock,
    pub channel: Channel,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Lab {
    pub(crate) async fn start(folder: &Path) -> Lab {
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let config = ControllerConfig {
            folder: folder.to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            database: None,
        };
        let seams = Seams {
            clock: Arc::new(clock.clone()),
            ids: Arc::new(SystemIds),
        };
        let controller = Controller::open(&config, seams).await.unwrap();
        let listener = controller.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let serving = tokio::spawn(async move { controller.serve(listener, token).await.unwrap() });
        Lab {
            clock,
            channel: channel(address).await,
            stop,
            serving,
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.serving).await.unwrap();
    }

    pub(crate) fn jobs(&self) -> JobServiceClient<Channel> {
        JobServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn agent(&self, board: &str) -> FakeAgent {
        FakeAgent::connect(&self.channel, hello(board, INSTANCE_A, None))
            .await
            .unwrap()
    }

    pub(crate) async fn submit(&self, rounds: u32) -> v1::Job {
        create_job(&self.channel, submission(&["base=k1"], "b1", rounds))
            .await
            .unwrap()
    }

    pub(crate) async fn job(&self, id: &str) -> v1::GetJobResponse {
        find_job(&self.channel, id).await
    }

    /// Waits until the only run of a job is in `state`.
    pub(crate) async fn run_in(&self, job: &str, state: &str) -> v1::Run {
        within(async {
            loop {
                let run = self.job(job).await.runs.remove(0);
                if run.state == state {
                    return run;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}

/// A lab with kernel `k1` and board `b1`, in a folder of its own.
pub(crate) async fn lab_with_board() -> (TempDir, Lab, FakeAgent) {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    kernel(&lab.channel, "k1", "x86_64").await;
    let agent = lab.agent("b1").await;
    (folder, lab, agent)
}

pub(crate) fn boards(channel: &Channel) -> BoardServiceClient<Channel> {
    BoardServiceClient::new(channel.clone())
}

pub(crate) fn agents(channel: &Channel) -> AgentServiceClient<Channel> {
    AgentServiceClient::new(channel.clone())
}

pub(crate) async fn find_job(channel: &Channel, id: &str) -> v1::GetJobResponse {
    let request = v1::GetJobRequest { id: id.to_owned() };
    let mut jobs = JobServiceClient::new(channel.clone());
    jobs.get_job(request).await.unwrap().into_inner()
}

/// The whole feed of a job that ends.
pub(crate) async fn feed(channel: &Channel, job: &str) -> Vec<v1::JobEvent> {
    let request = v1::WatchJobRequest {
        id: job.to_owned(),
        after: 0,
    };
    let mut jobs = JobServiceClient::new(channel.clone());
    let mut events = jobs.watch_job(request).await.unwrap().into_inner();
    let mut feed = Vec::new();
    while let Some(event) = within(events.message()).await.unwrap() {
        feed.push(event.event.unwrap());
    }
    feed
}

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("in time")
}

/// A canonical kernel package as far as the controller reads it.
pub(crate) fn package(arch: &str, release: &str) -> Vec<u8> {
    let manifest = format!(
        "{{\"version\":1,\"arch\":\"{arch}\",\"release\":\"{release}\",\"build_id\":\"{}\",\
         \"image_format\":\"bzImage\",\"image_digest\":\"{}\",\"config_digest\":null,\
         \"package_kind\":\"deb\",\"modules\":0}}",
        "ab".repeat(20),
        Digest::of(release.as_bytes()),
    );
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in [
        ("klab-kernel.json", manifest.as_bytes()),
        ("boot/vmlinuz", release.as_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    }
    zstd::encode_all(tar.into_inner().unwrap().as_slice(), 1).unwrap()
}

pub(crate) async fn add_kernel(
    channel: &Channel,
    name: &str,
    bytes: &[u8],
    digest: Digest,
) -> Result<v1::Kernel, Status> {
    use v1::create_kernel_request::Part;
    let start = Part::Start(v1::CreateKernelStart {
        name: name.to_owned(),
        digest: digest.as_bytes().to_vec().into(),
        size: bytes.len() as u64,
    });
    // Several pieces, however short it is.
    let data = bytes
        .chunks((bytes.len() / 3).clamp(1, CHUNK))
        .map(|data| Part::Data(data.to_vec().into()));
    let parts: Vec<_> = std::iter::once(start)
        .chain(data)
        .map(|part| v1::CreateKernelRequest { part: Some(part) })
        .collect();
    let answer = KernelServiceClient::new(channel.clone())
        .create_kernel(futures::stream::iter(parts))
        .await?;
    Ok(answer.into_inner().kernel.unwrap())
}

/// Adds kernel `name`.
pub(crate) async fn kernel(channel: &Channel, name: &str, arch: &str) {
    let bytes = package(arch, &format!("6.1.0-{name}"));
    add_kernel(channel, name, &bytes, Digest::of(&bytes))
        .await
        .unwrap();
}

pub(crate) fn submission(variants: &[&str], boards: &str, rounds: u32) -> v1::CreateJobRequest {
    v1::CreateJobRequest {
        owner: "dev".to_owned(),
        variants: variants
            .iter()
            .map(|text| {
                let (name, kernel) = text.split_once('=').unwrap();
                v1::Variant {
                    name: name.to_owned(),
                    kernel: kernel.to_owned(),
                }
            })
            .collect(),
        boards: boards.to_owned(),
        rounds,
        plan: Some(v1::PlanSource {
            file_name: "quick.yaml".to_owned(),
            text: PLAN.to_owned(),
        }),
    }
}

pub(crate) async fn create_job(
    channel: &Channel,
    request: v1::CreateJobRequest,
) -> Result<v1::Job, Status> {
    let mut jobs = JobServiceClient::new(channel.clone());
    Ok(jobs.create_job(request).await?.into_inner().job.unwrap())
}

pub(crate) fn hello(board: &str, instance: &str, current: Option<v1::AttemptRef>) -> v1::Hello {
    v1::Hello {
        board: board.to_owned(),
        instance: instance.to_owned(),
        arch: v1::Arch::X8664.into(),
        tags: Vec::new(),
        facts: Some(v1::BoardFacts::default()),
        current,
    }
}

pub(crate) struct FakeAgent {
    up: mpsc::UnboundedSender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
}

impl FakeAgent {
    pub(crate) async fn connect(channel: &Channel, hello: v1::Hello) -> Result<FakeAgent, Status> {
        let (up, requests) = mpsc::unbounded_channel();
        up.send(request(Up::Hello(hello))).unwrap();
        let requests = futures::stream::unfold(requests, |mut requests| async move {
            Some((requests.recv().await?, requests))
        });
        let down = within(AgentServiceClient::new(channel.clone()).session(requests))
            .await?
            .into_inner();
        let mut agent = FakeAgent { up, down };
        assert!(matches!(agent.next().await, Down::Welcome(_)));
        Ok(agent)
    }

    pub(crate) async fn next(&mut self) -> Down {
        self.heard().await.unwrap()
    }

    /// What the controller says next, or the status with which the session ends.
    pub(crate) async fn heard(&mut self) -> Result<Down, Status> {
        let message = within(self.down.message()).await?;
        Ok(message.expect("the session is open").message.unwrap())
    }

    /// The status with which the session ends.
    pub(crate) async fn end(&mut self) -> Option<Status> {
        loop {
            match within(self.down.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }

    pub(crate) async fn order(&mut self) -> Order {
        match self.next().await {
            Down::Order(order) => order.try_into().unwrap(),
            other => panic!("expected an order, got {other:?}"),
        }
    }

    pub(crate) fn say(&self, message: Up) {
        self.up.send(request(message)).unwrap();
    }

    /// Reports something and waits until it is acknowledged.
    pub(crate) async fn report(&mut self, at: At, seq: u64, body: EventBody) {
        self.say(Up::Event(event(at, seq, body)));
        match self.next().await {
            Down::Ack(ack) => assert_eq!(ack.seq, seq),
            other => panic!("expected an acknowledgement, got {other:?}"),
        }
    }
}

/// Run, attempt, fence.
pub(crate) type At = (RunId, u32, Fence);

pub(crate) fn at(order: &Order) -> At {
    (order.run, order.attempt, order.fence)
}

pub(crate) fn key((run, attempt, fence): At) -> v1::AttemptRef {
    attempt_ref(run, attempt, fence)
}

fn request(message: Up) -> v1::SessionRequest {
    v1::SessionRequest {
        message: Some(message),
    }
}

pub(crate) fn event((run, attempt, fence): At, seq: u64, body: EventBody) -> v1::AgentEvent {
    AgentEvent {
        run,
        attempt,
        fence,
        seq,
        board_time_us: 0,
        body,
    }
    .into()
}

pub(crate) fn step() -> EventBody {
    EventBody::StepStarted(Step::Fetch)
}

pub(crate) fn done() -> EventBody {
    EventBody::Finished { failure: None }
}

pub(crate) fn infrastructure() -> EventBody {
    EventBody::Finished {
        failure: Some(Failure::infrastructure("the cable came loose")),
    }
}

pub(crate) fn trial() -> EventBody {
    EventBody::TrialEnded(TrialResult {
        index: TrialIndex(0),
        workload: WorkloadName::parse("cyclictest").unwrap(),
        failure: None,
        duration_ms: 1000,
        perturbation: Perturbation::default(),
        facts: TrialFacts::default(),
    })
}

pub(crate) fn upload_key(at: At, name: &str, kind: &str, bytes: &[u8]) -> v1::UploadKey {
    v1::UploadKey {
        attempt: Some(key(at)),
        trial: Some(0),
        name: name.to_owned(),
        kind: kind.to_owned(),
        digest: Digest::of(bytes).as_bytes().to_vec().into(),
        size: bytes.len() as u64,
    }
}

pub(crate) async fn upload(
    channel: &Channel,
    key: v1::UploadKey,
    offset: u64,
    bytes: &[u8],
) -> Result<v1::UploadArtifactResponse, Status> {
    use v1::upload_artifact_request::Part;
    let start = Part::Start(v1::UploadStart {
        key: Some(key),
        offset,
    });
    let data = bytes
        .chunks(CHUNK)
        .map(|data| Part::Data(data.to_vec().into()));
    let parts: Vec<_> = std::iter::once(start)
        .chain(data)
        .map(|part| v1::UploadArtifactRequest { part: Some(part) })
        .collect();
    let answer = agents(channel)
        .upload_artifact(futures::stream::iter(parts))
        .await?;
    Ok(answer.into_inner())
}
