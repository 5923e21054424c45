//! Kernel trees by name: bare mirrors below klab's own folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use klab_model::TreeName;

use crate::git::Git;
use crate::lock::Lock;
use crate::{BuildError, Commit, ObjectId, Stage, TreeSource, Watcher, files};

/// What a mirror takes over: branches, tags, what the source itself follows, and where its
/// work tree stands, which need not be on any branch. Stashes and the like stay where they are.
const REFS: [&str; 4] = [
    "+refs/heads/*:refs/heads/*",
    "+refs/tags/*:refs/tags/*",
    "+refs/remotes/*:refs/remotes/*",
    "+HEAD:refs/klab/HEAD",
];

/// The trees of a folder.
#[derive(Debug, Clone)]
pub struct Trees {
    folder: PathBuf,
    git: Git,
}

/// One tree: a bare repository that only klab writes to.
#[derive(Debug, Clone)]
pub struct Tree {
    name: TreeName,
    repository: PathBuf,
    /// Work trees of this tree.
    work: PathBuf,
    git: Git,
}

impl Trees {
    /// The trees below `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// [`BuildError::Folder`] for a path that `make` could not build below, else those of
    /// making folders.
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        files::make_folder(folder)?;
        let folder = folder
            .canonicalize()
            .map_err(BuildError::io("find", folder))?;
        // The kernel's own Makefile refuses blanks and colons, and so do lists of folders.
        let text = folder.to_string_lossy();
        if text.contains(|c: char| c.is_whitespace() || c == ':') || folder.to_str().is_none() {
            return Err(BuildError::Folder { path: folder });
        }
        files::make_folder(&folder.join("trees"))?;
        let git = Git::new(&folder)?;
        Ok(Self { folder, git })
    }

    /// Takes a tree in under a name. Nothing happens if it is there already from this source.
    ///
    /// The objects of a repository on the same file system become hard links, those of one on
    /// another file system are read where they are. The source's work tree and its
    /// configuration are not touched.
    ///
    /// # Errors
    /// [`BuildError::TreeTaken`] if the name stands for another source, and git's own.
    pub fn add(
        &self,
        name: &TreeName,
        source: &TreeSource,
        watcher: &mut Watcher<'_>,
    ) -> Result<Tree, BuildError> {
        let url = source.for_git()?;
        let lock = self.folder.join("trees").join(format!("{name}.lock"));
        let _lock = Lock::take(&lock, &format!("tree {name}"), watcher)?;
        let tree = self.unchecked(name);
        if tree.exists() {
            let known = tree.source(watcher)?;
            return if known == url {
                Ok(tree)
            } else {
                Err(BuildError::TreeTaken {
                    name: name.clone(),
                    source_now: known,
                })
            };
        }
        watcher.stage(Stage::Fetching)?;
        let new = tree.repository.with_extension("new");
        files::remove(&new)?;
        let folder = self.folder.join("trees");
        let mut args = vec!["clone", "--bare", "--template=", "--progress"];
        args.extend(source.sharing(&folder));
        let mut args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
        args.extend([OsStr::new("--"), OsStr::new(&url), new.as_os_str()]);
        self.git.transfer(&folder, &args, watcher)?;
        self.set_refs(&new, watcher)?;
        let fresh = Tree {
            repository: new.clone(),
            ..tree.clone()
        };
        fresh.fetch_refs(watcher)?;
        std::fs::rename(&new, &tree.repository)
            .map_err(BuildError::io("rename", &tree.repository))?;
        Ok(tree)
    }

    fn set_refs(&self, repository: &Path, watcher: &Watcher<'_>) -> Result<(), BuildError> {
        for (n, refs) in REFS.iter().enumerate() {
            let how = if n == 0 { "--replace-all" } else { "--add" };
            let args = ["config", how, "remote.origin.fetch", refs];
            self.git.ok(repository, &args, watcher.cancel())?;
        }
        Ok(())
    }

    /// The tree of that name.
    ///
    /// # Errors
    /// [`BuildError::NoTree`] with the names that there are.
    pub fn tree(&self, name: &TreeName) -> Result<Tree, BuildError> {
        let tree = self.unchecked(name);
        if tree.exists() {
            Ok(tree)
        } else {
            Err(BuildError::NoTree {
                name: name.clone(),
                known: self.list()?,
            })
        }
    }

    /// The names of all trees, sorted.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<TreeName>, BuildError> {
        let folder = self.folder.join("trees");
        let read = BuildError::io("read the folder", &folder);
        let entries = std::fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut names: Vec<TreeName> = entries
            .map_err(read)?
            .iter()
            .filter_map(|entry| {
                let name = entry.file_name();
                TreeName::parse(name.to_str()?.strip_suffix(".git")?).ok()
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// Forgets a tree with its work trees and results; its source is not touched. A tree that
    /// is not there is no error.
    ///
    /// # Errors
    /// When its folders cannot be removed.
    pub fn remove(&self, name: &TreeName) -> Result<(), BuildError> {
        let tree = self.unchecked(name);
        files::remove(&tree.work)?;
        files::remove(&tree.repository)
    }

    /// Where klab keeps everything for building.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn unchecked(&self, name: &TreeName) -> Tree {
        Tree {
            name: name.clone(),
            repository: self.folder.join("trees").join(format!("{name}.git")),
            work: self.folder.join("work").join(name.as_str()),
            git: self.git.clone(),
        }
    }
}

impl Tree {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TreeName {
        &self.name
    }

    /// The bare repository, for reading.
    #[must_use]
    pub fn repository(&self) -> &Path {
        &self.repository
    }

    /// Gets what is new at the source, and forgets branches that are gone there.
    ///
    /// # Errors
    /// Those of git: the source is gone, or does not answer.
    pub fn fetch(&self, watcher: &mut Watcher<'_>) -> Result<(), BuildError> {
        watcher.stage(Stage::Fetching)?;
        let lock = self.repository.with_extension("lock");
        let _lock = Lock::take(&lock, &format!("tree {}", self.name), watcher)?;
        self.fetch_refs(watcher)
    }

    fn fetch_refs(&self, watcher: &mut Watcher<'_>) -> Result<(), BuildError> {
        let args = "fetch --prune --force --no-write-fetch-head --progress origin";
        let args: Vec<&OsStr> = args.split(' ').map(OsStr::new).collect();
        self.git.transfer(&self.repository, &args, watcher)
    }

    /// The commit that a branch, tag, commit id or expression like `v6.1~2` stands for. `HEAD`
    /// is where the source's work tree stood at the last fetch.
    ///
    /// # Errors
    /// [`BuildError::NoCommit`] if there is none, [`BuildError::Ambiguous`] for a name that a
    /// tag and a branch share with different commits: git would take the tag.
    pub fn resolve(&self, revision: &str, watcher: &Watcher<'_>) -> Result<Commit, BuildError> {
        let none = || BuildError::NoCommit {
            tree: self.name.clone(),
            revision: revision.chars().take(200).collect(),
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-/~^@{}+".contains(c);
        if revision.is_empty() || revision.starts_with('-') || !revision.chars().all(legal) {
            return Err(none());
        }
        let revision = match revision.strip_prefix("HEAD") {
            Some(rest) if rest.is_empty() || rest.starts_with(['~', '^']) => {
                format!("refs/klab/HEAD{rest}")
            }
            _ => revision.to_owned(),
        };
        self.is_clear(&revision, watcher)?;
        let find = |what: &str| {
            let object = format!("{revision}^{{{what}}}");
            let args = [
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &object,
            ];
            let args = args.map(OsStr::new);
            let output = self
                .git
                .attempt(&self.repository, &args, watcher.cancel())?;
            let id = output.ok().map_err(|_| none())?;
            Ok::<_, BuildError>(ObjectId::parse(id.trim())?)
        };
        Ok(Commit {
            id: find("commit")?,
            tree: find("tree")?,
        })
    }

    /// Refuses a name that several refs of different commits have.
    fn is_clear(&self, name: &str, watcher: &Watcher<'_>) -> Result<(), BuildError> {
        let names = ["tags", "heads", "remotes"].map(|kind| format!("refs/{kind}/{name}"));
        let mut args = vec![
            "for-each-ref",
            "--format=%(refname) %(objectname) %(*objectname)",
        ];
        args.extend(names.iter().map(String::as_str));
        let list = self.git.ok(&self.repository, &args, watcher.cancel())?;
        // A pattern also stands for everything below it.
        let found: Vec<(&str, &str)> = list
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let reference = words.next()?;
                // An annotated tag stands for what it points to.
                let commit = words.rfind(|word| !word.is_empty())?;
                let same = names.iter().any(|name| name == reference);
                same.then_some((reference, commit))
            })
            .collect();
        if found.iter().all(|(_, commit)| *commit == found[0].1) {
            return Ok(());
        }
        let shown = |(name, commit): &(&str, &str)| format!("{name} ({commit:.12})");
        Err(BuildError::Ambiguous {
            tree: self.name.clone(),
            revision: name.to_owned(),
            references: found.iter().map(shown).collect(),
        })
    }

    fn exists(&self) -> bool {
        self.repository.join("HEAD").is_file()
    }

    fn source(&self, watcher: &Watcher<'_>) -> Result<String, BuildError> {
        let args = ["config", "remote.origin.url"];
        self.git.ok(&self.repository, &args, watcher.cancel())
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Makes `folder` a work tree without files, unless it is one already.
    pub(crate) fn work_tree(
        &self,
        folder: &Path,
        at: &ObjectId,
        cancel: &crate::Cancel,
    ) -> Result<(), BuildError> {
        let is_ours = || {
            let link = std::fs::read_to_string(folder.join(".git")).ok()?;
            let place = PathBuf::from(link.strip_prefix("gitdir: ")?.trim_end());
            Some(place.starts_with(&self.repository) && place.join("HEAD").is_file())
        };
        if is_ours() == Some(true) {
            return Ok(());
        }
        files::remove(folder)?;
        let above = folder.parent().unwrap_or(&self.work);
        files::make_folder(above)?;
        let args = ["worktree", "prune", "--expire=now"];
        self.git.ok(&self.repository, &args, cancel)?;
        let add = [
            "worktree",
            "add",
            "--quiet",
            "--force",
            "--detach",
            "--no-checkout",
        ];
        let mut args: Vec<&OsStr> = add.iter().map(OsStr::new).collect();
        args.extend([folder.as_os_str(), OsStr::new(at.as_str())]);
        self.git.attempt(&self.repository, &args, cancel)?.ok()?;
        Ok(())
    }
}
