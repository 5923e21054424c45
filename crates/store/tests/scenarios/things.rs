use klab_model::*;
use klab_store::*;
use sqlx::{Executor, SqlSafeStr};

use crate::common::Lab;
use crate::common::values::*;

pub(crate) async fn every_statement_is_understood(lab: &Lab) {
    let _store = lab.open().await;
    let mut connection = lab.connection().await;
    for (name, text) in sql::ALL {
        let prepared = connection.prepare(text.into_sql_str()).await;
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

pub(crate) async fn kernels_keep_their_name(lab: &Lab) {
    let store = lab.open().await;
    let first = kernel(&store, "rt", b"one").await;
    assert_eq!(store.add_kernel(&first).await.expect("new"), first);
    let later = Kernel {
        added_at: at(9),
        ..first.clone()
    };
    assert_eq!(store.add_kernel(&later).await.expect("the same"), first);
    let other = kernel(&store, "rt", b"two").await;
    match store.add_kernel(&other).await {
        Err(StoreError::AlreadyExists { existing, .. }) => {
            assert_eq!(existing, Some(first.offer.digest));
        }
        other => panic!("{other:?}"),
    }
    let mut absent = kernel(&store, "absent", b"one").await;
    absent.offer.digest = Digest::of(b"never stored");
    let refused = store.add_kernel(&absent).await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound { what: "object", .. })
    ));
    let unknown = store.kernel(&absent.name).await;
    assert!(matches!(
        unknown,
        Err(StoreError::NotFound { what: "kernel", .. })
    ));
}

pub(crate) async fn the_newest_configuration_of_a_board_is_kept(lab: &Lab) {
    let store = lab.open().await;
    let config = |release: &str, content: &[u8]| BoardConfig {
        release: release.to_owned(),
        content: content.to_vec(),
    };
    let name = board_name("b1");
    let first = config("6.1.0", b"\x1f\x8b\0\xff");
    assert!(store.set_board_config(&name, &first).await.is_err());
    store.upsert_board(&board("b1"), None).await.expect("new");
    assert_eq!(store.board_config_digest(&name).await.expect("rows"), None);
    assert!(matches!(
        store.board_config(&name).await,
        Err(StoreError::NotFound { .. })
    ));
    for config in [first, config("6.12.0", b"CONFIG_SMP=y\n")] {
        store.set_board_config(&name, &config).await.expect("kept");
        let digest = store.board_config_digest(&name).await.expect("rows");
        assert_eq!(digest, Some(Digest::of(&config.content)));
        assert_eq!(store.board_config(&name).await.expect("there"), config);
    }
}

pub(crate) async fn kernels_come_in_pages(lab: &Lab) {
    let store = lab.open().await;
    // The order of bytes, whatever the locale says.
    let names = ["a-b", "a.b", "aa", "a_b", "ab"];
    for name in names {
        let kernel = kernel(&store, name, b"one").await;
        store.add_kernel(&kernel).await.expect("new");
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let mut request = PageRequest::first(2);
    let mut found = Vec::new();
    loop {
        let page = store.list_kernels(&request).await.expect("a page");
        assert!(page.items.len() <= 2);
        found.extend(page.items.iter().map(|k| k.name.to_string()));
        match page.next {
            Some(next) => request.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, sorted);
    request.after = Some("No Such".to_owned());
    let refused = store.list_kernels(&request).await;
    assert!(matches!(refused, Err(StoreError::BadPageToken { .. })));
}

pub(crate) async fn boards_are_swapped_by_version(lab: &Lab) {
    let store = lab.open().await;
    let first = board("vf2");
    let version = store.upsert_board(&first, None).await.expect("new");
    assert!(matches!(
        store.upsert_board(&first, None).await,
        Err(StoreError::Conflict { what: "board", .. })
    ));
    let mut second = first.clone();
    second.state.presence = Presence::Offline;
    let next = store
        .upsert_board(&second, Some(version))
        .await
        .expect("nobody was faster");
    assert!(matches!(
        store.upsert_board(&first, Some(version)).await,
        Err(StoreError::Conflict { .. })
    ));
    store.board_seen(&first.name, at(5)).await.expect("seen");
    store.board_seen(&first.name, at(3)).await.expect("seen");
    let read = store.board(&first.name).await.expect("the board");
    assert_eq!(read.version, next);
    assert_eq!(read.value.seen_at, at(5));
    assert_eq!(read.value.state, second.state);
    assert_eq!(read.value.tags, first.tags);
    store.upsert_board(&board("a1"), None).await.expect("new");
    let names: Vec<String> = store
        .list_boards()
        .await
        .expect("boards")
        .iter()
        .map(|board| board.value.name.to_string())
        .collect();
    assert_eq!(names, ["a1", "vf2"]);
    let unknown = store.find_board(&board_name("zz")).await;
    assert_eq!(unknown.expect("no error"), None);
}

pub(crate) async fn fences_only_grow(lab: &Lab) {
    let store = lab.open().await;
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.next_fence().await.expect("a fence") })
        })
        .collect();
    let mut fences = Vec::new();
    for task in tasks {
        fences.push(task.await.expect("no panic").0);
    }
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 20);
    store.close().await;
    drop(store);
    let later = lab.open().await.next_fence().await.expect("a fence");
    assert!(Some(&later.0) > fences.last());
}

pub(crate) async fn broken_rows_are_named(lab: &Lab) {
    let store = lab.open().await;
    store.upsert_board(&board("vf2"), None).await.expect("new");
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    lab.tamper("UPDATE boards SET state = '{\"presence\":'")
        .await;
    lab.tamper("UPDATE runs SET variant = 'not a variant'")
        .await;
    let error = store.board(&board_name("vf2")).await.expect_err("broken");
    let text = error.to_string();
    assert!(
        text.contains("table boards, row vf2, column state"),
        "{text}"
    );
    let error = store.job(job.id).await.expect_err("broken");
    let place = format!("table runs, row {}, column variant", runs[0].id);
    assert!(error.to_string().contains(&place), "{error}");
    lab.tamper("UPDATE runs SET variant = 'base', round = 5000000000")
        .await;
    let error = store.run(runs[1].id).await.expect_err("too big");
    assert!(
        error.to_string().contains("column round: 5000000000"),
        "{error}"
    );
}

pub(crate) async fn tables_of_a_newer_version_are_refused(lab: &Lab) {
    drop(lab.open().await);
    lab.tamper(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'future', true, 'x', 0)",
    )
    .await;
    let error = Store::open(&lab.location).await.expect_err("it is newer");
    assert!(matches!(error, StoreError::Migration { .. }), "{error:?}");
    assert!(
        error.to_string().contains("another version of klab"),
        "{error}"
    );
}
