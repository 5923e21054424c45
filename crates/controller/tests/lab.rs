//! Jobs, agents and faults, over loopback with a clock that stands still.
#![allow(missing_docs)]

mod support;

use std::time::Duration;

use klab_model::EventBody;
use klab_proto::status::{reason_of, violations_of};
use klab_proto::v1;
use klab_proto::v1::artifact_service_client::ArtifactServiceClient;
use klab_proto::v1::job_event::Body;
use klab_proto::v1::report_service_client::ReportServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use support::*;

const RESULT: &[u8] = include_bytes!("../../parse/tests/data/cyclictest-func.json");

fn count(feed: &[v1::JobEvent], wanted: impl Fn(&Body) -> bool) -> usize {
    let bodies = feed.iter().filter_map(|event| event.body.as_ref());
    bodies.filter(|body| wanted(body)).count()
}

#[tokio::test]
async fn a_job_goes_from_submission_to_report() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    assert_eq!(order.kernel.release, "6.1.0-k1");
    agent.report(at(&order), 1, step()).await;
    let console = v1::StreamConsoleRequest {
        board: "b1".to_owned(),
        data: b"Linux version 6.1".as_slice().into(),
    };
    let pieces = futures::stream::iter([console]);
    boards(&lab.channel).stream_console(pieces).await.unwrap();
    agent.report(at(&order), 2, trial()).await;
    let key = upload_key(at(&order), "cyclictest.json", "cyclictest-json", RESULT);
    let stored = upload(&lab.channel, key, 0, RESULT).await.unwrap();
    assert!(stored.complete);
    agent.report(at(&order), 3, done()).await;

    let feed = feed(&lab.channel, &job.id).await;
    let seqs: Vec<u64> = feed.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(matches!(feed[0].body, Some(Body::Submitted(_))));
    assert!(matches!(feed.last().unwrap().body, Some(Body::JobEnded(_))));
    assert_eq!(
        lab.job(&job.id).await.job.unwrap().state(),
        v1::JobState::Done
    );

    let request = v1::ListArtifactsRequest {
        job: job.id.clone(),
        ..Default::default()
    };
    let mut artifacts = ArtifactServiceClient::new(lab.channel.clone());
    let list = artifacts
        .list_artifacts(request)
        .await
        .unwrap()
        .into_inner();
    let mut names: Vec<&str> = list.artifacts.iter().map(|a| a.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["console.log", "cyclictest.json"]);

    let request = v1::GetReportRequest {
        job: job.id,
        format: v1::ReportFormat::Text.into(),
    };
    let mut reports = ReportServiceClient::new(lab.channel.clone());
    let text = reports
        .get_report(request)
        .await
        .unwrap()
        .into_inner()
        .content;
    assert!(text.contains("cyclictest.latency.max"), "{text}");
    lab.stop().await;
}

#[tokio::test]
async fn a_second_agent_with_the_name_is_refused_and_the_first_untouched() {
    let (_folder, lab, mut first) = lab_with_board().await;
    let refused = FakeAgent::connect(&lab.channel, hello("b1", INSTANCE_B, None)).await;
    let status = refused.err().unwrap();
    assert_eq!(reason_of(&status).as_deref(), Some("BOARD_NAME_HELD"));
    lab.submit(1).await;
    first.order().await;
    lab.stop().await;
}

#[tokio::test]
async fn an_event_that_is_repeated_counts_once() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    for _ in 0..3 {
        agent.report(at(&order), 1, trial()).await;
    }
    agent.report(at(&order), 2, done()).await;
    agent.report(at(&order), 2, done()).await;
    let feed = feed(&lab.channel, &job.id).await;
    assert_eq!(count(&feed, |b| matches!(b, Body::TrialDone(_))), 1);
    assert_eq!(count(&feed, |b| matches!(b, Body::RunEnded(_))), 1);
    lab.stop().await;
}

#[tokio::test]
async fn an_event_that_skips_others_is_not_acknowledged() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    lab.submit(1).await;
    let order = agent.order().await;
    agent.say(Up::Event(event(at(&order), 2, done())));
    let status = agent.end().await.unwrap();
    assert_eq!(reason_of(&status).as_deref(), Some("WRONG_OFFSET"));
    lab.stop().await;
}

#[tokio::test]
async fn a_stale_attempt_changes_nothing_and_is_cancelled() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let first = agent.order().await;
    agent.report(at(&first), 1, infrastructure()).await;
    let second = agent.order().await;
    assert_eq!((second.run, second.attempt), (first.run, 2));
    assert!(second.fence > first.fence);
    // What the old attempt says is taken, but changes nothing.
    agent
        .report(at(&first), 2, EventBody::Note("late".into()))
        .await;
    match agent.next().await {
        Down::Cancel(cancel) => assert_eq!(cancel.attempt, Some(key(at(&first)))),
        other => panic!("expected a cancel, got {other:?}"),
    }
    let run = lab.run_in(&job.id, "assigned").await;
    assert_eq!(run.attempt, 2);
    // A fence that was never given out may not upload either.
    let (run, attempt, _) = at(&second);
    let foreign = upload_key((run, attempt, first.fence), "a.txt", "log", b"x");
    let status = upload(&lab.channel, foreign, 0, b"x").await.unwrap_err();
    assert_eq!(reason_of(&status).as_deref(), Some("STALE_ATTEMPT"));
    lab.stop().await;
}

#[tokio::test]
async fn an_upload_that_was_cut_goes_on_and_wrong_bytes_are_refused() {
    let (folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    let key = upload_key(at(&order), "stdout", "log", b"0123456789");
    let cut = upload(&lab.channel, key.clone(), 0, b"0123").await.unwrap();
    assert_eq!((cut.committed, cut.complete), (4, false));
    let stat = v1::StatUploadRequest {
        key: Some(key.clone()),
    };
    let stored = agents(&lab.channel)
        .stat_upload(stat.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!((stored.committed, stored.complete), (4, false));
    let status = upload(&lab.channel, key.clone(), 6, b"6789")
        .await
        .unwrap_err();
    assert_eq!(reason_of(&status).as_deref(), Some("WRONG_OFFSET"));
    let whole = upload(&lab.channel, key.clone(), 4, b"456789")
        .await
        .unwrap();
    assert!(whole.complete);
    // Sent once more, it is stored once.
    let again = upload(&lab.channel, key, 0, b"0123456789").await.unwrap();
    assert!(again.complete);

    let promised = upload_key(at(&order), "stderr", "log", b"abc");
    let status = upload(&lab.channel, promised, 0, b"abd").await.unwrap_err();
    assert_eq!(reason_of(&status).as_deref(), Some("DIGEST_MISMATCH"));
    let staged = std::fs::read_dir(folder.path().join("uploads")).unwrap();
    assert_eq!(staged.count(), 0);
    agent.report(at(&order), 1, done()).await;
    let feed = feed(&lab.channel, &job.id).await;
    assert_eq!(count(&feed, |b| matches!(b, Body::ArtifactStored(_))), 1);
    lab.stop().await;
}

#[tokio::test]
async fn a_cancelled_job_stops_its_agent_and_ends() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(2).await;
    let order = agent.order().await;
    let request = v1::CancelJobRequest { id: job.id.clone() };
    lab.jobs().cancel_job(request).await.unwrap();
    assert!(matches!(agent.next().await, Down::Cancel(_)));
    // An agent that missed it is told again.
    drop(agent);
    let again = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, again).await.unwrap();
    assert!(matches!(agent.next().await, Down::Cancel(_)));
    agent.report(at(&order), 1, EventBody::Cancelled).await;
    let feed = feed(&lab.channel, &job.id).await;
    assert_eq!(count(&feed, |b| matches!(b, Body::RunEnded(_))), 2);
    assert_eq!(
        lab.job(&job.id).await.job.unwrap().state(),
        v1::JobState::Cancelled
    );
    lab.stop().await;
}

#[tokio::test]
async fn a_board_that_is_silent_for_too_long_loses_its_run() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    // Silence that was agreed on is no sign of death, nor is the grace after it.
    agent.say(Up::Quiet(v1::Quiet {
        attempt: Some(key(at(&order))),
        r#for: Some(klab_proto::duration(Duration::from_secs(600))),
    }));
    assert!(matches!(agent.next().await, Down::QuietGranted(_)));
    drop(agent);
    lab.clock.advance(Duration::from_secs(650));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(lab.run_in(&job.id, "assigned").await.attempt, 1);
    lab.clock.advance(Duration::from_secs(20));
    lab.run_in(&job.id, "queued").await;

    // The agent comes back with the lost attempt: it must end it before it gets the next.
    let late = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, late).await.unwrap();
    assert!(matches!(agent.next().await, Down::Cancel(_)));
    agent.report(at(&order), 1, EventBody::Cancelled).await;
    let next = agent.order().await;
    assert_eq!((next.run, next.attempt), (order.run, 2));
    lab.stop().await;
}

#[tokio::test]
async fn a_run_goes_on_after_the_controller_was_restarted() {
    let (folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    agent.report(at(&order), 1, step()).await;
    lab.stop().await;

    let lab = Lab::start(folder.path()).await;
    let back = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, back).await.unwrap();
    agent.report(at(&order), 1, step()).await;
    agent.report(at(&order), 2, done()).await;
    let feed = feed(&lab.channel, &job.id).await;
    assert_eq!(count(&feed, |b| matches!(b, Body::StepStarted(_))), 1);
    assert_eq!(count(&feed, |b| matches!(b, Body::Assigned(_))), 1);
    lab.stop().await;
}

#[tokio::test]
async fn an_order_that_got_lost_is_given_again() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    lab.submit(1).await;
    let order = agent.order().await;
    drop(agent);
    let mut agent = lab.agent("b1").await;
    assert_eq!(agent.order().await, order);
    lab.stop().await;
}

async fn text_report(lab: &Lab, job: &str) -> String {
    let request = v1::GetReportRequest {
        job: job.to_owned(),
        format: v1::ReportFormat::Text.into(),
    };
    let mut client = ReportServiceClient::new(lab.channel.clone());
    let report = client.get_report(request).await.expect("a report");
    report.into_inner().content
}

#[tokio::test]
async fn boards_of_two_architectures_run_one_job_with_their_own_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    for (name, arch) in [("k-x86", "x86_64"), ("k-rv", "riscv64")] {
        kernel(&lab.channel, name, arch).await;
    }
    let mut x86 = lab.agent("b1").await;
    let mut riscv = hello("rv1", INSTANCE_B, None);
    riscv.arch = v1::Arch::Riscv64.into();
    let mut riscv = FakeAgent::connect(&lab.channel, riscv).await.unwrap();
    let wish = submission(&["base=k-x86,k-rv"], "b1,rv1", 1);
    let job = create_job(&lab.channel, wish).await.unwrap();
    for (agent, expected) in [(&mut x86, "k-x86"), (&mut riscv, "k-rv")] {
        let order = agent.order().await;
        assert_eq!(order.kernel.name.as_str(), expected);
        agent.report(at(&order), 1, done()).await;
    }
    until(async || {
        let job = find_job(&lab.channel, &job.id).await.job.unwrap();
        job.state() == v1::JobState::Done
    })
    .await;
    let report = text_report(&lab, &job.id).await;
    for line in ["base     k-x86   x86_64", "base     k-rv    riscv64"] {
        assert!(report.contains(line), "{line}:\n{report}");
    }
    lab.stop().await;
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_submission_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    kernel(&lab.channel, "k1", "x86_64").await;
    kernel(&lab.channel, "rv", "riscv64").await;
    let _agent = lab.agent("b1").await;
    let refused = async |request| {
        let status = create_job(&lab.channel, request).await.unwrap_err();
        let fields = violations_of(&status);
        fields
            .iter()
            .map(|(field, text)| format!("{field}: {text}\n"))
            .collect::<String>()
    };
    let text = refused(submission(&["base=rv"], "b1", 1)).await;
    assert_eq!(
        text,
        "boards: board b1 is x86_64, which variants have no kernel for: base (kernel rv for \
         riscv64)\n"
    );
    let text = refused(submission(&["base=k1", "new=rv"], "b1", 1)).await;
    assert!(text.contains("no kernel for: new (kernel rv"), "{text}");
    let text = refused(submission(&["base=k1,rv"], "b1", 1)).await;
    assert_eq!(
        text,
        "variants: kernel rv is riscv64, and none of the boards is: leave it out\n"
    );
    let text = refused(submission(&["base=k1,k1"], "b1", 1)).await;
    assert!(text.contains("k1 and k1 are both for x86_64"), "{text}");
    let text = refused(submission(&["base=k1,rv"], "kind=any", 1)).await;
    assert!(
        text.contains(
            "runs kernels of one architecture: base (kernel k1 for x86_64, kernel rv for riscv64)"
        ),
        "{text}"
    );
    let text = refused(submission(&["base=k1"], "arch=riscv64", 1)).await;
    assert!(text.contains("no known board has arch=riscv64"), "{text}");

    let mut request = submission(&["base=k2", "base=k1"], "b2", 0);
    let plan = request.plan.as_mut().unwrap();
    plan.text = plan.text.replace("time-limit", "time-limt");
    let text = refused(request).await;
    for part in [
        "quick.yaml:7:5",
        "variants[0].kernel: there is no kernel k2; did you mean k1?",
        "variants[1].name: variant base is given twice",
        "boards: there is no board b2; did you mean b1?",
        "rounds: found 0; expected 1 to 1000",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let mut client = lab.jobs();
    let jobs = client.list_jobs(v1::ListJobsRequest::default());
    assert!(jobs.await.unwrap().into_inner().jobs.is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = klab_controller::ControllerConfig {
        folder: folder.path().join("none"),
        listen: "0.0.0.0:0".parse().unwrap(),
        database: None,
    };
    let seams = klab_controller::Seams::system();
    let error = klab_controller::Controller::open(&config, seams)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("no mutual TLS yet") && text.contains("SSH tunnel"),
        "{text}"
    );
    assert!(!config.folder.exists());
}
