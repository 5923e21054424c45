//! Kernels that were built, by their key.
//!
//! ```text
//! kernels/KEY.lock           held while the kernel of that key is looked for or built
//! kernels/KEY/kernel.tar.zst the canonical package
//!             built.json     key, digest and facts; written before the folder appears
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use klab_model::{Digest, KernelOffer};
use serde::{Deserialize, Serialize};

use crate::lock::Lock;
use crate::{BuildError, BuildKey, Watcher, files};

const PACKAGE: &str = "kernel.tar.zst";
const RECORD: &str = "built.json";

/// What is written beside a package.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    key: String,
    offer: KernelOffer,
}

/// The kernels of a folder.
#[derive(Debug, Clone)]
pub struct KernelCache {
    folder: PathBuf,
}

/// A kernel in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedKernel {
    /// The canonical package.
    pub package: PathBuf,
    /// What the package says about itself.
    pub offer: KernelOffer,
}

/// The right to look for one key and to put its kernel in; held until dropped.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    cache: &'a KernelCache,
    key: &'a BuildKey,
    _lock: Lock,
}

impl KernelCache {
    /// The kernels below `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        files::make_folder(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Waits until nobody else builds that key.
    pub(crate) fn slot<'a>(
        &'a self,
        key: &'a BuildKey,
        watcher: &mut Watcher<'_>,
    ) -> Result<Slot<'a>, BuildError> {
        let path = self.folder.join(format!("{}.lock", key.digest()));
        let lock = Lock::take(&path, "a build of the same kernel", watcher)?;
        Ok(Slot {
            cache: self,
            key,
            _lock: lock,
        })
    }

    /// Removes the kernels that were used least recently until the packages have at most
    /// `keep_bytes`; how many were removed.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn prune(&self, keep_bytes: u64) -> Result<usize, BuildError> {
        let read = BuildError::io("read the folder", &self.folder);
        let entries = fs::read_dir(&self.folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut kernels: Vec<(SystemTime, u64, PathBuf)> = entries
            .map_err(read)?
            .iter()
            .filter_map(|entry| {
                let used = fs::metadata(entry.path().join(RECORD))
                    .ok()?
                    .modified()
                    .ok()?;
                let size = fs::metadata(entry.path().join(PACKAGE)).map_or(0, |meta| meta.len());
                Some((used, size, entry.path()))
            })
            .collect();
        kernels.sort();
        let mut total: u64 = kernels.iter().map(|(_, size, _)| size).sum();
        let mut removed = 0;
        for (_, size, path) in kernels {
            if total <= keep_bytes {
                break;
            }
            // Without its record it is no kernel of the cache, however far removing gets.
            files::remove(&path.join(RECORD))?;
            files::remove(&path)?;
            total -= size;
            removed += 1;
        }
        Ok(removed)
    }

    fn place(&self, key: &BuildKey) -> PathBuf {
        self.folder.join(key.digest().to_string())
    }
}

impl Slot<'_> {
    /// The kernel, if it was built before and is still what it was.
    pub(crate) fn find(
        &self,
        watcher: &mut Watcher<'_>,
    ) -> Result<Option<CachedKernel>, BuildError> {
        let place = self.cache.place(self.key);
        let Some(json) = files::read_if_there(&place.join(RECORD))? else {
            return Ok(None);
        };
        match self.check(&place, &json) {
            Some(kernel) => {
                // The time of the record tells when it was last used.
                let touched = File::open(place.join(RECORD))
                    .and_then(|file| file.set_modified(SystemTime::now()));
                touched.map_err(BuildError::io("touch", place.join(RECORD)))?;
                Ok(Some(kernel))
            }
            None => {
                watcher.note(format!(
                    "the kernel kept for key {} is damaged: it is built again",
                    self.key.digest().short()
                ));
                files::remove(&place)?;
                Ok(None)
            }
        }
    }

    fn check(&self, place: &Path, json: &[u8]) -> Option<CachedKernel> {
        let record: Record = serde_json::from_slice(json).ok()?;
        let package = place.join(PACKAGE);
        let (digest, size) = Digest::of_reader(File::open(&package).ok()?).ok()?;
        let offer = record.offer;
        let same = record.key == self.key.to_text() && (digest, size) == (offer.digest, offer.size);
        same.then_some(CachedKernel { package, offer })
    }

    /// Puts a kernel in: `write` writes the package into the file it is given.
    pub(crate) fn fill(
        &self,
        write: impl FnOnce(&mut File) -> Result<KernelOffer, BuildError>,
    ) -> Result<CachedKernel, BuildError> {
        let place = self.cache.place(self.key);
        let new = place.with_extension("new");
        files::remove(&new)?;
        files::make_folder(&new)?;
        let package = new.join(PACKAGE);
        let mut file = File::create(&package).map_err(BuildError::io("write", &package))?;
        let offer = write(&mut file)?;
        file.sync_all().map_err(BuildError::io("write", &package))?;
        let record = Record {
            key: self.key.to_text(),
            offer: offer.clone(),
        };
        let json = serde_json::to_vec_pretty(&record).unwrap_or_default();
        files::write_atomic(&new.join(RECORD), &json)?;
        files::remove(&place)?;
        fs::rename(&new, &place).map_err(BuildError::io("rename", &place))?;
        Ok(CachedKernel {
            package: place.join(PACKAGE),
            offer,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use klab_model::Arch;

    use super::*;
    use crate::{BuildEvent, Cancel, ObjectId, ToolVersions};

    fn key(number: u8) -> BuildKey {
        BuildKey {
            tree: ObjectId::parse(&"a".repeat(40)).expect("id"),
            config: Digest::of(&[number]),
            arch: Arch::X86_64,
            tools: ToolVersions::default(),
            flags: Vec::new(),
        }
    }

    fn fill(slot: &Slot<'_>, content: &[u8]) -> CachedKernel {
        let filled = slot.fill(|file| {
            file.write_all(content)
                .map_err(BuildError::io("write", "x"))?;
            Ok(KernelOffer {
                digest: Digest::of(content),
                size: content.len() as u64,
                arch: Arch::X86_64,
                release: "6.1.0".to_owned(),
                build_id: None,
                image_digest: Digest::of(b"image"),
            })
        });
        filled.expect("is filled")
    }

    /// Calls with a watcher whose events are returned as well.
    fn watched<T>(call: impl FnOnce(&mut Watcher<'_>) -> T) -> (T, Vec<BuildEvent>) {
        let cancel = Cancel::new().expect("token");
        let mut events = Vec::new();
        let mut keep = |event| events.push(event);
        let result = call(&mut Watcher::new(&cancel, &mut keep));
        (result, events)
    }

    #[test]
    fn a_kernel_is_found_under_its_key_only() {
        let dir = tempfile::tempdir().expect("folder");
        let cache = KernelCache::open(dir.path()).expect("opens");
        let (one, two) = (key(1), key(2));
        watched(|w| {
            let slot = cache.slot(&one, w).expect("slot");
            assert_eq!(slot.find(w).expect("looks"), None);
            let filled = fill(&slot, b"kernel");
            assert_eq!(slot.find(w).expect("looks"), Some(filled));
            let other = cache.slot(&two, w).expect("slot");
            assert_eq!(other.find(w).expect("looks"), None);
        });
    }

    #[test]
    fn a_damaged_kernel_is_told_and_removed() {
        let dir = tempfile::tempdir().expect("folder");
        let cache = KernelCache::open(dir.path()).expect("opens");
        let key = key(1);
        let (_, events) = watched(|w| {
            let slot = cache.slot(&key, w).expect("slot");
            let kernel = fill(&slot, b"kernel");
            fs::write(&kernel.package, b"kernal").expect("write");
            assert_eq!(slot.find(w).expect("looks"), None);
            assert!(!kernel.package.exists());
        });
        assert!(matches!(&events[..], [BuildEvent::Note(note)] if note.contains("damaged")));
    }

    #[test]
    fn the_least_used_kernels_go_first() {
        let dir = tempfile::tempdir().expect("folder");
        let cache = KernelCache::open(dir.path()).expect("opens");
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        watched(|w| {
            let mut kernels = Vec::new();
            for n in 0..3 {
                let key = key(n);
                kernels.push(fill(&cache.slot(&key, w).expect("slot"), &[n; 100]));
                pause();
            }
            let first = key(0);
            cache.slot(&first, w).expect("slot").find(w).expect("looks");
            assert_eq!(cache.prune(250).expect("prunes"), 1);
            let left: Vec<bool> = kernels.iter().map(|k| k.package.exists()).collect();
            assert_eq!(left, [true, false, true]);
            assert_eq!(cache.prune(250).expect("prunes"), 0);
        });
    }
}
