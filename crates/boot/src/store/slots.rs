//! Slots on the disk: reading them, and making room by removing the oldest.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{IMAGE, INITRD, KernelStore};
use crate::{BootError, Installed, files, identity};

pub(super) const RECORD: &str = "slot.json";
/// Start of the name of a slot that is not whole.
pub(super) const UNFINISHED: &str = ".new-";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) installed: Installed,
    /// Grows with every installation; clocks of boards are not to be trusted.
    pub(super) generation: u64,
}

impl KernelStore {
    pub(super) fn slots(&self) -> Vec<Slot> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut slots: Vec<Slot> = entries
            .filter_map(|e| self.read_slot(e.file_name().to_str()?))
            .collect();
        slots.sort_by_key(|slot| slot.generation);
        slots
    }

    /// A whole slot, with paths as they are now.
    pub(super) fn read_slot(&self, name: &str) -> Option<Slot> {
        let folder = self.folder.join(name);
        let bytes = fs::read(folder.join(RECORD)).ok()?;
        let mut slot: Slot = serde_json::from_slice(&bytes).ok()?;
        let installed = &mut slot.installed;
        installed.image = folder.join(IMAGE);
        installed.initrd = installed.initrd.is_some().then(|| folder.join(INITRD));
        (installed.slot == name).then_some(slot)
    }

    /// Removes what an interrupted installation left.
    pub(super) fn clean(&self) -> Result<(), BootError> {
        files::remove(&self.modules.temporary())?;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes a slot; its record first, so that it never looks whole.
    pub(super) fn forget(&self, slot: &str, release: &str) -> Result<(), BootError> {
        let folder = self.folder.join(slot);
        files::remove(&folder.join(RECORD))?;
        files::remove(&folder)?;
        self.modules.remove(release, slot)
    }

    /// Removes the oldest slots until `keep` are left.
    pub(super) fn prune(&self, keep: usize) -> Result<(), BootError> {
        while self.slots().len() > keep {
            if !self.prune_one()? {
                break;
            }
        }
        Ok(())
    }

    /// Removes the oldest slot that does not run; `false` if there is none.
    fn prune_one(&self) -> Result<bool, BootError> {
        let running = identity::running(&self.sysroot)
            .ok()
            .map(|running| running.release);
        let oldest = self
            .slots()
            .into_iter()
            .map(|slot| slot.installed)
            .find(|installed| Some(&installed.release) != running.as_ref());
        match oldest {
            Some(installed) => self
                .forget(&installed.slot, &installed.release)
                .map(|()| true),
            None => Ok(false),
        }
    }

    pub(super) fn make_room(&self, path: &Path, needed: u64) -> Result<(), BootError> {
        loop {
            match files::require_free(path, needed) {
                Err(full @ BootError::DiskFull { .. }) => {
                    if !self.prune_one()? {
                        return Err(full);
                    }
                }
                other => return other,
            }
        }
    }
}
