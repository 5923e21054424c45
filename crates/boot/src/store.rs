//! The kernels that are installed on a board, by digest.
//!
//! ```text
//! BOOT FOLDER/SLOT/{vmlinuz,initrd,slot.json}     SLOT: first 12 digits of the digest
//! ```
//!
//! A slot appears by one rename after everything in it is on the disk, so a slot with a
//! `slot.json` is whole. Older slots make room for newer ones; the running kernel's never goes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use klab_kernel::{CANONICAL_IMAGE, ImageHeader, Limits, Manifest, unpack_canonical};
use klab_model::{Digest, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::modules::Modules;
use crate::{BootError, Installed, command, files, identity};

const IMAGE: &str = "vmlinuz";
const INITRD: &str = "initrd";
const RECORD: &str = "slot.json";
/// Start of the name of a slot that is not whole.
const UNFINISHED: &str = ".new-";

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

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Slot {
    installed: Installed,
    /// Grows with every installation; clocks of boards are not to be trusted.
    generation: u64,
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

    fn slots(&self) -> Vec<Slot> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut slots: Vec<Slot> = entries
            .filter_map(|e| self.read_slot(e.file_name().to_str()?))
            .collect();
        slots.sort_by_key(|slot| slot.generation);
        slots
    }

    /// A whole slot, with paths as they are now.
    fn read_slot(&self, name: &str) -> Option<Slot> {
        let folder = self.folder.join(name);
        let bytes = fs::read(folder.join(RECORD)).ok()?;
        let mut slot: Slot = serde_json::from_slice(&bytes).ok()?;
        let installed = &mut slot.installed;
        installed.image = folder.join(IMAGE);
        installed.initrd = installed.initrd.is_some().then(|| folder.join(INITRD));
        (installed.slot == name).then_some(slot)
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

    fn unpack_and_place(
        &self,
        kernel: &OrderKernel,
        package: &Path,
        slot: &str,
    ) -> Result<Installed, BootError> {
        let temporary = self.modules.temporary();
        let manifest = unpack(package, &temporary, kernel)?;
        let mut notes = Vec::new();
        let modules = temporary.join(manifest.modules_folder());
        if modules.is_dir() && !modules.join("modules.dep").exists() {
            notes.extend(self.depmod(&temporary, &kernel.release));
        }
        self.modules.adopt(&modules, slot)?;
        if self.modules.shared(&kernel.release, slot)? {
            notes.push(format!(
                "the board has its own modules for {}: they agree and stay in place",
                kernel.release
            ));
        }
        let initrd = self.make_initrd(&temporary, kernel, slot)?;
        let installed = Installed {
            slot: slot.to_owned(),
            digest: kernel.digest,
            release: kernel.release.clone(),
            build_id: manifest.build_id,
            image_digest: kernel.image_digest,
            image: self.folder.join(slot).join(IMAGE),
            initrd: initrd
                .is_some()
                .then(|| self.folder.join(slot).join(INITRD)),
            notes,
        };
        self.place(
            &temporary.join(CANONICAL_IMAGE),
            initrd.as_deref(),
            &installed,
        )?;
        self.modules.select(&kernel.release, slot)?;
        Ok(installed)
    }

    /// Modules without an index cannot be loaded by name. A note when there is no depmod.
    fn depmod(&self, base: &Path, release: &str) -> Option<String> {
        let problem = match command::find("depmod", &self.sysroot) {
            Some(depmod) => {
                let words = [
                    &*depmod.to_string_lossy(),
                    "-b",
                    &*base.to_string_lossy(),
                    release,
                ];
                command::run(&words.map(str::to_owned)).err()?.to_string()
            }
            None => "depmod is not installed".to_owned(),
        };
        Some(format!("modules of {release} have no index: {problem}"))
    }

    fn make_initrd(
        &self,
        temporary: &Path,
        kernel: &OrderKernel,
        slot: &str,
    ) -> Result<Option<PathBuf>, BootError> {
        if self.mkinitrd.is_empty() {
            return Ok(None);
        }
        let out = temporary.join(INITRD);
        let modules = self.modules.of(slot);
        let mut words = self.mkinitrd.clone();
        words.push(kernel.release.clone());
        words.push(modules.to_string_lossy().into_owned());
        words.push(out.to_string_lossy().into_owned());
        command::run(&words)?;
        match fs::metadata(&out) {
            Ok(meta) if meta.len() > 0 => Ok(Some(out)),
            _ => Err(BootError::Command {
                command: words.join(" "),
                outcome: "ended well and left no initrd".to_owned(),
                stderr: None,
            }),
        }
    }

    /// Copies image and initrd into the boot folder and makes the slot appear.
    fn place(
        &self,
        image: &Path,
        initrd: Option<&Path>,
        installed: &Installed,
    ) -> Result<(), BootError> {
        let size = |path: &Path| {
            fs::metadata(path)
                .map(|m| m.len())
                .map_err(BootError::io("read", path))
        };
        let needed = size(image)? + initrd.map_or(Ok(0), size)? + (1 << 20);
        self.make_room(&self.folder, needed)?;
        let new = self.folder.join(format!("{UNFINISHED}{}", installed.slot));
        fs::create_dir_all(&new).map_err(BootError::io("make", &new))?;
        files::copy(image, &new.join(IMAGE))?;
        check_image(&new.join(IMAGE), installed.image_digest)?;
        if let Some(initrd) = initrd {
            files::copy(initrd, &new.join(INITRD))?;
        }
        let generation = self.slots().last().map_or(1, |slot| slot.generation + 1);
        let slot = Slot {
            installed: installed.clone(),
            generation,
        };
        let record = serde_json::to_vec_pretty(&slot)
            .expect("a slot has text keys and paths made of text, so it is always JSON");
        files::write_atomic(&new.join(RECORD), &record)?;
        files::sync_fs(&new)?;
        files::rename(&new, &self.folder.join(&installed.slot))
    }

    /// Removes what an interrupted installation left.
    fn clean(&self) -> Result<(), BootError> {
        files::remove(&self.modules.temporary())?;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes a slot; its record first, so that it never looks whole.
    fn forget(&self, slot: &str, release: &str) -> Result<(), BootError> {
        let folder = self.folder.join(slot);
        files::remove(&folder.join(RECORD))?;
        files::remove(&folder)?;
        self.modules.remove(release, slot)
    }

    /// Removes the oldest slots until `keep` are left.
    fn prune(&self, keep: usize) -> Result<(), BootError> {
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

    fn make_room(&self, path: &Path, needed: u64) -> Result<(), BootError> {
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

/// A path as the board sees it, below the sysroot.
pub(crate) fn below(sysroot: &Path, path: &Path) -> PathBuf {
    sysroot.join(path.strip_prefix("/").unwrap_or(path))
}

/// Unpacks and compares with the order, so that nothing else is ever booted.
fn unpack(package: &Path, dest: &Path, kernel: &OrderKernel) -> Result<Manifest, BootError> {
    let file = File::open(package).map_err(BootError::io("read", package))?;
    let unpacked =
        unpack_canonical(file, dest, &Limits::default()).map_err(|source| BootError::Package {
            path: package.to_owned(),
            source,
        })?;
    let digest = |what: &str, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(BootError::Digest {
            what: what.to_owned(),
            found,
            expected,
        })
    };
    digest("kernel package", unpacked.digest, kernel.digest)?;
    let manifest = unpacked.manifest;
    digest("boot image", manifest.image_digest, kernel.image_digest)?;
    if manifest.release.as_str() != kernel.release {
        let (found, expected) = (manifest.release.to_string(), kernel.release.clone());
        return Err(BootError::Release { found, expected });
    }
    if manifest.arch != kernel.arch {
        return Err(BootError::Arch {
            found: manifest.arch,
            expected: kernel.arch,
        });
    }
    Ok(manifest)
}

/// Reads an image back: the digest of the order, a header, and as long as the header says.
fn check_image(path: &Path, expected: Digest) -> Result<(), BootError> {
    let (found, len) = files::digest(path)?;
    if found != expected {
        let what = format!("boot image {}", path.display());
        return Err(BootError::Digest {
            what,
            found,
            expected,
        });
    }
    let head = files::head(path, ImageHeader::HEAD_BYTES)?;
    ImageHeader::parse(&head, len)
        .map(|_| ())
        .map_err(|source| BootError::Image {
            path: path.to_owned(),
            source,
        })
}
