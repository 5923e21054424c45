//! A lane: one work tree of a tree with everything that is built from it.
//!
//! ```text
//! work/TREE/LANE/lock          held by who builds, and by make and its children
//!                src/          the work tree; moved by checkout, which writes only what differs
//!                kconfig/      where configurations are made
//!                build/NAME/   one folder of results per configuration and architecture, kept
//! ```
//!
//! `make` compares times of files. Moving one work tree from variant to variant changes the
//! times of the files that differ and of no others, so that a variant costs what its patches
//! touch.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use klab_model::InvalidText;

use crate::lock::Lock;
use crate::orphans::Owner;
use crate::{BuildError, Cancel, Commit, Stage, Tree, Watcher, files};

/// The name of a lane. Builds of one lane follow each other; more lanes build side by side, and
/// each pays for its own first build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneName(String);

impl LaneName {
    /// Reads a name; the rules are those of trees.
    ///
    /// # Errors
    /// [`InvalidText`] that states the rule.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let name = klab_model::TreeName::parse(text)?;
        Ok(Self(name.to_string()))
    }
}

impl Default for LaneName {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

/// A lane that this process holds.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    tree: &'a Tree,
    folder: PathBuf,
    lock: Lock,
    owner: Owner,
}

impl<'a> Lane<'a> {
    /// Waits for the lane and takes it. A build whose starter died is ended.
    pub(crate) fn take(
        tree: &'a Tree,
        name: &LaneName,
        watcher: &mut Watcher<'_>,
    ) -> Result<Self, BuildError> {
        // "apply" is the work tree of patches.
        let folder = tree.work().join(format!("lane-{}", name.0));
        files::make_folder(&folder)?;
        let owner = Owner::at(folder.join("owner.json"));
        let what = format!("another build of tree {}", tree.name());
        let mut waiting = |watcher: &mut Watcher<'_>| {
            let killed = owner.end_orphans();
            if killed > 0 {
                watcher.note(format!(
                    "ended {killed} process(es) of a build whose starter is gone"
                ));
            }
        };
        let lock = Lock::take_calling(&folder.join("lock"), &what, watcher, &mut waiting)?;
        owner.clear()?;
        Ok(Self {
            tree,
            folder,
            lock,
            owner,
        })
    }

    pub(crate) fn src(&self) -> PathBuf {
        self.folder.join("src")
    }

    pub(crate) fn kconfig(&self) -> PathBuf {
        self.folder.join("kconfig")
    }

    pub(crate) fn stage(&self) -> PathBuf {
        self.folder.join("stage")
    }

    pub(crate) fn builds(&self) -> PathBuf {
        self.folder.join("build")
    }

    pub(crate) fn lock(&self) -> &std::fs::File {
        self.lock.file()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Moves the work tree to a commit. Files that are the same in both keep their times; files
    /// that belong to neither are removed.
    pub(crate) fn check_out(
        &self,
        commit: &Commit,
        watcher: &mut Watcher<'_>,
    ) -> Result<(), BuildError> {
        watcher.stage(Stage::CheckingOut)?;
        let (src, cancel) = (self.src(), watcher.cancel());
        self.tree.work_tree(&src, &commit.id, cancel)?;
        files::remove(&self.git_dir(&src, cancel)?.join("index.lock"))?;
        let git = self.tree.git();
        let id = commit.id.as_str();
        let checkout = ["checkout", "--quiet", "--force", "--detach", id];
        let args: Vec<&OsStr> = checkout.iter().map(OsStr::new).collect();
        git.transfer(&src, &args, watcher)?;
        // Ignored files too: a stray `localversion` would end up in the release.
        git.ok(&src, &["clean", "-ffdxq"], cancel).map(drop)
    }

    fn git_dir(&self, src: &Path, cancel: &Cancel) -> Result<PathBuf, BuildError> {
        let args = ["rev-parse", "--absolute-git-dir"];
        self.tree.git().ok(src, &args, cancel).map(PathBuf::from)
    }

    /// Paths that differ between two trees of files, if both are known.
    pub(crate) fn changed(
        &self,
        from: &str,
        to: &Commit,
        cancel: &Cancel,
    ) -> Result<Option<Vec<String>>, BuildError> {
        let to = to.tree.as_str();
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            from,
            to,
        ];
        let args = args.map(OsStr::new);
        let output = self.tree.git().attempt(&self.src(), &args, cancel)?;
        let names = |text: String| {
            text.split('\0')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        Ok(output.ok().ok().map(names))
    }
}
