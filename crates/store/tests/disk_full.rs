//! A full disk: a small tmpfs in a mount namespace of the test's own.

mod common;

use std::path::PathBuf;
use std::process::Command;

use bytes::Bytes;
use common::values;
use klab_model::Digest;
use klab_store::{Committed, Objects, Store, StoreError, StoreLocation, UploadKey};

const FOLDER: &str = "KLAB_TEST_TMPFS";
const MOUNT: &str = "mount -t tmpfs -o size=2m tmpfs \"$KLAB_TEST_TMPFS\"";

/// Runs an ignored test of this file in a new mount namespace, with a tmpfs of 2 MiB.
fn on_small_disk(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let unshare = |options: &[&str], script: &str| {
        let mut command = Command::new("unshare");
        command.args(options).args(["sh", "-c", script]);
        command.arg(std::env::current_exe().expect("the test's own path"));
        command.env(FOLDER, folder.path()).output()
    };
    let allowed = [&["-m"][..], &["-r", "-m"]]
        .into_iter()
        .find(|options| unshare(options, MOUNT).is_ok_and(|output| output.status.success()));
    let Some(options) = allowed else {
        klab_testkit::skip(name, "no permission to mount a tmpfs in a namespace");
        return;
    };
    let script = format!("{MOUNT} && exec \"$0\" --exact {name} --ignored --nocapture");
    let output = unshare(options, &script).expect("the test starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{problems}");
    assert!(text.contains("1 passed"), "the test was not found: {text}");
}

fn small_disk() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("only run by the other tests of this file"))
}

const MIB: usize = 1024 * 1024;

#[test]
fn a_full_disk_keeps_what_was_acknowledged() {
    on_small_disk("uploads_on_a_small_disk");
}

#[tokio::test]
#[ignore = "run by a_full_disk_keeps_what_was_acknowledged"]
async fn uploads_on_a_small_disk() {
    let folder = small_disk();
    let store = Objects::open(&folder).await.expect("a store");
    let key = UploadKey::parse("a").expect("a legal key");
    let whole = Bytes::from(
        (0..3 * MIB / 2)
            .map(|n| (n >> 3) as u8)
            .collect::<Vec<u8>>(),
    );
    let half = whole.len() / 2;
    store
        .append(&key, 0, whole.slice(..half))
        .await
        .expect("there is space");
    let ballast = store
        .put(Bytes::from(vec![7; MIB]))
        .await
        .expect("there is space");
    let refused = store.append(&key, half as u64, whole.slice(half..)).await;
    match refused {
        Err(StoreError::DiskFull { need, path }) => {
            assert_eq!(need, half as u64);
            assert!(path.starts_with(&folder), "{path:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        store.upload_length(&key).await.expect("a length"),
        half as u64
    );
    let refused = store.put(Bytes::from(vec![8; MIB])).await;
    assert!(
        matches!(refused, Err(StoreError::DiskFull { .. })),
        "{refused:?}"
    );
    let pending = store.uploads().await.expect("a list");
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert_eq!(
        store.size(&Digest::of(&[8; MIB])).await.expect("no error"),
        None
    );

    let digits = ballast.to_string();
    let ballast = folder.join("objects").join(&digits[..2]).join(&digits[2..]);
    std::fs::remove_file(ballast).expect("space is made");
    store
        .append(&key, half as u64, whole.slice(half..))
        .await
        .expect("there is space");
    let digest = Digest::of(&whole);
    let done = store.commit(&key, &digest, whole.len() as u64).await;
    assert_eq!(done.expect("a commit"), Committed::New);
    assert_eq!(store.bytes(&digest).await.expect("the object"), whole);
}

#[test]
fn a_full_disk_undoes_transactions() {
    on_small_disk("rows_on_a_small_disk");
}

#[tokio::test]
#[ignore = "run by a_full_disk_undoes_transactions"]
async fn rows_on_a_small_disk() {
    let folder = small_disk();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; MIB]).expect("there is space");
    let store = Store::open(&StoreLocation::in_folder(&folder))
        .await
        .expect("a store");
    let mut saved = Vec::new();
    let refused = loop {
        let (job, runs) = values::job(saved.len() as u128 + 1);
        match store.create_job(&job, &runs).await {
            Ok(_) => saved.push(job),
            Err(error) => break error,
        }
        assert!(saved.len() < 10_000, "the disk never fills");
    };
    assert!(
        matches!(refused, StoreError::DatabaseFull { .. }),
        "{refused:?}"
    );
    std::fs::remove_file(&ballast).expect("space is made");
    // A refusal after that must not leave a transaction open that swallows what follows.
    let (again, runs) = values::job(1);
    let refused = store.create_job(&again, &runs).await;
    assert!(
        matches!(refused, Err(StoreError::AlreadyExists { .. })),
        "{refused:?}"
    );
    let (job, runs) = values::job(saved.len() as u128 + 1);
    store
        .create_job(&job, &runs)
        .await
        .expect("the same job again");
    saved.push(job);
    for job in saved {
        let record = store.job(job.id).await.expect("the job");
        assert_eq!((record.job, record.runs.len()), (job, 2));
    }
}
