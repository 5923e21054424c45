//! The work folder: images, packages and boards, all below one folder of the caller's choice.

use std::path::{Path, PathBuf};

use crate::board::{BoardDir, BoardName, BoardSpec};
use crate::{Accel, AgentFiles, BaseImage, Error, Machine, Recipe, Result, accel, apt, image};

/// A work folder.
///
/// | below it | what |
/// |---|---|
/// | `images/<digest>/` | base images |
/// | `packages/` | downloaded kernel packages |
/// | `boards/<name>/` | one folder per board |
/// | `accel.json` | what the last probe for KVM found |
#[derive(Debug, Clone)]
pub struct Workdir {
    root: PathBuf,
}

impl Workdir {
    /// Opens the folder and makes it if it is not there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be made.
    pub fn new(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        std::fs::create_dir_all(root).map_err(Error::io("create", root))?;
        let root = root.canonicalize().map_err(Error::io("open", root))?;
        Ok(Self { root })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn boards(&self) -> PathBuf {
        self.root.join("boards")
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    /// The recipe's base image; built if there is none yet, which takes minutes and the network.
    ///
    /// # Errors
    /// [`Error::MissingTools`], [`Error::Range`], [`Error::Packages`] or what a tool reported.
    pub fn image(&self, recipe: &Recipe) -> Result<BaseImage> {
        image::find_or_build(&self.root.join("images"), &self.packages(), recipe)
    }

    /// Downloads a kernel package, see [`apt::fetch_debian_kernel`].
    ///
    /// # Errors
    /// Those of [`apt::fetch_debian_kernel`].
    pub fn kernel(&self, machine: Machine, package: &str, suite: &str) -> Result<PathBuf> {
        apt::fetch_debian_kernel(machine, package, suite, &self.packages())
    }

    /// How guests run fastest here. Probed by booting the image's kernel, at most once a day.
    ///
    /// # Errors
    /// [`Error::Io`] if the probe cannot write its files.
    pub fn accel(&self, image: &BaseImage) -> Result<Accel> {
        accel::cached(&self.root, image)
    }

    /// Makes a board: its own disk on top of the image, and a seed with the agent.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Range`], or a file operation's.
    pub fn create(
        &self,
        spec: &BoardSpec,
        image: &BaseImage,
        agent: &AgentFiles,
    ) -> Result<BoardDir> {
        BoardDir::create(&self.boards(), spec, image, agent)
    }

    /// Opens a board that was made before.
    ///
    /// # Errors
    /// [`Error::NoBoard`] or [`Error::BadBoard`].
    pub fn open(&self, name: &str) -> Result<BoardDir> {
        BoardDir::open(&self.boards(), &BoardName::new(name)?)
    }

    /// Names of all boards, sorted.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<BoardName>> {
        let boards = self.boards();
        let entries = match std::fs::read_dir(&boards) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &boards)(e)),
        };
        let names = entries
            .flatten()
            .filter(|e| e.path().join("board.json").is_file());
        let mut names: Vec<_> = names
            .filter_map(|e| BoardName::new(&e.file_name().to_string_lossy()).ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes a board with its disk, console log and agent state.
    ///
    /// # Errors
    /// [`Error::NoBoard`], or [`Error::Busy`] if it runs.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.open(name)?.remove()
    }
}
