//! Base images: built once per recipe, then shared by all boards as read-only backing disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::{Error, Machine, Recipe, Result, apt, disk, rootfs};

/// A built base image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
    dir: PathBuf,
    machine: Machine,
    digest: String,
    release: String,
}

impl BaseImage {
    /// The digest of the recipe it was built from.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The machine it is for.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Release of the known-good kernel, as `uname -r` prints it.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The disk, qcow2. Boards back their own disks by it: it must never be written.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.dir.join("disk.qcow2")
    }

    /// The known-good kernel image.
    #[must_use]
    pub fn vmlinuz(&self) -> PathBuf {
        self.dir.join("vmlinuz")
    }

    /// The known-good kernel's initrd.
    #[must_use]
    pub fn initrd(&self) -> PathBuf {
        self.dir.join("initrd")
    }

    /// The image in `dir`, if its build was finished.
    fn open(dir: PathBuf, machine: Machine, digest: String) -> Option<Self> {
        let release = std::fs::read_to_string(dir.join("release"))
            .ok()?
            .trim()
            .to_owned();
        let image = Self {
            dir,
            machine,
            digest,
            release,
        };
        let whole = [image.disk(), image.vmlinuz(), image.initrd()]
            .iter()
            .all(|f| f.is_file());
        (whole && !image.release.is_empty()).then_some(image)
    }
}

/// Finds or builds the recipe's image below `images`. A lock lets one process build it and the
/// others wait.
pub(crate) fn find_or_build(images: &Path, packages: &Path, recipe: &Recipe) -> Result<BaseImage> {
    recipe.validate()?;
    let digest = recipe.digest();
    let dir = images.join(&digest);
    if let Some(image) = BaseImage::open(dir.clone(), recipe.machine, digest.clone()) {
        return Ok(image);
    }
    crate::tools::check(recipe.machine)?;
    std::fs::create_dir_all(images).map_err(Error::io("create", images))?;
    let lock = images.join(format!("{digest}.lock"));
    let held = File::create(&lock).map_err(Error::io("create", &lock))?;
    flock(&held, FlockOperation::LockExclusive).map_err(|e| Error::io("lock", &lock)(e.into()))?;
    if let Some(image) = BaseImage::open(dir.clone(), recipe.machine, digest.clone()) {
        return Ok(image);
    }
    // What an interrupted build left is in the way and of no use.
    let part = images.join(format!("{digest}.part"));
    for old in [&part, &dir] {
        if old.exists() {
            std::fs::remove_dir_all(old).map_err(Error::io("remove", old))?;
        }
    }
    build(&part, packages, recipe)?;
    std::fs::rename(&part, &dir).map_err(Error::io("move", &part))?;
    BaseImage::open(dir.clone(), recipe.machine, digest).ok_or_else(|| Error::BadBoard {
        path: dir,
        problem: "the image is not whole after it was built".to_owned(),
    })
}

/// Builds the image into `part`.
fn build(part: &Path, packages: &Path, recipe: &Recipe) -> Result<()> {
    let scratch = part.join("scratch");
    std::fs::create_dir_all(&scratch).map_err(Error::io("create", &scratch))?;
    let scratch = scratch
        .canonicalize()
        .map_err(Error::io("open", &scratch))?;
    let sources = match &recipe.sources {
        Some(file) => file.clone(),
        None => apt::sources_file(&scratch, &recipe.suite)?,
    };
    let root = scratch.join("root");
    tracing::info!(
        suite = recipe.suite,
        "unpacking packages for the base image"
    );
    rootfs::unpack(recipe, &sources, &root)?;
    rootfs::finish(&root)?;
    let (package, suite) = (&recipe.kernel_package, &recipe.suite);
    let deb = apt::fetch_debian_kernel(recipe.machine, package, suite, packages)?;
    let vmlinuz = part.join("vmlinuz");
    let initrd = scratch.join("initrd");
    let release = rootfs::add_kernel(&deb, &scratch, &root, &vmlinuz)?;
    rootfs::make_initrd(&root, &release, &initrd)?;
    tracing::info!(release, "making the disk");
    let boot = disk::BootFiles {
        vmlinuz: &vmlinuz,
        initrd: &initrd,
    };
    disk::make(recipe, &root, &boot, &scratch, &part.join("disk.qcow2"))?;
    std::fs::rename(&initrd, part.join("initrd")).map_err(Error::io("move", &initrd))?;
    std::fs::remove_dir_all(&scratch).map_err(Error::io("remove", &scratch))?;
    let mark = part.join("release");
    std::fs::write(&mark, format!("{release}\n")).map_err(Error::io("write", &mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_all_parts_is_not_taken() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let open = || BaseImage::open(dir.path().to_owned(), Machine::X86_64, "d".to_owned());
        for part in ["disk.qcow2", "vmlinuz", "initrd"] {
            assert_eq!(open(), None);
            std::fs::write(dir.path().join(part), "x").expect("write");
        }
        assert_eq!(open(), None);
        std::fs::write(dir.path().join("release"), "6.1.0\n").expect("write");
        assert_eq!(open().expect("whole").release(), "6.1.0");
    }
}
