//! A developer's repository, and klab's folder beside it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod small;

use std::path::{Path, PathBuf};
use std::process::Command;

use klab_build::{BuildError, BuildEvent, Cancel, Tree, TreeSource, Trees, Watcher};
use klab_model::TreeName;

/// A temporary folder with a developer's repository in it.
pub struct Desk {
    folder: tempfile::TempDir,
    pub cancel: Cancel,
    pub events: Vec<BuildEvent>,
}

impl Desk {
    /// A repository without commits.
    pub fn new() -> Self {
        let desk = Self {
            folder: tempfile::tempdir().expect("folder"),
            cancel: Cancel::new().expect("token"),
            events: Vec::new(),
        };
        std::fs::create_dir(desk.repo()).expect("folder");
        desk.git(&["init", "--quiet", "--initial-branch=master"]);
        desk
    }

    /// A repository with one commit of these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let desk = Self::new();
        desk.commit("first", files);
        desk
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn repo(&self) -> PathBuf {
        self.path().join("developer")
    }

    /// klab's folder.
    pub fn klab(&self) -> PathBuf {
        self.path().join("klab")
    }

    /// git as the developer calls it.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .to_owned()
    }

    pub fn try_git(&self, args: &[&str]) -> std::process::Output {
        let who = [
            ("GIT_AUTHOR_NAME", "Ada Developer"),
            ("GIT_AUTHOR_EMAIL", "ada@example.org"),
            ("GIT_COMMITTER_NAME", "Ada Developer"),
            ("GIT_COMMITTER_EMAIL", "ada@example.org"),
        ];
        Command::new("git")
            .args(args)
            .current_dir(self.repo())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("GIT_DIR")
            .env_remove("GIT_INDEX_FILE")
            .envs(who)
            .output()
            .expect("git starts")
    }

    /// Writes files into the developer's work tree.
    pub fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.repo().join(name);
            std::fs::create_dir_all(path.parent().expect("folder")).expect("folder");
            std::fs::write(path, text).expect("write");
        }
    }

    /// Commits these files; the commit's id.
    pub fn commit(&self, subject: &str, files: &[(&str, &str)]) -> String {
        self.write(files);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The mails of the commits in a range, oldest first.
    pub fn mails(&self, range: &str) -> Vec<Vec<u8>> {
        let out = self.path().join("mails");
        let _ = std::fs::remove_dir_all(&out);
        self.git(&[
            "format-patch",
            "--quiet",
            "-o",
            out.to_str().expect("text"),
            range,
        ]);
        let mut files: Vec<PathBuf> = std::fs::read_dir(&out)
            .expect("mails")
            .map(|entry| entry.expect("mail").path())
            .collect();
        files.sort();
        let read = |path: &PathBuf| std::fs::read(path).expect("mail");
        files.iter().map(read).collect()
    }

    pub fn trees(&self) -> Trees {
        Trees::open(&self.klab()).expect("opens")
    }

    /// The developer's repository as a tree of klab.
    pub fn tree(&mut self) -> Tree {
        self.add("linux").expect("is added")
    }

    pub fn add(&mut self, name: &str) -> Result<Tree, BuildError> {
        let source = TreeSource::Path(self.repo());
        let trees = self.trees();
        self.watched(|watcher| trees.add(&tree_name(name), &source, watcher))
    }

    /// Calls something that wants a watcher; events are kept.
    pub fn watched<T>(&mut self, call: impl FnOnce(&mut Watcher<'_>) -> T) -> T {
        let events = &mut self.events;
        let mut keep = |event| events.push(event);
        call(&mut Watcher::new(&self.cancel, &mut keep))
    }
}

pub fn tree_name(name: &str) -> TreeName {
    TreeName::parse(name).expect("a name")
}
