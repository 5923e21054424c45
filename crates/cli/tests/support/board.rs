//! A board whose agent is the test.

use klab_model::{
    AgentEvent, Digest, EventBody, Failure, Fence, Order, Perturbation, RunId, Step, TrialFacts,
    TrialIndex, TrialResult, WorkloadName,
};
use klab_proto::v1::agent_service_client::AgentServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use klab_proto::{attempt_ref, v1};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::LIMIT;

/// A session of the RISC-V board; it ends when this is dropped.
pub(crate) struct Board {
    runtime: Runtime,
    channel: Channel,
    up: mpsc::Sender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
}

/// Run, attempt, fence.
type At = (RunId, u32, Fence);

impl Board {
    pub(crate) fn connect(address: &str, name: &str) -> Board {
        Self::of_arch(address, name, v1::Arch::Riscv64)
    }

    pub(crate) fn of_arch(address: &str, name: &str, arch: v1::Arch) -> Board {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let (up, requests) = mpsc::channel(16);
        let hello = v1::Hello {
            board: name.to_owned(),
            instance: "01990000-0000-7000-8000-00000000000a".to_owned(),
            arch: arch.into(),
            tags: vec![v1::Tag {
                key: "room".to_owned(),
                value: "lab".to_owned(),
            }],
            facts: Some(v1::BoardFacts {
                cpus: 4,
                model: "Scripted".to_owned(),
                release: "6.1.0-good".to_owned(),
                ..v1::BoardFacts::default()
            }),
            current: None,
            config_digest: Default::default(),
        };
        let url = format!("http://{address}");
        let (channel, down) = runtime.block_on(async {
            let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
            up.send(request(Up::Hello(hello))).await.unwrap();
            let mut agents = AgentServiceClient::new(channel.clone());
            let session = agents.session(ReceiverStream::new(requests)).await.unwrap();
            (channel, session.into_inner())
        });
        let mut board = Board {
            runtime,
            channel,
            up,
            down,
        };
        assert!(matches!(board.next(), Down::Welcome(_)));
        board
    }

    fn next(&mut self) -> Down {
        let message = self.down.message();
        let message = self
            .runtime
            .block_on(async { tokio::time::timeout(LIMIT, message).await });
        message.expect("in time").unwrap().unwrap().message.unwrap()
    }

    /// The order that comes next.
    pub(crate) fn order(&mut self) -> At {
        match self.next() {
            Down::Order(order) => {
                let order: Order = order.try_into().unwrap();
                (order.run, order.attempt, order.fence)
            }
            other => panic!("expected an order, got {other:?}"),
        }
    }

    /// Waits until the controller wants the attempt ended.
    pub(crate) fn cancellation(&mut self) {
        let next = self.next();
        assert!(matches!(next, Down::Cancel(_)), "{next:?}");
    }

    /// Reports something and waits until it is acknowledged.
    pub(crate) fn report(&mut self, (run, attempt, fence): At, seq: u64, body: EventBody) {
        let event = AgentEvent {
            run,
            attempt,
            fence,
            seq,
            board_time_us: 0,
            body,
        };
        let event = request(Up::Event(event.into()));
        self.runtime.block_on(self.up.send(event)).unwrap();
        match self.next() {
            Down::Ack(ack) => assert_eq!(ack.seq, seq),
            other => panic!("expected an acknowledgement, got {other:?}"),
        }
    }

    /// Does the run that comes next: artifacts, one trial, the end.
    pub(crate) fn work(&mut self, artifacts: &[(&str, &str, &[u8])], end: EventBody) {
        let at = self.order();
        self.report(at, 1, fetching());
        for (name, kind, bytes) in artifacts {
            self.upload(at, name, kind, bytes);
        }
        self.report(at, 2, trial());
        self.report(at, 3, end);
    }

    /// Sends an artifact of the first trial.
    pub(crate) fn upload(&self, (run, attempt, fence): At, name: &str, kind: &str, bytes: &[u8]) {
        use v1::upload_artifact_request::Part;
        let start = Part::Start(v1::UploadStart {
            key: Some(v1::UploadKey {
                attempt: Some(attempt_ref(run, attempt, fence)),
                trial: Some(0),
                name: name.to_owned(),
                kind: kind.to_owned(),
                digest: Digest::of(bytes).as_bytes().to_vec().into(),
                size: bytes.len() as u64,
            }),
            offset: 0,
        });
        let data = bytes.chunks(klab_proto::CHUNK);
        let data = data.map(|data| Part::Data(data.to_vec().into()));
        let parts: Vec<_> = std::iter::once(start)
            .chain(data)
            .map(|part| v1::UploadArtifactRequest { part: Some(part) })
            .collect();
        let mut agents = AgentServiceClient::new(self.channel.clone());
        let answer = self
            .runtime
            .block_on(agents.upload_artifact(tokio_stream::iter(parts)));
        assert!(answer.unwrap().into_inner().complete);
    }
}

fn request(message: Up) -> v1::SessionRequest {
    v1::SessionRequest {
        message: Some(message),
    }
}

pub(crate) fn fetching() -> EventBody {
    EventBody::StepStarted(Step::Fetch)
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

pub(crate) fn done() -> EventBody {
    EventBody::Finished { failure: None }
}

pub(crate) fn panicked() -> EventBody {
    EventBody::Finished {
        failure: Some(Failure::kernel("it panicked")),
    }
}

pub(crate) fn cancelled() -> EventBody {
    EventBody::Cancelled
}

/// What cyclictest writes with `--json`; the worst of two threads is `max` microseconds.
pub(crate) fn cyclictest(max: u32) -> Vec<u8> {
    let thread = |cpu: u32, max: u32| {
        serde_json::json!({
            "histogram": {}, "cycles": 1000, "min": 2, "max": max, "avg": 5.5, "cpu": cpu, "node": -1
        })
    };
    let result = serde_json::json!({
        "file_version": 1,
        "cmdline:": "cyclictest --duration=1s",
        "rt_test_version:": "2.40",
        "return_code": 0,
        "num_threads": 2,
        "resolution_in_ns": 0,
        "thread": { "0": thread(0, max - 1), "1": thread(1, max) },
    });
    result.to_string().into_bytes()
}
