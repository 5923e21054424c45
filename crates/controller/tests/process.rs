//! The real program: starts, stops, is killed and comes back.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

#[path = "../../store/tests/common/postgres.rs"]
mod postgres;
mod support;

use klab_model::Digest;
use klab_proto::v1;
use klab_proto::v1::job_event::Body;
use postgres::Server;
use support::process::{ANY_PORT, controller, refused, served, start};
use support::*;
use tokio::process::{Child, Command};
use tonic::transport::Channel;

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
async fn process_killed_in_uploads_keeps_only_what_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = folder.path().join("uploads");
    let (mut controller, channel) = start(folder.path()).await;
    kernel(&channel, "k1", "x86_64").await;
    let first = hello("b1", INSTANCE_A, None);
    let mut agent = FakeAgent::connect(&channel, first).await.unwrap();
    create_job(&channel, submission(&["base=k1"], "b1", 2))
        .await
        .unwrap();
    // The first run is over, the second one at work; both have half an artifact.
    let over = agent.order().await;
    let artifact = |order| upload_key(at(order), "stdout", "log", b"0123456789");
    upload(&channel, artifact(&over), 0, b"0123").await.unwrap();
    agent.report(at(&over), 1, done()).await;
    let order = agent.order().await;
    upload(&channel, artifact(&order), 0, b"01234")
        .await
        .unwrap();
    let sending = tokio::spawn(half_a_kernel(channel));
    until(async || files_in(&uploads) == 3).await;
    controller.kill().await.unwrap();
    sending.await.unwrap();
    assert_eq!(files_in(&uploads), 3);
    let put = format!("put-{}", Digest::of(b"console"));
    std::fs::write(uploads.join(put), b"con").unwrap();

    let (mut controller, channel) = start(folder.path()).await;
    assert_eq!(files_in(&uploads), 1);
    let key = artifact(&order);
    let stat = v1::StatUploadRequest {
        key: Some(key.clone()),
    };
    let stat = agents(&channel).stat_upload(stat).await.unwrap();
    assert_eq!(stat.into_inner().committed, 5);
    let whole = upload(&channel, key, 5, b"56789").await.unwrap();
    assert!(whole.complete);
    assert_eq!(files_in(&uploads), 0);
    controller.kill().await.unwrap();
}

#[tokio::test]
async fn process_refuses_to_listen_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = refused(controller(folder.path(), "0.0.0.0:0")).await;
    assert_eq!(code, Some(3));
    assert!(text.contains("refusing to listen on 0.0.0.0:0"), "{text}");
}

/// A second program is refused; the first one does not notice and goes on with its run.
async fn stays_alone((mut first, channel): (Child, Channel), second: Command, why: &str) {
    kernel(&channel, "k1", "x86_64").await;
    let hello = hello("b1", INSTANCE_A, None);
    let mut agent = FakeAgent::connect(&channel, hello).await.unwrap();
    let job = create_job(&channel, submission(&["base=k1"], "b1", 1))
        .await
        .unwrap();
    let order = agent.order().await;

    let (code, text) = refused(second).await;
    assert_eq!(code, Some(3), "{text}");
    for part in [why, "another controller", "stop that one first"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(first.try_wait().unwrap().is_none());
    let request = v1::ListBoardsRequest::default();
    let list = boards(&channel).list_boards(request).await.unwrap();
    assert!(list.into_inner().boards[0].online);
    agent.report(at(&order), 1, done()).await;
    let feed = feed(&channel, &job.id).await;
    assert!(matches!(feed.last().unwrap().body, Some(Body::JobEnded(_))));
    first.kill().await.unwrap();
}

#[tokio::test]
async fn process_refuses_a_second_controller_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path()).await;
    let second = controller(folder.path(), ANY_PORT);
    stays_alone(first, second, "klab.lock").await;
    // A lock that is left behind locks nothing.
    start(folder.path()).await;
}

#[tokio::test]
async fn process_refuses_a_second_controller_on_its_database() {
    let Some(mut server) = Server::start().await else {
        klab_testkit::skip(
            "process_refuses_a_second_controller_on_its_database",
            "PostgreSQL is not installed",
        );
        return;
    };
    let database = server.database().await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let program = |folder: &tempfile::TempDir| {
        let mut command = controller(folder.path(), ANY_PORT);
        command.args(["--database", &database]);
        command
    };
    let first = served(program(&folders[0])).await.unwrap();
    stays_alone(first, program(&folders[1]), "the database").await;
    served(program(&folders[1])).await.unwrap();
}

#[tokio::test]
async fn process_a_file_that_is_no_database_is_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("klab.db");
    std::fs::write(&file, [7; 5000]).unwrap();
    let (code, said) = refused(controller(folder.path(), "127.0.0.1:0")).await;
    assert_eq!(code, Some(3), "{said}");
    let expected = format!("{} cannot be opened as a SQLite database", file.display());
    assert!(
        said.contains(&expected) && said.contains("not a database"),
        "{said}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), [7; 5000]);
}
