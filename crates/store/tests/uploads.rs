//! Uploads: resumed, refused, interrupted anywhere; never a wrong object.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::TryStreamExt;
use klab_model::Digest;
use klab_store::{Committed, Objects, StoreError, UploadKey};
use proptest::prelude::*;

fn key(text: &str) -> UploadKey {
    UploadKey::parse(text).expect("a legal key")
}

fn object_file(folder: &Path, digest: &Digest) -> PathBuf {
    let digits = digest.to_string();
    folder.join("objects").join(&digits[..2]).join(&digits[2..])
}

/// Every file among the objects, by the digest its place claims.
fn objects(folder: &Path) -> Vec<(String, PathBuf)> {
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|e| e.expect("an entry").path()).collect()
    };
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let mut found = Vec::new();
    for first in list(&folder.join("objects")) {
        for path in list(&first) {
            let claim = name(&first).into_iter().chain(name(&path)).collect();
            found.push((claim, path));
        }
    }
    found
}

#[tokio::test]
async fn an_upload_is_resumed_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = Bytes::from((0..700_000_u32).map(|n| n as u8).collect::<Vec<u8>>());
    let digest = Digest::of(&whole);
    let size = whole.len() as u64;
    let store = Objects::open(folder.path()).await.expect("a store");
    let first = store.append(&key("vb1.7"), 0, whole.slice(..300_000)).await;
    assert_eq!(first.expect("the first piece"), 300_000);
    let early = store.commit(&key("vb1.7"), &digest, size).await;
    match early {
        Err(StoreError::Incomplete { committed, .. }) => assert_eq!(committed, 300_000),
        other => panic!("{other:?}"),
    }
    drop(store);

    let store = Objects::open(folder.path()).await.expect("a store");
    let pending = store.uploads().await.expect("a list");
    assert_eq!(pending.len(), 1);
    assert_eq!(
        (&pending[0].key, pending[0].length),
        (&key("vb1.7"), 300_000)
    );
    for wrong in [0, 299_999, 300_001] {
        let refused = store.append(&key("vb1.7"), wrong, whole.slice(..9)).await;
        match refused {
            Err(StoreError::WrongOffset { committed, .. }) => assert_eq!(committed, 300_000),
            other => panic!("{other:?}"),
        }
    }
    let rest = whole.slice(300_000..);
    store
        .append(&key("vb1.7"), 300_000, rest)
        .await
        .expect("the rest");
    let done = store.commit(&key("vb1.7"), &digest, size).await;
    assert_eq!(done.expect("a commit"), Committed::New);
    assert_eq!(store.uploads().await.expect("a list"), []);
    // The acknowledgement was lost: the sender commits again.
    let again = store.commit(&key("vb1.7"), &digest, size).await;
    assert_eq!(again.expect("the same"), Committed::Present);
    assert!(object_file(folder.path(), &digest).exists());

    for offset in [0, 1, 262_144, 699_999, 700_000] {
        let read = store.read(&digest, offset).await.expect("the object");
        assert_eq!(read.size, size);
        let pieces: Vec<Bytes> = read.stream.try_collect().await.expect("its bytes");
        assert_eq!(
            pieces.concat(),
            whole[usize::try_from(offset).expect("small")..]
        );
    }
    let beyond = store.read(&digest, 700_001).await;
    assert!(matches!(beyond, Err(StoreError::BeyondEnd { .. })));
    let absent = store.read(&Digest::of(b"absent"), 0).await;
    assert!(matches!(
        absent,
        Err(StoreError::NotFound { what: "object", .. })
    ));
}

#[tokio::test]
async fn wrong_bytes_are_thrown_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Objects::open(folder.path()).await.expect("a store");
    let promised = Digest::of(b"right bytes");
    for wrong in ["wrong bytes", "right bytes and more"] {
        let bytes = Bytes::from_static(wrong.as_bytes());
        store.append(&key("a"), 0, bytes).await.expect("a piece");
        let refused = store.commit(&key("a"), &promised, 11).await;
        match refused {
            Err(StoreError::Mismatch {
                found, expected, ..
            }) => {
                assert_eq!((found, expected), (Digest::of(wrong.as_bytes()), promised));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(store.upload_length(&key("a")).await.expect("a length"), 0);
        assert_eq!(store.uploads().await.expect("a list"), []);
        assert_eq!(objects(folder.path()), []);
    }
}

#[tokio::test]
async fn an_object_is_stored_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Objects::open(folder.path()).await.expect("a store");
    let puts = (0..8).map(|_| store.put(Bytes::from_static(b"same")));
    for digest in futures::future::join_all(puts).await {
        assert_eq!(digest.expect("an object"), Digest::of(b"same"));
    }
    store
        .append(&key("b"), 0, Bytes::from_static(b"same"))
        .await
        .expect("a piece");
    let present = store.commit(&key("b"), &Digest::of(b"same"), 4).await;
    assert_eq!(present.expect("a commit"), Committed::Present);
    assert_eq!(objects(folder.path()).len(), 1);
    assert_eq!(store.uploads().await.expect("a list"), []);
    // Nothing is something as well.
    let empty = Digest::of(b"");
    let done = store.commit(&key("c"), &empty, 0).await;
    assert_eq!(done.expect("a commit"), Committed::New);
    assert_eq!(store.bytes(&empty).await.expect("an object"), Bytes::new());
}

#[tokio::test]
async fn two_senders_of_one_upload_do_not_mix() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Objects::open(folder.path()).await.expect("a store");
    let piece = Bytes::from(vec![1; 1000]);
    for round in 0..10 {
        let key = key("a");
        let both = (0..2).map(|_| store.append(&key, round * 1000, piece.clone()));
        let both = futures::future::join_all(both).await;
        let taken = both.iter().filter(|result| result.is_ok()).count();
        assert_eq!(taken, 1, "{both:?}");
    }
    assert_eq!(
        store.upload_length(&key("a")).await.expect("a length"),
        10_000
    );
}

#[test]
fn keys_cannot_leave_the_folder() {
    for bad in ["", "..", ".a", "a/b", "A", "ä", "a b", &"x".repeat(201)] {
        let error = UploadKey::parse(bad).expect_err(bad);
        assert!(error.to_string().contains("expected 1 to 200"), "{error}");
    }
}

/// What may happen to an upload.
#[derive(Debug, Clone)]
enum Act {
    /// The sender continues where the store says.
    Continue { length: usize },
    /// Somebody writes wrong bytes, or at a wrong place.
    Stray { offset: u64, bytes: Vec<u8> },
    /// The controller dies while it writes: a part of the next piece, or zeros where the
    /// file system had grown the file only.
    Crash { torn: usize, zeros: bool },
    /// The sender thinks that everything is there.
    Commit,
    /// Another sender promises something else.
    CommitOther,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_usize..60).prop_map(|length| Act::Continue { length }),
        1 => (0_u64..120, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(offset, bytes)| Act::Stray { offset, bytes }),
        2 => (0_usize..30, any::<bool>()).prop_map(|(torn, zeros)| Act::Crash { torn, zeros }),
        2 => Just(Act::Commit),
        1 => Just(Act::CommitOther),
    ]
}

fn clip(bytes: &Bytes, from: u64, length: usize) -> Bytes {
    let from = usize::try_from(from).map_or(bytes.len(), |from| from.min(bytes.len()));
    bytes.slice(from..(from + length).min(bytes.len()))
}

/// Errors that the store may answer with; anything else is a bug.
fn expected(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::WrongOffset { .. }
            | StoreError::Incomplete { .. }
            | StoreError::Mismatch { .. }
    )
}

async fn play(folder: &Path, whole: &Bytes, acts: Vec<Act>) {
    let (digest, size) = (Digest::of(whole), whole.len() as u64);
    let key = key("u");
    let mut store = Objects::open(folder).await.expect("a store");
    // The last word is an honest sender's, who starts again after a mismatch.
    let end = || [Act::Continue { length: 999 }, Act::Commit];
    for act in acts.into_iter().chain(end()).chain(end()) {
        let length = store.upload_length(&key).await.expect("a length");
        let result = match act {
            Act::Continue { length: count } => {
                let piece = clip(whole, length, count);
                store.append(&key, length, piece).await.map(|_| ())
            }
            Act::Stray { offset, bytes } => {
                store.append(&key, offset, bytes.into()).await.map(|_| ())
            }
            Act::Crash { torn, zeros } => {
                let piece = clip(whole, length, torn);
                let torn = if zeros {
                    vec![0; piece.len()]
                } else {
                    piece.to_vec()
                };
                let path = folder.join("uploads/u");
                let mut content = std::fs::read(&path).unwrap_or_default();
                content.extend(torn);
                std::fs::write(&path, content).expect("a torn file");
                store = Objects::open(folder).await.expect("a store");
                Ok(())
            }
            Act::Commit => store.commit(&key, &digest, size).await.map(|_| ()),
            Act::CommitOther => {
                let other = Digest::of(b"other");
                store.commit(&key, &other, 5).await.map(|_| ())
            }
        };
        assert!(result.as_ref().err().is_none_or(expected), "{result:?}");
        for (claim, path) in objects(folder) {
            let content = std::fs::read(path).expect("an object");
            assert_eq!(Digest::of(&content).to_string(), claim);
        }
    }
    assert_eq!(store.bytes(&digest).await.expect("it arrived"), *whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_history_makes_a_wrong_object(
        whole in prop::collection::vec(any::<u8>(), 0..150),
        acts in prop::collection::vec(act(), 0..20),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(play(folder.path(), &whole.into(), acts));
    }
}
