//! A board at rest: its folder with disk, seed and logs.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::command::{run, tool};
use crate::recipe::in_range;
use crate::{
    Accel, AgentFiles, BaseImage, ConsoleFollower, Error, Machine, Result, VirtualBoard, qmp, seed,
};

/// File with the board's specification.
const SPEC: &str = "board.json";

/// A board's name: also its host name and the name of its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoardName(String);

impl BoardName {
    /// Takes 1 to 63 of `a-z`, `0-9` and `-`, starting with a letter.
    ///
    /// # Errors
    /// [`Error::Name`].
    pub fn new(name: &str) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
        if starts && name.len() <= 63 && name.chars().all(plain) {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::Name {
            name: name.to_owned(),
        })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for BoardName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::new(&name)
    }
}

impl From<BoardName> for String {
    fn from(name: BoardName) -> Self {
        name.0
    }
}

/// What a board is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardSpec {
    /// Its name.
    pub name: BoardName,
    /// Memory in MiB, 256 to 65536.
    pub memory_mib: u32,
    /// Processors, 1 to 64.
    pub cpus: u32,
}

impl BoardSpec {
    /// A board with 1024 MiB and 2 processors.
    ///
    /// # Errors
    /// [`Error::Name`].
    pub fn new(name: &str) -> Result<Self> {
        Ok(Self {
            name: BoardName::new(name)?,
            memory_mib: 1024,
            cpus: 2,
        })
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Range`] names the field and the range.
    pub fn validate(&self) -> Result<()> {
        in_range("memory_mib", self.memory_mib, 256..=65536, "256 to 65536")?;
        in_range("cpus", self.cpus, 1..=64, "1 to 64")
    }
}

/// What is stored of a board.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    spec: BoardSpec,
    /// The machine that its base image is for.
    #[serde(default)]
    machine: Machine,
    /// Digest of the base image its disk is backed by.
    image: String,
}

/// A board's folder.
///
/// | file | what |
/// |---|---|
/// | `board.json` | the specification |
/// | `disk.qcow2` | its disk, backed by the base image |
/// | `seed.tar` | the agent, see [`AgentFiles`] |
/// | `console.log` | all that its serial console ever printed |
/// | `qemu.log` | QEMU's own messages since the last start |
/// | `qemu.pid`, `qmp.sock`, `lock` | of a running board |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardDir {
    dir: PathBuf,
    spec: BoardSpec,
    machine: Machine,
    image: String,
}

impl BoardDir {
    pub(crate) fn create(
        boards: &Path,
        spec: &BoardSpec,
        image: &BaseImage,
        agent: &AgentFiles,
    ) -> Result<Self> {
        spec.validate()?;
        let dir = boards.join(spec.name.as_str());
        std::fs::create_dir_all(boards).map_err(Error::io("create", boards))?;
        match std::fs::create_dir(&dir) {
            Ok(()) => {}
            // A folder without a specification is what an interrupted creation left.
            Err(_) if dir.is_dir() && !dir.join(SPEC).exists() => {}
            Err(_) if dir.is_dir() => {
                return Err(Error::Exists {
                    name: spec.name.to_string(),
                    path: dir,
                });
            }
            Err(e) => return Err(Error::io("create", &dir)(e)),
        }
        let board = Self {
            dir,
            spec: spec.clone(),
            machine: image.machine(),
            image: image.digest().to_owned(),
        };
        seed::write(agent, spec.name.as_str(), &board.file("seed.tar"))?;
        // Relative, so that the work folder can be moved as a whole.
        let backing = format!("../../images/{}/disk.qcow2", image.digest());
        let mut make = tool("qemu-img");
        make.current_dir(&board.dir)
            .args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"]);
        run(make.arg(backing).arg("disk.qcow2"))?;
        let stored = Stored {
            spec: spec.clone(),
            machine: board.machine,
            image: board.image.clone(),
        };
        let path = board.file(SPEC);
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|e| Error::io("write", &path)(e.into()))?;
        std::fs::write(&path, text).map_err(Error::io("write", &path))?;
        Ok(board)
    }

    pub(crate) fn open(boards: &Path, name: &BoardName) -> Result<Self> {
        let dir = boards.join(name.as_str());
        let path = dir.join(SPEC);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoBoard {
                    name: name.to_string(),
                    path: boards.to_owned(),
                });
            }
            Err(e) => return Err(Error::io("read", &path)(e)),
        };
        let stored: Stored = serde_json::from_str(&text).map_err(|e| Error::BadBoard {
            path: path.clone(),
            problem: e.to_string(),
        })?;
        if stored.spec.name != *name {
            let problem = format!("it is the specification of {}", stored.spec.name);
            return Err(Error::BadBoard { path, problem });
        }
        Ok(Self {
            dir,
            spec: stored.spec,
            machine: stored.machine,
            image: stored.image,
        })
    }

    /// The board's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Its specification.
    #[must_use]
    pub fn spec(&self) -> &BoardSpec {
        &self.spec
    }

    /// The machine that it is.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Digest of the base image below its disk.
    #[must_use]
    pub fn image_digest(&self) -> &str {
        &self.image
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The log of everything the serial console printed, over all starts.
    #[must_use]
    pub fn console_log(&self) -> PathBuf {
        self.file("console.log")
    }

    /// Follows the console from what is printed from now on.
    #[must_use]
    pub fn follow_console(&self) -> ConsoleFollower {
        let path = self.console_log();
        let end = std::fs::metadata(&path).map_or(0, |m| m.len());
        ConsoleFollower::new(path, end)
    }

    /// Gives the board another agent, taken over at its next power-on.
    ///
    /// # Errors
    /// [`Error::Io`] if the agent cannot be read or the seed not written.
    pub fn set_agent(&self, agent: &AgentFiles) -> Result<()> {
        seed::write(agent, self.spec.name.as_str(), &self.file("seed.tar"))
    }

    /// Switches the board on. It is switched off when the handle is dropped or this process ends.
    ///
    /// # Errors
    /// [`Error::Busy`] if it runs already; [`Error::Start`] if QEMU ended at once.
    pub fn start(&self, accel: &Accel) -> Result<VirtualBoard> {
        VirtualBoard::start(self.clone(), accel)
    }

    /// Whether the board runs, in this process or another.
    ///
    /// # Errors
    /// [`Error::Io`] if the lock file cannot be opened.
    pub fn is_running(&self) -> Result<bool> {
        match self.lock() {
            Ok(_) => Ok(false),
            Err(Error::Busy { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Presses the reset button of a running board, whichever process started it.
    ///
    /// # Errors
    /// [`Error::Monitor`] if no QEMU answers.
    pub fn reset(&self) -> Result<()> {
        self.monitor("system_reset")
    }

    /// Sends one monitor command.
    pub(crate) fn monitor(&self, command: &str) -> Result<()> {
        qmp::execute(&self.dir, command).map_err(|e| Error::Monitor {
            name: self.spec.name.to_string(),
            problem: format!("{command}: {e}"),
        })
    }

    /// Takes the lock that lets one QEMU use the disk.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.file("lock");
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy {
                name: self.spec.name.to_string(),
                path,
            }),
            Err(e) => Err(Error::io("lock", &path)(e.into())),
        }
    }

    pub(crate) fn remove(self) -> Result<()> {
        let _held = self.lock()?;
        std::fs::remove_dir_all(&self.dir).map_err(Error::io("remove", &self.dir))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_host_names() {
        for good in ["a", "vb1", "rt-board-2"] {
            assert_eq!(BoardName::new(good).expect(good).as_str(), good);
        }
        for bad in [
            "",
            "1a",
            "-a",
            "A",
            "a/b",
            "a.b",
            "a b",
            "../x",
            &"a".repeat(64),
        ] {
            assert!(BoardName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_stored_name_is_checked_when_read() {
        let text = r#"{"name": "../x", "memory_mib": 1024, "cpus": 2}"#;
        assert!(serde_json::from_str::<BoardSpec>(text).is_err());
    }

    #[test]
    fn boards_that_are_not_there_or_broken_say_so() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let name = BoardName::new("vb1").expect("valid");
        assert!(matches!(
            BoardDir::open(dir.path(), &name),
            Err(Error::NoBoard { .. })
        ));
        std::fs::create_dir(dir.path().join("vb1")).expect("folder");
        std::fs::write(dir.path().join("vb1/board.json"), "{}").expect("write");
        let error = BoardDir::open(dir.path(), &name)
            .expect_err("broken")
            .to_string();
        assert!(error.contains("board.json: missing field"), "{error}");
    }

    #[test]
    fn the_lock_is_for_one() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let spec = BoardSpec::new("vb1").expect("valid");
        let board = BoardDir {
            dir: dir.path().to_owned(),
            spec,
            machine: Machine::X86_64,
            image: String::new(),
        };
        let held = board.lock().expect("free");
        assert!(board.is_running().expect("known"));
        assert!(matches!(board.lock(), Err(Error::Busy { .. })));
        drop(held);
        assert!(!board.is_running().expect("known"));
    }

    proptest! {
        #[test]
        fn names_never_leave_the_folder(name in ".{0,70}") {
            if let Ok(name) = BoardName::new(&name) {
                prop_assert_eq!(Path::new(name.as_str()).components().count(), 1);
                prop_assert!(!name.as_str().contains('.'));
            }
        }
    }
}
