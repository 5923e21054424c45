use bytes::Bytes;
use klab_model::*;
use klab_store::*;

use crate::common::Lab;
use crate::common::values::*;

fn tree(source: &str) -> Tree {
    Tree {
        name: TreeName::parse("linux").expect("a legal name"),
        source: TreeSource::parse(source).expect("a legal source"),
        added_at: at(1),
    }
}

fn kernel_name(text: &str) -> KernelName {
    KernelName::parse(text).expect("a legal name")
}

/// A build number `n` of two targets.
fn build(n: u128) -> Build {
    let target = |index: u32, variant: &str| BuildTarget {
        variant: VariantName::parse(variant).expect("a legal name"),
        source: TargetSource::Patches(index),
        kernel: kernel_name(&format!("linux-{n}-{index}")),
    };
    Build {
        id: id(n),
        owner: Owner::parse("ada").expect("a legal name"),
        tree: tree("/srv/linux").name,
        base: Some(GitRef::parse("v6.1").expect("a legal ref")),
        series: None,
        config: KernelConfig {
            base: ConfigBase::Defconfig,
            fragments: Vec::new(),
            allow_missing: false,
        },
        arch: Arch::Riscv64,
        targets: vec![target(0, "base"), target(1, "+1")],
        created_at: at(2),
    }
}

fn assigned(state: &BuildState) -> BuildState {
    let change = BuildChange::Assigned {
        builder: BuilderName::parse("b1").expect("a legal name"),
        fence: Fence(1),
    };
    state.apply(change).expect("it is queued")
}

pub(crate) async fn trees_keep_their_source(lab: &Lab) {
    let store = lab.open().await;
    let first = store.add_tree(&tree("/srv/linux")).await.expect("new");
    let later = Tree {
        added_at: at(9),
        ..tree("/srv/linux")
    };
    assert_eq!(store.add_tree(&later).await.expect("the same"), first);
    let other = store.add_tree(&tree("/srv/other")).await;
    assert!(
        matches!(other, Err(StoreError::AlreadyExists { what: "tree", .. })),
        "{other:?}"
    );
    assert_eq!(
        store.list_trees().await.expect("a list"),
        std::slice::from_ref(&first)
    );
    store.remove_tree(&first.name).await.expect("it is there");
    assert!(matches!(
        store.remove_tree(&first.name).await,
        Err(StoreError::NotFound { what: "tree", .. })
    ));
    store.add_tree(&tree("/srv/other")).await.expect("new");
}

pub(crate) async fn a_build_comes_back_as_it_was_asked_for(lab: &Lab) {
    let store = lab.open().await;
    let wanted = build(1);
    let record = store.create_build(&wanted).await.expect("new");
    assert_eq!(record.build, wanted);
    assert_eq!(record.state.value, BuildState::new(2));
    assert_eq!(record.log, None);
    let feed = store.build_events(wanted.id, 0, 9).await.expect("feed");
    assert_eq!(feed.len(), 1);
    assert_eq!(feed[0].body, BuildEventBody::Submitted { targets: 2 });
    let (found, index) = store
        .build_of_kernel(&wanted.targets[1].kernel)
        .await
        .expect("rows")
        .expect("a build");
    assert_eq!((found, index), (record, 1));
    let nobody = store.build_of_kernel(&kernel_name("other")).await;
    assert_eq!(nobody.expect("rows"), None);
    // Another build whose kernels would have the same names: nothing of it is kept.
    let double = Build {
        id: id(2),
        ..wanted
    };
    let refused = store.create_build(&double).await;
    assert!(
        matches!(
            refused,
            Err(StoreError::AlreadyExists { what: "kernel", .. })
        ),
        "{refused:?}"
    );
    assert!(matches!(
        store.build(id(2)).await,
        Err(StoreError::NotFound { what: "build", .. })
    ));
}

pub(crate) async fn builds_are_changed_by_version(lab: &Lab) {
    let store = lab.open().await;
    let record = store.create_build(&build(1)).await.expect("new");
    let state = assigned(&record.state.value);
    let note = BuildEventBody::Note {
        text: "it's fine".to_owned(),
    };
    let change = BuildTransition::new(&record, state.clone(), at(3)).event(note.clone());
    let events = store.change_build(&change).await.expect("first");
    assert_eq!((events[0].seq, &events[0].body), (2, &note));
    let again = store.change_build(&change).await;
    assert!(matches!(
        again,
        Err(StoreError::Conflict { what: "build", .. })
    ));
    let feed = store.build_events(record.build.id, 0, 9).await;
    assert_eq!(feed.expect("feed").len(), 2, "nothing of what was refused");

    let live = store.live_builds().await.expect("a list");
    assert_eq!(live[0].state.value, state);
    let ended = state.apply(BuildChange::Stopped { fence: Fence(1) });
    let change = BuildTransition::new(&live[0], ended.expect("it fits"), at(4));
    store.change_build(&change).await.expect("second");
    assert_eq!(store.live_builds().await.expect("a list"), []);
    let over = store.build(record.build.id).await.expect("a build");
    let late = BuildTransition::new(&over, state, at(5));
    assert!(matches!(
        store.change_build(&late).await,
        Err(StoreError::Conflict { .. })
    ));
}

pub(crate) async fn builds_are_listed_newest_first(lab: &Lab) {
    let store = lab.open().await;
    for n in [2, 1, 3] {
        store.create_build(&build(n)).await.expect("new");
    }
    let ids = |page: &Page<BuildRecord>| page.items.iter().map(|r| r.build.id).collect::<Vec<_>>();
    let first = store.list_builds(&PageRequest::first(2)).await;
    let first = first.expect("a page");
    assert_eq!(ids(&first), [id(3), id(2)]);
    let rest = PageRequest {
        after: first.next,
        size: 2,
    };
    let rest = store.list_builds(&rest).await.expect("a page");
    assert_eq!((ids(&rest), rest.next), (vec![id(1)], None));
}

pub(crate) async fn inputs_are_remembered_with_their_kernel(lab: &Lab) {
    let store = lab.open().await;
    let record = store.create_build(&build(1)).await.expect("new");
    let key = Digest::of(b"tree, config, arch, toolchain");
    let state = assigned(&record.state.value);
    let with = |kernel: &str| {
        BuildTransition::new(&record, state.clone(), at(3)).key(key, kernel_name(kernel))
    };
    let unknown = store.change_build(&with("k0")).await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound { what: "kernel", .. })),
        "{unknown:?}"
    );
    assert_eq!(store.kernel_of_key(&key).await.expect("rows"), None);
    let k1 = kernel(&store, "k1", b"one").await;
    store.add_kernel(&k1).await.expect("new");
    store.change_build(&with("k1")).await.expect("known now");
    let found = store.kernel_of_key(&key).await.expect("rows");
    assert_eq!(found, Some(kernel_name("k1")));
}

pub(crate) async fn the_log_of_a_build_is_an_object(lab: &Lab) {
    let store = lab.open().await;
    let record = store.create_build(&build(1)).await.expect("new");
    let log = b"  CC      mm/madvise.o\n";
    let (digest, size) = (Digest::of(log), log.len() as u64);
    let name = || store.set_build_log(record.build.id, &digest, size);
    assert!(matches!(name().await, Err(StoreError::NotFound { .. })));
    let stored = store.objects().put(Bytes::from_static(log)).await;
    assert_eq!(stored.expect("an object"), digest);
    name().await.expect("it is there");
    let record = store.build(record.build.id).await.expect("a build");
    assert_eq!(record.log, Some((digest, size)));
}
