//! Patches: applied in order, the same each time, and nothing of a bad one stays.
#![allow(missing_docs)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use klab_build::{Applied, BuildError, Commit, RawPatch, Refusal, RefusalKind, Tree};
use support::Desk;

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

fn apply(desk: &mut Desk, tree: &Tree, base: &Commit, mails: &[Vec<u8>]) -> Applied {
    apply_with(desk, tree, base, mails, false)
}

fn apply_with(
    desk: &mut Desk,
    tree: &Tree,
    base: &Commit,
    mails: &[Vec<u8>],
    keep_cr: bool,
) -> Applied {
    let patches: Vec<RawPatch<'_>> = mails
        .iter()
        .map(|mail| RawPatch { mail, keep_cr })
        .collect();
    let applied = desk
        .watched(|w| tree.apply(base, &patches, w))
        .expect("works");
    let left = fs::read_dir(desk.klab().join("work/linux/apply")).expect("folder");
    let left: Vec<_> = left
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(left, [".git"], "files stay in the work tree");
    let state = desk
        .klab()
        .join("trees/linux.git/worktrees/apply/rebase-apply");
    assert!(!state.exists(), "git am is not over");
    applied
}

fn base(desk: &mut Desk, tree: &Tree, revision: &str) -> Commit {
    desk.watched(|w| tree.resolve(revision, w))
        .expect("a commit")
}

/// A repository whose last two commits change `mm/a.c`, and their mails.
fn two_patches() -> (Desk, Tree, Vec<Vec<u8>>) {
    let mut desk = Desk::with(&[("mm/a.c", TEXT), ("mm/b.c", "b\n"), ("other/c", "c\n")]);
    desk.commit("mm: first", &[("mm/a.c", &TEXT.replace("three", "THREE"))]);
    let second = TEXT.replace("three", "THREE").replace("nine", "NINE");
    desk.commit("mm: second", &[("mm/a.c", &second)]);
    let mails = desk.mails("HEAD~2");
    let tree = desk.tree();
    (desk, tree, mails)
}

fn refused(applied: &Applied) -> &Refusal {
    applied
        .refused
        .as_ref()
        .expect("a patch that does not apply")
}

#[test]
fn every_prefix_of_a_series_is_a_commit_with_its_tree() {
    let (mut desk, tree, mails) = two_patches();
    let start = base(&mut desk, &tree, "HEAD~2");
    let applied = apply(&mut desk, &tree, &start, &mails);
    assert_eq!(applied.refused, None);
    assert_eq!(applied.prefix(0).expect("base"), &start);
    for (n, revision) in [(1, "HEAD~1"), (2, "HEAD")] {
        let theirs = base(&mut desk, &tree, revision);
        assert_eq!(applied.prefix(n).expect("a prefix").tree, theirs.tree);
    }
    let error = applied.prefix(3).expect_err("no third patch");
    assert_eq!(
        error.to_string(),
        "the variant needs 3 patches, the series has 2"
    );
}

#[test]
fn the_same_patches_give_the_same_commits_anywhere_and_any_time() {
    let (mut desk, tree, mut mails) = two_patches();
    // A mail without a date must not take the time of applying.
    let text = String::from_utf8(mails[1].clone()).expect("text");
    let dateless: Vec<&str> = text.lines().filter(|l| !l.starts_with("Date: ")).collect();
    mails[1] = (dateless.join("\n") + "\n").into_bytes();
    let start = base(&mut desk, &tree, "HEAD~2");
    let first = apply(&mut desk, &tree, &start, &mails);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = apply(&mut desk, &tree, &start, &mails);
    assert_eq!(first.commits.len(), 2);
    assert_eq!(first, second);
    fs::remove_dir_all(desk.klab()).expect("removed");
    let tree = desk.tree();
    assert_eq!(apply(&mut desk, &tree, &start, &mails), first);
}

#[test]
fn what_git_finds_in_the_environment_does_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let hook = folder.path().join("applypatch-msg");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").expect("hook");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("mode");
    let config = folder.path().join("config");
    let hooks = folder.path().display();
    let text = format!("[core]\nhooksPath = {hooks}\n[commit]\ngpgSign = true\n");
    fs::write(&config, &text).expect("config");
    fs::write(folder.path().join(".gitconfig"), &text).expect("config");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "every_prefix_of_a_series_is_a_commit_with_its_tree",
            "--exact",
        ])
        .env("GIT_CONFIG_GLOBAL", &config)
        .env("HOME", folder.path())
        .env("GIT_DIR", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere/index")
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
fn three_ways_help_where_lines_moved() {
    let (mut desk, tree, _) = two_patches();
    // The context of the patch is another text, but its blob is known.
    desk.git(&["checkout", "--quiet", "--detach", "HEAD~2"]);
    let text = TEXT
        .replace("five\nsix\n", "")
        .replace("one\n", "zero\nhalf\none\n");
    desk.commit(
        "moves",
        &[("mm/a.c", &text.replace("ten\n", "ten\neleven\n"))],
    );
    desk.watched(|w| tree.fetch(w)).expect("fetches");
    let mails = desk.mails("master~1..master");
    let onto = base(&mut desk, &tree, "HEAD");
    let applied = apply(&mut desk, &tree, &onto, &mails);
    assert_eq!(applied.refused, None);
    assert_eq!(applied.commits.len(), 1);
}

#[test]
fn a_conflict_names_patch_file_and_hunk_and_earlier_prefixes_still_work() {
    let (mut desk, tree, mut mails) = two_patches();
    desk.git(&["checkout", "--quiet", "--detach", "HEAD~2"]);
    desk.commit("other text", &[("mm/a.c", &TEXT.replace("nine", "neun"))]);
    desk.watched(|w| tree.fetch(w)).expect("fetches");
    let start = base(&mut desk, &tree, "HEAD");
    mails.push(mails[0].clone());
    let applied = apply(&mut desk, &tree, &start, &mails);
    assert_eq!(applied.commits.len(), 1);
    let refusal = refused(&applied);
    assert_eq!(refusal.kind, RefusalKind::Conflict, "{refusal:?}");
    assert_eq!((refusal.patch, refusal.subject.as_str()), (2, "mm: second"));
    assert_eq!(
        (refusal.file.as_deref(), refusal.line),
        (Some("mm/a.c"), Some(6))
    );
    assert!(
        refusal.message.contains("patch failed: mm/a.c:6"),
        "{refusal}"
    );
    assert!(applied.prefix(1).is_ok());
    let error = applied.prefix(2).expect_err("refused");
    assert!(matches!(error, BuildError::Refused(_)));
    assert_eq!(error.failure().class, klab_model::FailureClass::Kernel);
    // Afterwards everything works as before.
    let (good, revision) = (desk.mails("master~2..master"), "master~2");
    let start = base(&mut desk, &tree, revision);
    assert_eq!(apply(&mut desk, &tree, &start, &good).commits.len(), 2);
}

#[test]
fn a_patch_against_unknown_files_says_so() {
    let (mut desk, tree, _) = two_patches();
    let other = Desk::with(&[("drivers/x.c", "x\n")]);
    other.commit("drivers: y", &[("drivers/x.c", "y\n")]);
    let start = base(&mut desk, &tree, "HEAD");
    let applied = apply(&mut desk, &tree, &start, &other.mails("HEAD~1"));
    let refusal = refused(&applied);
    assert_eq!(refusal.file.as_deref(), Some("drivers/x.c"), "{refusal:?}");
    assert!(
        refusal.message.contains("does not exist in index"),
        "{refusal}"
    );
}

#[test]
fn what_is_no_patch_is_named_so() {
    let (mut desk, tree, mails) = two_patches();
    let start = base(&mut desk, &tree, "HEAD~2");
    let cut = mails[0].len() - 60;
    let text = b"From: a <a@example.org>\nSubject: hello\n\nNo patch.\n".to_vec();
    for bad in [text, mails[0][..cut].to_vec(), Vec::new(), vec![0xff; 1000]] {
        let applied = apply(&mut desk, &tree, &start, &[bad]);
        let refusal = refused(&applied);
        assert_ne!(refusal.kind, RefusalKind::Conflict, "{refusal:?}");
    }
    let large = vec![b'x'; (32 << 20) + 1];
    let applied = apply(&mut desk, &tree, &start, &[large]);
    assert_eq!(refused(&applied).kind, RefusalKind::TooLarge);
    // What is there already is no change.
    let end = base(&mut desk, &tree, "HEAD~1");
    let applied = apply(&mut desk, &tree, &end, &mails[..1]);
    assert_eq!(
        refused(&applied).kind,
        RefusalKind::NoChange,
        "{:?}",
        refused(&applied)
    );
}

#[test]
fn a_line_that_looks_like_the_next_mail_does_not_split_one() {
    let mut desk = Desk::with(&[("notes", "a\n")]);
    desk.commit(
        "notes",
        &[("notes", "a\nFrom x Mon Sep 17 00:00:00 2001\n")],
    );
    let mut mails = desk.mails("HEAD~1");
    let tree = desk.tree();
    let text = String::from_utf8(mails[0].clone()).expect("text");
    let inside = "\n\nFrom y Mon Sep 17 00:00:00 2001\nSubject: not a mail\n---\n";
    mails[0] = text
        .replacen("\n\n---\n", &format!("{inside}\n"), 1)
        .into_bytes();
    let start = base(&mut desk, &tree, "HEAD~1");
    let applied = apply(&mut desk, &tree, &start, &mails);
    assert_eq!(applied.refused, None);
    let theirs = base(&mut desk, &tree, "HEAD");
    assert_eq!(applied.prefix(1).expect("applied").tree, theirs.tree);
}

#[test]
fn carriage_returns_belong_to_the_patch_only_where_it_says_so() {
    let mut desk = Desk::with(&[("dos.txt", "a\r\nb\r\n")]);
    desk.commit("dos", &[("dos.txt", "a\r\nB\r\n")]);
    let mails = desk.mails("HEAD~1");
    let tree = desk.tree();
    let start = base(&mut desk, &tree, "HEAD~1");
    let theirs = base(&mut desk, &tree, "HEAD");
    let kept = apply_with(&mut desk, &tree, &start, &mails, true);
    assert_eq!(kept.prefix(1).expect("applied").tree, theirs.tree);
    let dropped = apply_with(&mut desk, &tree, &start, &mails, false);
    assert_ne!(
        dropped.prefix(1).ok().map(|commit| &commit.tree),
        Some(&theirs.tree)
    );
}

/// A mail with a diff that no one would write by hand.
fn mail(diff: &str) -> Vec<u8> {
    format!(
        "From: m <m@example.org>\nDate: Thu, 21 Sep 2023 20:02:15 +0800\nSubject: [PATCH] x\n\n\
         text\n---\n{diff}-- \n2.39\n"
    )
    .into_bytes()
}

#[test]
fn nothing_is_written_outside_the_work_tree() {
    let (mut desk, tree, _) = two_patches();
    let outside = desk.path().join("outside");
    fs::create_dir(&outside).expect("folder");
    fs::write(outside.join("target"), "safe\n").expect("file");
    let start = base(&mut desk, &tree, "HEAD");
    let link = mail(&format!(
        "diff --git a/way b/way\nnew file mode 120000\n--- /dev/null\n+++ b/way\n@@ -0,0 +1 @@\n\
         +{}\n\\ No newline at end of file\n",
        outside.display()
    ));
    let new = |name: &str| {
        mail(&format!(
            "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n\
             @@ -0,0 +1 @@\n+evil\n"
        ))
    };
    let change = mail(
        "diff --git a/way/target b/way/target\n--- a/way/target\n+++ b/way/target\n@@ -1 +1 @@\n\
         -safe\n+evil\n",
    );
    for second in [new("way/new"), change] {
        let applied = apply(&mut desk, &tree, &start, &[link.clone(), second]);
        assert_eq!(
            applied.commits.len(),
            1,
            "the link itself is a change like any other"
        );
    }
    let applied = apply(&mut desk, &tree, &start, &[link.clone(), new("way/new")]);
    assert_eq!(
        refused(&applied).kind,
        RefusalKind::Unsafe,
        "{:?}",
        refused(&applied)
    );
    for name in ["../escape", ".git/hooks/x", "a/../../escape", ".GIT/config"] {
        let applied = apply(&mut desk, &tree, &start, &[new(name)]);
        assert_eq!(refused(&applied).kind, RefusalKind::Unsafe, "{name}");
    }
    let names: Vec<_> = fs::read_dir(&outside).expect("folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(
        fs::read_to_string(outside.join("target")).expect("file"),
        "safe\n"
    );
    assert!(!desk.klab().join("work/linux/escape").exists());
}

#[test]
fn a_series_that_was_cut_off_does_not_disturb_the_next() {
    let (mut desk, tree, mails) = two_patches();
    let start = base(&mut desk, &tree, "HEAD~2");
    let good = apply(&mut desk, &tree, &start, &mails);
    // What a power cut in `git am` leaves behind.
    let state = desk.klab().join("trees/linux.git/worktrees/apply");
    fs::create_dir(state.join("rebase-apply")).expect("folder");
    fs::write(state.join("rebase-apply/next"), "1").expect("file");
    fs::write(state.join("index.lock"), "").expect("file");
    fs::create_dir(desk.klab().join("work/linux/apply/mm")).expect("folder");
    fs::write(desk.klab().join("work/linux/apply/mm/a.c"), "half").expect("file");
    assert_eq!(apply(&mut desk, &tree, &start, &mails), good);
    fs::remove_dir_all(desk.klab().join("work/linux/apply")).expect("removed");
    assert_eq!(apply(&mut desk, &tree, &start, &mails), good);
}
