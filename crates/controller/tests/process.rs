//! The real program: starts, stops, is killed and comes back.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

mod support;

use std::path::Path;
use std::process::Stdio;

use support::*;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::Channel;

async fn start(folder: &Path) -> (Child, Channel) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_klab-controller"))
        .arg("--folder")
        .arg(folder)
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    let address = line.strip_prefix("listening on ").unwrap();
    (child, channel(address.parse().unwrap()).await)
}

#[tokio::test]
async fn process_killed_in_a_run_goes_on_with_it_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut controller, channel) = start(folder.path()).await;
    kernel(&channel, "k1", "x86_64").await;
    let first = hello("b1", INSTANCE_A, None);
    let mut agent = FakeAgent::connect(&channel, first).await.unwrap();
    create_job(&channel, submission(&["base=k1"], "b1", 1))
        .await
        .unwrap();
    let order = agent.order().await;
    agent.report(at(&order), 1, step()).await;
    controller.kill().await.unwrap();

    let (mut controller, channel) = start(folder.path()).await;
    let back = hello("b1", INSTANCE_A, Some(key(at(&order))));
    let mut agent = FakeAgent::connect(&channel, back).await.unwrap();
    agent.report(at(&order), 2, done()).await;

    // With a session open it stops all the same.
    let id = controller.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().await;
    assert!(sent.unwrap().success());
    assert!(within(controller.wait()).await.unwrap().success());
}

#[tokio::test]
async fn process_refuses_to_listen_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_klab-controller"))
        .arg("--folder")
        .arg(folder.path())
        .args(["--listen", "0.0.0.0:0"])
        .output();
    let output = within(output).await.unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("refusing to listen on 0.0.0.0:0"), "{text}");
}
