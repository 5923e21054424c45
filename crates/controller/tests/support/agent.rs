//! Agents that follow a script.

use klab_model::{
    AgentEvent, Digest, EventBody, Failure, Fence, Order, Perturbation, RunId, Step, TrialFacts,
    TrialIndex, TrialResult, WorkloadName,
};
use klab_proto::v1::agent_service_client::AgentServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use klab_proto::{CHUNK, attempt_ref, v1};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::{agents, within};

pub(crate) fn hello(board: &str, instance: &str, current: Option<v1::AttemptRef>) -> v1::Hello {
    v1::Hello {
        board: board.to_owned(),
        instance: instance.to_owned(),
        arch: v1::Arch::X8664.into(),
        tags: Vec::new(),
        facts: Some(v1::BoardFacts::default()),
        current,
        config_digest: Default::default(),
    }
}

pub(crate) struct FakeAgent {
    up: mpsc::UnboundedSender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
    /// Whether the controller asked for the board's configuration.
    pub(crate) wants_config: bool,
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
        let mut agent = FakeAgent {
            up,
            down,
            wants_config: false,
        };
        match agent.next().await {
            Down::Welcome(welcome) => agent.wants_config = welcome.wants_config,
            other => panic!("expected a welcome, got {other:?}"),
        }
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
