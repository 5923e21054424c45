//! Modules of candidates, beside those of the board's own kernels.
//!
//! ```text
//! /lib/modules/.klab/SLOT/       the modules of one candidate
//! /lib/modules/RELEASE           a link to the slot that boots next, or the board's own folder
//! ```
//!
//! Two candidates often have the same release (a series and its base). Each keeps its own
//! folder, and changing the link takes one step. A folder of the board's own kernel is never
//! touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::{BootError, files};

/// Folder of candidates' modules below `lib/modules`.
const OWN: &str = ".klab";

/// `lib/modules` below a sysroot.
#[derive(Debug, Clone)]
pub(crate) struct Modules {
    base: PathBuf,
}

/// What a release's folder in `lib/modules` is.
enum Place {
    Free,
    /// A link of ours, to the slot.
    Ours(PathBuf),
    /// The board's.
    Foreign,
}

impl Modules {
    pub(crate) fn new(sysroot: &Path) -> Self {
        Self {
            base: sysroot.join("lib/modules"),
        }
    }

    /// The folder that holds all modules; the temporary folder is on its file system.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Where a package is unpacked.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.base.join(OWN).join("new")
    }

    /// The modules of a slot.
    pub(crate) fn of(&self, slot: &str) -> PathBuf {
        self.base.join(OWN).join(slot)
    }

    /// Takes the unpacked modules of a slot over. A kernel without modules gets an empty
    /// folder, so that makers of initrds have something to look into.
    pub(crate) fn adopt(&self, unpacked: &Path, slot: &str) -> Result<(), BootError> {
        let place = self.of(slot);
        files::remove(&place)?;
        if unpacked.is_dir() {
            files::rename(unpacked, &place)
        } else {
            fs::create_dir_all(&place).map_err(BootError::io("make", place))
        }
    }

    /// Fails if the slot's modules cannot stand in for a folder of the board's own. `true` if
    /// such a folder is there and agrees in every file that both have.
    pub(crate) fn shared(&self, release: &str, slot: &str) -> Result<bool, BootError> {
        let place = self.base.join(release);
        if !matches!(self.place(release), Place::Foreign) {
            return Ok(false);
        }
        let own = self.of(slot);
        for file in files::tree(&own)? {
            // Indexes are made by depmod on each machine.
            let index = file.parent() == Some(Path::new(""));
            let other = place.join(&file);
            if !index && other.is_file() && !files::same(&own.join(&file), &other)? {
                let example = file.display().to_string();
                return Err(BootError::ReleaseTaken {
                    path: place,
                    example,
                });
            }
        }
        Ok(true)
    }

    /// Makes the release's folder the one of the slot, unless it is the board's own.
    pub(crate) fn select(&self, release: &str, slot: &str) -> Result<(), BootError> {
        let link = self.base.join(release);
        let has_files = fs::read_dir(self.of(slot)).is_ok_and(|mut dir| dir.next().is_some());
        let target = Path::new(OWN).join(slot);
        match self.place(release) {
            Place::Foreign => Ok(()),
            Place::Ours(now) if has_files && now == target => Ok(()),
            Place::Ours(_) if !has_files => files::remove(&link),
            Place::Free if !has_files => Ok(()),
            Place::Free | Place::Ours(_) => {
                let new = self.base.join(OWN).join("link");
                files::remove(&new)?;
                symlink(&target, &new).map_err(BootError::io("make the link", &new))?;
                files::rename(&new, &link)
            }
        }
    }

    /// Removes the modules of a slot and a link to them.
    pub(crate) fn remove(&self, release: &str, slot: &str) -> Result<(), BootError> {
        if let Place::Ours(target) = self.place(release)
            && target == Path::new(OWN).join(slot)
        {
            files::remove(&self.base.join(release))?;
        }
        files::remove(&self.of(slot))
    }

    fn place(&self, release: &str) -> Place {
        let path = self.base.join(release);
        if path.symlink_metadata().is_err() {
            return Place::Free;
        }
        match fs::read_link(&path) {
            Ok(target) if target.starts_with(OWN) => Place::Ours(target),
            _ => Place::Foreign,
        }
    }
}
