//! A controller on loopback and agents that follow a script.
#![allow(dead_code, missing_docs, unused_imports)] // Each test program uses a part of it.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

mod agent;
mod builder;
mod kernels;
pub(crate) mod process;

pub(crate) use agent::*;
pub(crate) use builder::*;
pub(crate) use kernels::*;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use klab_controller::{Controller, ControllerConfig, Seams};
use klab_proto::v1;
use klab_proto::v1::agent_service_client::AgentServiceClient;
use klab_proto::v1::board_service_client::BoardServiceClient;
use klab_proto::v1::job_service_client::JobServiceClient;
use klab_task::{CancellationToken, ManualClock, SystemIds};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;

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

/// Waits until `condition` holds.
pub(crate) async fn until(mut condition: impl AsyncFnMut() -> bool) {
    within(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// How many files a folder has.
pub(crate) fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("in time")
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
                    kernels: kernel.split(",").map(str::to_owned).collect(),
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
