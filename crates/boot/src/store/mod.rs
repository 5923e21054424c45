//! The kernels that are installed on a board, by digest.
//!
//! ```text
//! BOOT FOLDER/SLOT/{vmlinuz,initrd,slot.json}     SLOT: first 12 digits of the digest
//! ```
//!
//! A slot appears by one rename after everything in it is on the disk, so a slot with a
//! `slot.json` is whole. Older slots make room for newer ones; the running kernel's never goes.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::OrderKernel;

use crate::modules::Modules;
use crate::{BootError, Installed, command, files};
use place::check_image;

mod place;
mod slots;

const IMAGE: &str = "vmlinuz";
const INITRD: &str = "initrd";

/// How much larger than its package a kernel may become: module archives compress to a third
/// or a quarter.
const GROWTH: u64 = 4;
/// Bytes that are kept free beside a kernel.
const RESERVE: u64 = 16 << 20;

/// Installed kernels of one board.
#[derive(Debug, Clone)]
pub struct KernelStore {
    sysroot: PathBuf,
    folder: PathBuf,
    modules: Modules,
    mkinitrd: Vec<String>,
    keep: usize,
}

impl KernelStore {
    /// A store in `folder`, a path as the board sees it.
    ///
    /// `mkinitrd` is called with RELEASE MODULES_DIR OUT; empty means no initrd. `keep` is how
    /// many kernels stay installed, at least 1.
    #[must_use]
    pub fn new(sysroot: &Path, folder: &Path, mkinitrd: &[String], keep: usize) -> Self {
        Self {
            sysroot: sysroot.to_owned(),
            folder: below(sysroot, folder),
            modules: Modules::new(sysroot),
            mkinitrd: mkinitrd.to_vec(),
            keep: keep.max(1),
        }
    }

    /// The folder of the slots.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The sysroot.
    #[must_use]
    pub fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// What is missing before a kernel can be installed.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for folder in [self.folder.as_path(), self.modules.base()] {
            let existing = folder
                .ancestors()
                .find(|p| p.exists())
                .unwrap_or(Path::new("/"));
            if files::read_only(existing) {
                missing.push(format!(
                    "{} is on a read-only file system: mount it read-write, check the disk",
                    folder.display()
                ));
            } else if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_err() {
                missing.push(format!(
                    "{} cannot be written: run as root",
                    folder.display()
                ));
            }
        }
        if let Some(program) = self.mkinitrd.first()
            && command::find(program, &self.sysroot).is_none()
        {
            missing.push(format!(
                "the maker of initrds {program} is not there: install it"
            ));
        }
        missing
    }

    /// Installs a canonical package; the same kernel installed before costs one look.
    ///
    /// # Errors
    /// [`BootError`]; no slot is left half-made.
    pub fn install(&self, kernel: &OrderKernel, package: &Path) -> Result<Installed, BootError> {
        let slot = kernel.digest.short();
        if let Some(installed) = self.cached(kernel, &slot) {
            self.modules.select(&kernel.release, &slot)?;
            return Ok(installed);
        }
        self.clean()?;
        self.forget(&slot, &kernel.release)?;
        self.prune(self.keep - 1)?;
        let room = kernel.size.saturating_mul(GROWTH).saturating_add(RESERVE);
        self.make_room(self.modules.base(), room)?;
        let done = self.unpack_and_place(kernel, package, &slot);
        self.clean()?;
        if done.is_err() {
            // What failed is told, not what tidying up after it might.
            let _ = self.forget(&slot, &kernel.release);
        }
        done
    }

    /// Looks once more at a kernel that is about to be booted, and puts its modules in place.
    ///
    /// # Errors
    /// [`BootError`] when the image is not the one that was installed.
    pub fn ready(&self, installed: &Installed) -> Result<(), BootError> {
        check_image(&installed.image, installed.image_digest)?;
        if let Some(initrd) = &installed.initrd {
            fs::metadata(initrd).map_err(BootError::io("find", initrd))?;
        }
        self.modules.select(&installed.release, &installed.slot)?;
        for folder in [self.folder.as_path(), self.modules.base()] {
            if folder.exists() {
                files::sync_fs(folder)?;
            }
        }
        Ok(())
    }

    /// The kernels that are installed, oldest first.
    #[must_use]
    pub fn installed(&self) -> Vec<Installed> {
        self.slots()
            .into_iter()
            .map(|slot| slot.installed)
            .collect()
    }

    /// The kernel, if it is installed and unharmed.
    fn cached(&self, kernel: &OrderKernel, slot: &str) -> Option<Installed> {
        let installed = self.read_slot(slot)?.installed;
        let same = installed.digest == kernel.digest && installed.release == kernel.release;
        let whole = check_image(&installed.image, kernel.image_digest).is_ok()
            && installed
                .initrd
                .as_ref()
                .is_none_or(|initrd| initrd.is_file())
            && installed.initrd.is_some() != self.mkinitrd.is_empty()
            && self.modules.of(slot).is_dir();
        (same && whole).then_some(installed)
    }
}

/// A path as the board sees it, below the sysroot.
pub(crate) fn below(sysroot: &Path, path: &Path) -> PathBuf {
    sysroot.join(path.strip_prefix("/").unwrap_or(path))
}
