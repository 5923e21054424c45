//! Consoles of attempts that ended while they could not be kept.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use klab_proto::v1;
use klab_proto::v1::artifact_service_client::ArtifactServiceClient;
use support::*;
use tempfile::TempDir;
use tonic::transport::Channel;

const TEXT: &[u8] = b"Kernel panic - not syncing";

async fn say_on_console(channel: &Channel) {
    let console = v1::StreamConsoleRequest {
        board: "b1".to_owned(),
        data: TEXT.into(),
    };
    let pieces = futures::stream::iter([console]);
    boards(channel).stream_console(pieces).await.unwrap();
}

/// Name and size in bytes of the artifacts of a job.
async fn artifacts(channel: &Channel, job: &v1::Job) -> Vec<(String, usize)> {
    let request = v1::ListArtifactsRequest {
        job: job.id.clone(),
        ..Default::default()
    };
    let mut client = ArtifactServiceClient::new(channel.clone());
    let list = client.list_artifacts(request).await.unwrap().into_inner();
    let artifacts = list.artifacts.into_iter();
    artifacts.map(|a| (a.name, a.size as usize)).collect()
}

fn console(size: usize) -> (String, usize) {
    ("console.log".to_owned(), size)
}

fn left(folder: &Path) -> usize {
    files_in(&folder.join("consoles/attempts"))
}

/// A lab in which a board said something on its console and was not heard of again, while
/// nothing could be stored.
async fn lab_that_kept_nothing() -> (TempDir, Lab, v1::Job) {
    let (folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    agent.order().await;
    say_on_console(&lab.channel).await;
    drop(agent);
    let uploads = folder.path().join("uploads");
    fs::rename(&uploads, folder.path().join("away")).unwrap();
    lab.clock.advance(Duration::from_secs(70));
    lab.run_in(&job.id, "queued").await;
    // Whoever has to wait for the turn of the lease sees what it left.
    lab.agent("b2").await;
    assert_eq!(left(folder.path()), 1);
    assert!(artifacts(&lab.channel, &job).await.is_empty());
    (folder, lab, job)
}

#[tokio::test]
async fn a_console_that_could_not_be_kept_is_tried_again() {
    let (folder, lab, job) = lab_that_kept_nothing().await;
    fs::rename(folder.path().join("away"), folder.path().join("uploads")).unwrap();
    until(async || {
        lab.clock.advance(Duration::from_secs(60));
        left(folder.path()) == 0
    })
    .await;
    let kept = artifacts(&lab.channel, &job).await;
    assert_eq!(kept, [console(TEXT.len())]);
    lab.stop().await;
}

#[tokio::test]
async fn a_console_that_was_left_is_kept_after_a_restart() {
    let (folder, lab, job) = lab_that_kept_nothing().await;
    lab.stop().await;
    fs::remove_dir_all(folder.path().join("away")).unwrap();
    let lab = Lab::start(folder.path()).await;
    until(async || left(folder.path()) == 0).await;
    let kept = artifacts(&lab.channel, &job).await;
    assert_eq!(kept, [console(TEXT.len())]);
    lab.stop().await;
}

#[tokio::test]
async fn the_console_of_a_run_that_goes_on_is_left_alone() {
    let (folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let first = agent.order().await;
    agent.report(at(&first), 1, infrastructure()).await;
    let order = agent.order().await;
    say_on_console(&lab.channel).await;
    lab.stop().await;
    // The attempt before has one that was left, and of others nothing is known: those stay
    // as they are and hold nobody up.
    let attempts = folder.path().join("consoles/attempts");
    let before = attempts.join(format!("{}.1.log", order.run));
    let foreign = attempts.join("01990000-0000-7000-8000-0000000000ff.1.log");
    for path in [&before, &foreign, &attempts.join("notes.txt")] {
        fs::write(path, TEXT).unwrap();
    }
    let lab = Lab::start(folder.path()).await;
    until(async || !before.exists()).await;
    let back = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&lab.channel, back).await.unwrap();
    say_on_console(&lab.channel).await;
    agent.report(at(&order), 1, done()).await;
    let kept = artifacts(&lab.channel, &job).await;
    assert_eq!(kept, [console(TEXT.len()), console(2 * TEXT.len())]);
    assert_eq!(left(folder.path()), 2);
    lab.stop().await;
}

#[tokio::test]
async fn what_the_candidate_reports_is_shown_with_its_run() {
    let (_folder, lab, mut agent) = lab_with_board().await;
    let job = lab.submit(1).await;
    let order = agent.order().await;
    // The candidate of these tests has the release 6.1.0-test.
    let release = order.kernel.release.clone();
    let log = format!(
        "[    0.000000] Linux version {release} (a@b) #1\n\
         [    1.000000] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
         [    1.000001] RIP: 0010:madvise_cold+0x1/0x2\n\
         [    2.000000] Kernel panic - not syncing: Fatal exception\n\
         [    0.000000] Linux version 5.10.0-good (a@b) #1\n\
         [    1.000000] WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2\n\
         [    2.000000] Run /sbin/init as init process\n"
    );
    let console = v1::StreamConsoleRequest {
        board: "b1".to_owned(),
        data: log.clone().into(),
    };
    let pieces = futures::stream::iter([console]);
    boards(&lab.channel).stream_console(pieces).await.unwrap();
    // The kernel's own log tells the same again.
    let oops = log.lines().take(3).collect::<Vec<_>>().join("\n");
    let key = upload_key(at(&order), "dmesg.log", "kernel-log", oops.as_bytes());
    let key = v1::UploadKey { trial: None, ..key };
    upload(&lab.channel, key, 0, oops.as_bytes()).await.unwrap();
    agent.report(at(&order), 1, done()).await;
    let shown = lab.job(&job.id).await;
    let told: Vec<_> = shown
        .kernel_reports
        .iter()
        .map(|r| {
            (
                r.candidate,
                r.kind.as_str(),
                r.function.as_str(),
                r.file.as_str(),
                r.first_line,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (true, "oops", "madvise_cold", "console.log", 2),
            (true, "panic", "", "console.log", 4),
            (false, "warning", "", "console.log", 6),
        ]
    );
    assert_eq!(shown.kernel_reports[0].run, shown.runs[0].id);
    assert_eq!(shown.kernel_reports[2].release, "5.10.0-good");
    let request = v1::GetReportRequest {
        job: job.id.clone(),
        format: v1::ReportFormat::Text.into(),
    };
    let mut reports = v1::report_service_client::ReportServiceClient::new(lab.channel.clone());
    let report = reports
        .get_report(request)
        .await
        .unwrap()
        .into_inner()
        .content;
    let variant = &shown.runs[0].variant;
    let fault =
        format!("oops: kernel NULL pointer dereference, address: ADDR: {variant} in 1 of 1 runs");
    assert!(report.contains(&fault), "{report}");
    assert!(!report.contains("warning: a.c"), "{report}");
    lab.stop().await;
}
