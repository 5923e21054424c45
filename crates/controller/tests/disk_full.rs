//! The disk of the controller is full: what does not fit is refused whole, nobody loses
//! anything, and work goes on once there is space.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

mod support;

use klab_model::{Digest, EventBody, Order};
use klab_proto::status::reason_of;
use klab_proto::v1;
use klab_proto::v1::artifact_service_client::ArtifactServiceClient;
use klab_proto::v1::job_event::Body;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use support::process::SmallDisk;
use support::*;
use tonic::transport::Channel;
use tonic::{Code, Status};

const MIB: usize = 1 << 20;

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n >> 8) as u8 ^ n as u8).collect()
}

fn check_full(status: &Status) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert_eq!(reason_of(status).as_deref(), Some("DISK_FULL"));
    let text = status.message();
    for part in ["no space left", "free some space", "then repeat"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

/// Adds a kernel, connects board b1 and gives it the only run of a job.
async fn at_work(channel: &Channel) -> (FakeAgent, v1::Job, Order) {
    kernel(channel, "k1", "x86_64").await;
    let first = hello("b1", INSTANCE_A, None);
    let mut agent = FakeAgent::connect(channel, first).await.unwrap();
    let job = create_job(channel, submission(&["base=k1"], "b1", 1))
        .await
        .unwrap();
    let order = agent.order().await;
    (agent, job, order)
}

#[tokio::test]
async fn process_disk_full_keeps_nothing_of_a_kernel() {
    let name = "process_disk_full_keeps_nothing_of_a_kernel";
    let Some(lab) = SmallDisk::start(name).await else {
        return;
    };
    let big = bytes(16 * MIB);
    let refused = add_kernel(&lab.channel, "big", &big, Digest::of(&big)).await;
    check_full(&refused.unwrap_err());
    assert!(lab.files("uploads").is_empty());
    assert!(lab.files("objects").is_empty());
    let mut kernels = KernelServiceClient::new(lab.channel.clone());
    let list = kernels.list_kernels(v1::ListKernelsRequest::default());
    assert!(list.await.unwrap().into_inner().kernels.is_empty());
    // One that fits is taken, under the name that is still free.
    kernel(&lab.channel, "big", "x86_64").await;
}

#[tokio::test]
async fn process_disk_full_lets_an_artifact_go_on_when_there_is_space() {
    let name = "process_disk_full_lets_an_artifact_go_on_when_there_is_space";
    let Some(lab) = SmallDisk::start(name).await else {
        return;
    };
    let (mut agent, job, order) = at_work(&lab.channel).await;
    let kernels = lab.files("objects");
    lab.fill(3 * MIB / 2);
    let trace = bytes(3 * MIB);
    let key = upload_key(at(&order), "trace.txt", "log", &trace);
    let refused = upload(&lab.channel, key.clone(), 0, &trace).await;
    check_full(&refused.unwrap_err());
    assert_eq!(lab.files("objects"), kernels);

    lab.free();
    // The agent asks how far it got, and sends the rest.
    let stat = v1::StatUploadRequest {
        key: Some(key.clone()),
    };
    let mut agents = agents(&lab.channel);
    let stat = agents.stat_upload(stat).await.unwrap().into_inner();
    let committed = usize::try_from(stat.committed).unwrap();
    assert!(!stat.complete && (1..trace.len()).contains(&committed));
    assert_eq!(lab.files("uploads"), [stat.committed]);
    let rest = upload(&lab.channel, key, stat.committed, &trace[committed..]).await;
    assert!(rest.unwrap().complete);
    agent.report(at(&order), 1, done()).await;
    assert_eq!(
        stored(&lab.channel, &job).await,
        [(Digest::of(&trace), trace)]
    );
    assert!(lab.files("uploads").is_empty());
}

/// The artifacts of a job: what they claim to be, and their bytes.
async fn stored(channel: &Channel, job: &v1::Job) -> Vec<(Digest, Vec<u8>)> {
    let mut client = ArtifactServiceClient::new(channel.clone());
    let request = v1::ListArtifactsRequest {
        job: job.id.clone(),
        ..Default::default()
    };
    let list = client.list_artifacts(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    for artifact in list.artifacts {
        let request = v1::ReadArtifactRequest {
            id: artifact.id,
            offset: 0,
        };
        let mut pieces = client.read_artifact(request).await.unwrap().into_inner();
        let mut whole = Vec::new();
        while let Some(piece) = within(pieces.message()).await.unwrap() {
            whole.extend_from_slice(&piece.data);
        }
        all.push((Digest::from_bytes(&artifact.digest).unwrap(), whole));
    }
    all
}

#[tokio::test]
async fn process_disk_full_counts_an_event_once_when_there_is_space() {
    let name = "process_disk_full_counts_an_event_once_when_there_is_space";
    let Some(mut lab) = SmallDisk::start(name).await else {
        return;
    };
    let (mut agent, job, order) = at_work(&lab.channel).await;
    lab.fill(0);
    // What the database holds already leaves room for some events, but not for all.
    let note = EventBody::Note("x".repeat(64 << 10));
    let mut seq = 1;
    let status = loop {
        agent.say(Up::Event(event(at(&order), seq, note.clone())));
        match agent.heard().await {
            Ok(Down::Ack(ack)) => assert_eq!(ack.seq, seq),
            Ok(other) => panic!("expected an acknowledgement, got {other:?}"),
            Err(status) => break status,
        }
        seq += 1;
        assert!(seq < 1000, "the disk never fills");
    };
    check_full(&status);
    assert!(lab.child.try_wait().unwrap().is_none());
    let found = find_job(&lab.channel, &job.id).await;
    assert_eq!(found.runs[0].state, "assigned");

    lab.free();
    let back = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, back).await.unwrap();
    agent.report(at(&order), seq, note.clone()).await;
    agent.report(at(&order), seq, note).await;
    agent.report(at(&order), seq + 1, done()).await;
    let feed = feed(&lab.channel, &job.id).await;
    let notes = feed
        .iter()
        .filter(|e| matches!(e.body, Some(Body::Note(_))));
    assert_eq!(notes.count() as u64, seq);
    assert!(matches!(feed.last().unwrap().body, Some(Body::JobEnded(_))));
}

#[tokio::test]
async fn process_disk_full_keeps_the_console_of_a_run() {
    let name = "process_disk_full_keeps_the_console_of_a_run";
    let Some(lab) = SmallDisk::start(name).await else {
        return;
    };
    let (mut agent, job, order) = at_work(&lab.channel).await;
    let console = bytes(MIB);
    let piece = v1::StreamConsoleRequest {
        board: "b1".to_owned(),
        data: console.clone().into(),
    };
    let mut boards = boards(&lab.channel);
    boards
        .stream_console(futures::stream::iter([piece]))
        .await
        .unwrap();
    lab.fill(MIB / 2);
    agent.say(Up::Event(event(at(&order), 1, done())));
    check_full(&agent.end().await.unwrap());

    lab.free();
    let back = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, back).await.unwrap();
    agent.report(at(&order), 1, done()).await;
    let wanted = [(Digest::of(&console), console)];
    assert_eq!(stored(&lab.channel, &job).await, wanted);
}
