//! From a package to a slot that is whole.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use klab_kernel::{CANONICAL_IMAGE, ImageHeader, Limits, Manifest, unpack_canonical};
use klab_model::{Digest, OrderKernel};

use super::slots::{RECORD, Slot, UNFINISHED};
use super::{IMAGE, INITRD, KernelStore};
use crate::{BootError, Installed, command, files};

impl KernelStore {
    pub(super) fn unpack_and_place(
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
pub(super) fn check_image(path: &Path, expected: Digest) -> Result<(), BootError> {
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
