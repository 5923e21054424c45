//! Trees: mirrors of repositories that are never touched.
#![allow(missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use klab_build::{BuildError, BuildEvent, Stage, TreeSource, Trees};
use klab_model::FailureClass;
use klab_testkit::skip;
use support::{Desk, tree_name};

/// Path, time and content of every file below a folder.
fn picture(folder: &Path) -> BTreeMap<String, (i64, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let time = path.metadata().expect("file").mtime();
                let bytes = fs::read(&path).expect("file");
                files.insert(path.display().to_string(), (time, bytes));
            }
        }
    }
    files
}

#[test]
fn a_tree_shares_its_objects_and_leaves_the_source_alone() {
    let mut desk = Desk::with(&[("Makefile", "all:\n")]);
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.write(&[("not-committed", "x")]);
    let before = picture(&desk.repo());
    let tree = desk.tree();
    let commit = desk
        .watched(|w| tree.resolve("master", w))
        .expect("a commit");
    assert_eq!(commit.id.as_str(), first);
    assert_eq!(picture(&desk.repo()), before);
    let object = format!("objects/{}/{}", &first[..2], &first[2..]);
    let theirs = fs::metadata(desk.repo().join(".git").join(&object)).expect("their object");
    let ours = fs::metadata(desk.klab().join("trees/linux.git").join(&object)).expect("ours");
    assert_eq!(
        (ours.dev(), ours.ino()),
        (theirs.dev(), theirs.ino()),
        "copied"
    );
    assert!(desk.events.contains(&BuildEvent::Stage(Stage::Fetching)));
    assert_eq!(desk.trees().list().expect("list"), [tree_name("linux")]);
}

#[test]
fn a_fetch_brings_what_is_new_and_forgets_what_is_gone() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    desk.git(&["branch", "topic"]);
    let tree = desk.tree();
    let second = desk.commit("second", &[("a", "2\n")]);
    desk.git(&["tag", "v1"]);
    desk.git(&["branch", "--delete", "--force", "topic"]);
    assert!(desk.watched(|w| tree.resolve("v1", w)).is_err());
    desk.watched(|w| tree.fetch(w)).expect("fetches");
    for name in ["v1", "master", "HEAD", &second, &second[..10]] {
        let commit = desk.watched(|w| tree.resolve(name, w)).expect(name);
        assert_eq!(commit.id.as_str(), second, "{name}");
    }
    let before = desk
        .watched(|w| tree.resolve("HEAD~1", w))
        .expect("its parent");
    assert_ne!(before.id.as_str(), second);
    assert!(desk.watched(|w| tree.resolve("topic", w)).is_err());
}

#[test]
fn a_commit_on_no_branch_is_found_where_the_work_tree_stands() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    let tree = desk.tree();
    desk.git(&["checkout", "--quiet", "--detach"]);
    let loose = desk.commit("loose", &[("a", "2\n")]);
    desk.watched(|w| tree.fetch(w)).expect("fetches");
    let found = desk.watched(|w| tree.resolve("HEAD", w)).expect("a commit");
    assert_eq!(found.id.as_str(), loose);
}

#[test]
fn a_name_of_two_commits_is_refused_and_its_full_names_are_not() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    desk.git(&["tag", "--annotate", "--message=x", "both"]);
    desk.git(&["branch", "both"]);
    desk.git(&["branch", "both-and-more"]);
    let tree = desk.tree();
    // The same commit, whichever is meant.
    let first = desk.watched(|w| tree.resolve("both", w)).expect("clear");
    let second = desk.commit("second", &[("a", "2\n")]);
    desk.git(&["branch", "--force", "both"]);
    desk.watched(|w| tree.fetch(w)).expect("fetches");
    let error = desk.watched(|w| tree.resolve("both", w)).expect_err("two");
    let expected = format!(
        "\"both\" is several commits in tree linux: name one of refs/heads/both ({:.12}), \
         refs/tags/both ({})",
        second,
        first.id.short()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.failure().class, FailureClass::Kernel);
    for (name, commit) in [
        ("refs/heads/both", second.as_str()),
        ("heads/both", second.as_str()),
        ("tags/both", first.id.as_str()),
    ] {
        let found = desk.watched(|w| tree.resolve(name, w)).expect(name);
        assert_eq!(found.id.as_str(), commit, "{name}");
    }
}

#[test]
fn revisions_that_are_options_or_nothing_are_refused() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    let tree = desk.tree();
    for bad in [
        "",
        "-h",
        "--all",
        "no-such",
        "a b",
        "master:a",
        "v1\n",
        &"x".repeat(500),
    ] {
        let error = desk.watched(|w| tree.resolve(bad, w)).expect_err(bad);
        assert!(
            matches!(error, BuildError::NoCommit { .. }),
            "{bad:?}: {error}"
        );
    }
}

#[test]
fn a_name_stands_for_one_source() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    desk.tree();
    desk.tree();
    let other = Desk::with(&[("b", "1\n")]);
    let trees = desk.trees();
    let source = TreeSource::Path(other.repo());
    let error = desk
        .watched(|w| trees.add(&tree_name("linux"), &source, w))
        .expect_err("taken");
    assert!(matches!(error, BuildError::TreeTaken { .. }), "{error}");
    let error = trees.tree(&tree_name("stable")).expect_err("unknown");
    assert_eq!(error.to_string(), "no tree stable; there is linux");
}

#[test]
fn a_source_that_is_no_repository_leaves_nothing_behind() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    let trees = desk.trees();
    let source = TreeSource::Path(desk.path().to_owned());
    let name = tree_name("linux");
    let error = desk
        .watched(|w| trees.add(&name, &source, w))
        .expect_err("no repository");
    assert!(matches!(error, BuildError::Git { .. }), "{error}");
    assert!(trees.list().expect("list").is_empty());
    desk.tree();
}

#[test]
fn a_url_is_fetched_and_a_gone_source_is_told() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    let trees = desk.trees();
    let url = format!("file://{}", desk.repo().display());
    let source = TreeSource::parse(&url).expect("a URL");
    let name = tree_name("linux");
    let tree = desk
        .watched(|w| trees.add(&name, &source, w))
        .expect("is added");
    assert!(
        desk.events
            .iter()
            .any(|event| matches!(event, BuildEvent::Transfer(_)))
    );
    fs::rename(desk.repo(), desk.path().join("moved")).expect("rename");
    let error = desk.watched(|w| tree.fetch(w)).expect_err("gone");
    assert!(error.to_string().contains("git fetch"), "{error}");
    assert!(desk.watched(|w| tree.resolve("master", w)).is_ok());
}

#[test]
fn hooks_and_configuration_of_others_do_nothing() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    let proof = desk.path().join("ran");
    for hook in [
        "post-checkout",
        "applypatch-msg",
        "post-applypatch",
        "reference-transaction",
    ] {
        let path = desk.repo().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().expect("folder")).expect("folder");
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", proof.display())).expect("hook");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    desk.git(&[
        "config",
        "core.fsmonitor",
        &format!("touch {}", proof.display()),
    ]);
    desk.commit("second", &[("a", "2\n")]);
    let _ = fs::remove_file(&proof);
    let mails = desk.mails("HEAD~1");
    let tree = desk.tree();
    let base = desk.watched(|w| tree.resolve("HEAD~1", w)).expect("base");
    let patch = [klab_build::RawPatch {
        mail: &mails[0],
        keep_cr: false,
    }];
    let applied = desk
        .watched(|w| tree.apply(&base, &patch, w))
        .expect("applies");
    assert_eq!(applied.commits.len(), 1);
    assert!(!proof.exists(), "something of the source ran");
}

#[test]
fn a_source_on_another_file_system_is_read_where_it_is() {
    let name = "a_source_on_another_file_system_is_read_where_it_is";
    let mut desk = Desk::with(&[("a", "1\n")]);
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return skip(name, "no /dev/shm");
    };
    let device = |path: &Path| path.metadata().expect("folder").dev();
    if device(other.path()) == device(&desk.repo()) {
        return skip(
            name,
            "/dev/shm is on the file system of the temporary folder",
        );
    }
    let trees = Trees::open(other.path()).expect("opens");
    let source = TreeSource::Path(desk.repo());
    let tree = desk
        .watched(|w| trees.add(&tree_name("linux"), &source, w))
        .expect("is added");
    let alternates = other.path().join("trees/linux.git/objects/info/alternates");
    let place = fs::read_to_string(alternates).expect("alternates");
    assert!(place.contains("developer/.git/objects"), "{place}");
    assert!(desk.watched(|w| tree.resolve("master", w)).is_ok());
}

#[test]
fn a_repository_of_another_user_is_a_source() {
    let name = "a_repository_of_another_user_is_a_source";
    let mut desk = Desk::with(&[("a", "1\n")]);
    let mut paths = vec![desk.repo()];
    while let Some(path) = paths.pop() {
        if lchown(&path, Some(65534), Some(65534)).is_err() {
            return skip(name, "only root can give files away");
        }
        if path.is_dir() {
            let entries = fs::read_dir(path).expect("folder").flatten();
            paths.extend(entries.map(|entry| entry.path()));
        }
    }
    let tree = desk.tree();
    assert!(desk.watched(|w| tree.resolve("master", w)).is_ok());
    desk.watched(|w| tree.fetch(w)).expect("fetches");
}

#[test]
fn folders_that_make_refuses_are_refused_at_once() {
    let desk = Desk::new();
    for name in ["with blank", "with:colon"] {
        let error = Trees::open(&desk.path().join(name)).expect_err(name);
        assert!(matches!(error, BuildError::Folder { .. }), "{error}");
    }
}

#[test]
fn a_cancelled_token_stops_before_anything_happens() {
    let mut desk = Desk::with(&[("a", "1\n")]);
    desk.cancel.cancel();
    assert!(matches!(desk.add("linux"), Err(BuildError::Cancelled)));
    assert!(desk.trees().list().expect("list").is_empty());
}
