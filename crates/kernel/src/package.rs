//! An opened kernel package, and writing it as a canonical one.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use klab_model::{Arch, BuildId, Digest, Digester, KernelOffer};
use tar::{EntryType, Header};

use crate::build_id;
use crate::canonical::VERSION;
use crate::error::{ImageError, KernelError};
use crate::image::{BuildIdAbsent, ImageFacts, finding, read_image};
use crate::item::{Item, Place};
use crate::layout::{Candidate, Layout, no_image_hint};
use crate::limits::IMAGE_BYTES;
use crate::{
    CANONICAL_CONFIG, CANONICAL_DTBS, CANONICAL_IMAGE, CANONICAL_MANIFEST, CANONICAL_SYSTEM_MAP,
    ImageFormat, Manifest, PackageKind, Release,
};

/// Compression level of canonical packages: modules shrink to a quarter at 100 MB/s.
const ZSTD_LEVEL: i32 = 6;
/// Window of canonical packages as a power of two: 2 MiB, what a board spends on unpacking.
const ZSTD_WINDOW_LOG: u32 = 21;

/// A kernel as it was handed in, understood and ready to be written.
#[derive(Debug)]
pub struct KernelPackage {
    path: PathBuf,
    manifest: Manifest,
    /// By path in the canonical package, which is the order of its entries.
    files: BTreeMap<String, Item>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// BLAKE3 digest of the canonical package's bytes: the kernel's name.
    pub digest: Digest,
    /// Size of the canonical package in bytes.
    pub size: u64,
}

impl KernelPackage {
    /// Arch of the boot image.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.manifest.arch
    }

    /// Release, as `uname -r` will print it.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.manifest.release
    }

    /// GNU build-id, if the image lets it be read; else [`Manifest::build_id_absent`] says why.
    #[must_use]
    pub fn build_id(&self) -> Option<&BuildId> {
        self.manifest.build_id.as_ref()
    }

    /// All that the package says about itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Paths of the files in the canonical package, in its order, the manifest left out.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The offer to the controller, once the package was written.
    #[must_use]
    pub fn offer(&self, summary: &Summary) -> KernelOffer {
        KernelOffer {
            digest: summary.digest,
            size: summary.size,
            arch: self.manifest.arch,
            release: self.manifest.release.to_string(),
            build_id: self.manifest.build_id.clone(),
            image_digest: self.manifest.image_digest,
        }
    }

    /// Writes the canonical package; the same content gives the same bytes.
    ///
    /// # Errors
    /// [`KernelError::Write`] when `out` fails, [`KernelError::Changed`] when a file of the
    /// package is no longer what it was.
    pub fn write_canonical(&self, out: impl Write) -> Result<Summary, KernelError> {
        let counted = Counted {
            inner: out,
            digester: Digester::new(),
            size: 0,
        };
        let mut zstd = zstd::Encoder::new(counted, ZSTD_LEVEL).map_err(KernelError::Write)?;
        zstd.include_checksum(true).map_err(KernelError::Write)?;
        zstd.window_log(ZSTD_WINDOW_LOG)
            .map_err(KernelError::Write)?;
        let mut tar = tar::Builder::new(zstd);
        let json = self.manifest.to_json();
        let header = self.header(CANONICAL_MANIFEST, json.len() as u64)?;
        tar.append(&header, json.as_slice())
            .map_err(KernelError::Write)?;
        for (path, item) in &self.files {
            self.append(&mut tar, path, item)?;
        }
        let zstd = tar.into_inner().map_err(KernelError::Write)?;
        let mut counted = zstd.finish().map_err(KernelError::Write)?;
        counted.flush().map_err(KernelError::Write)?;
        Ok(Summary {
            digest: counted.digester.finish(),
            size: counted.size,
        })
    }

    fn append(
        &self,
        tar: &mut tar::Builder<impl Write>,
        path: &str,
        item: &Item,
    ) -> Result<(), KernelError> {
        let changed = || match &item.place {
            Place::Path(path) => KernelError::Changed { path: path.clone() },
            Place::Span { .. } => KernelError::Changed {
                path: self.path.clone(),
            },
        };
        let header = self.header(path, item.size)?;
        let mut checked = Checked {
            inner: item.reader().map_err(|_| changed())?,
            digester: Digester::new(),
            left: item.size,
            failed: false,
        };
        let written = tar.append(&header, &mut checked);
        // A short read would shift every later entry: it must not pass for a package.
        if checked.failed || checked.left != 0 {
            return Err(changed());
        }
        written.map_err(KernelError::Write)?;
        let promised = match path {
            CANONICAL_IMAGE => Some(self.manifest.image_digest),
            CANONICAL_CONFIG => self.manifest.config_digest,
            _ => None,
        };
        match promised {
            Some(digest) if digest != checked.digester.finish() => Err(changed()),
            _ => Ok(()),
        }
    }

    fn header(&self, path: &str, size: u64) -> Result<Header, KernelError> {
        let mut header = Header::new_ustar();
        header
            .set_path(path)
            .map_err(|_| self.member(path, "has a path too long for tar"))?;
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_cksum();
        Ok(header)
    }

    fn member(&self, member: &str, what: &'static str) -> KernelError {
        KernelError::Member {
            path: self.path.clone(),
            member: member.to_owned(),
            what,
        }
    }

    /// Understands the files of a package.
    pub(crate) fn from_items(
        path: &Path,
        kind: PackageKind,
        items: &[Item],
    ) -> Result<Self, KernelError> {
        Understand {
            path,
            items,
            layout: Layout::of(items),
        }
        .package(kind)
    }
}

/// The way from files to a package.
struct Understand<'a> {
    path: &'a Path,
    items: &'a [Item],
    layout: Layout,
}

/// A boot image and what it says.
struct Image<'a> {
    item: &'a Item,
    facts: ImageFacts,
    digest: Digest,
}

impl Understand<'_> {
    fn package(&self, kind: PackageKind) -> Result<KernelPackage, KernelError> {
        self.one_kernel()?;
        let image = self.boot_image()?;
        let vmlinux = self.vmlinux(&image)?;
        let release = image
            .facts
            .release
            .clone()
            .or_else(|| vmlinux.as_ref().and_then(|v| v.release.clone()))
            .ok_or_else(|| self.no_release(&image))?;
        self.modules_match(&release)?;
        let build_id = self.agreed(&image.facts, vmlinux.as_ref())?;
        let files = self.files(image.item, &release)?;
        let config_digest = match files.get(CANONICAL_CONFIG) {
            Some(item) => Some(Digest::of(&self.bytes(item)?)),
            None => None,
        };
        let manifest = Manifest {
            version: VERSION,
            arch: image.facts.arch,
            release,
            build_id_absent: build_id.as_ref().err().map(ToString::to_string),
            build_id: build_id.ok(),
            image_format: image.facts.format.to_string(),
            image_digest: image.digest,
            config_digest,
            package_kind: kind,
            modules: files.keys().filter(|path| is_module(path)).count(),
        };
        Ok(KernelPackage {
            path: self.path.to_owned(),
            manifest,
            files,
        })
    }

    fn one_kernel(&self) -> Result<(), KernelError> {
        let several = |found: Vec<String>| KernelError::SeveralKernels {
            path: self.path.to_owned(),
            found,
        };
        let suffixes = self.layout.image_suffixes();
        if suffixes.len() > 1 {
            return Err(several(suffixes.into_iter().map(str::to_owned).collect()));
        }
        if self.layout.releases.len() > 1 {
            return Err(several(self.layout.releases.iter().cloned().collect()));
        }
        Ok(())
    }

    /// The best image that boots. An ELF file called vmlinux or vmlinuz does not.
    fn boot_image(&self) -> Result<Image<'_>, KernelError> {
        let mut linked = None;
        for candidate in &self.layout.images {
            let item = self.item(candidate);
            let bytes = self.bytes(item)?;
            if bytes.starts_with(b"\x7fELF") {
                linked.get_or_insert(item);
                continue;
            }
            let facts = read_image(&bytes).map_err(|source| self.image_error(item, source))?;
            return Ok(Image {
                item,
                facts,
                digest: Digest::of(&bytes),
            });
        }
        let path = self.path.to_owned();
        Err(match linked {
            Some(item) => KernelError::NotBootable {
                path,
                member: item.path.clone(),
            },
            None => KernelError::NoImage {
                path,
                files: self.items.len(),
                hint: no_image_hint(self.items),
            },
        })
    }

    /// What the linked vmlinux beside the image says, if there is one.
    fn vmlinux(&self, image: &Image<'_>) -> Result<Option<ImageFacts>, KernelError> {
        let linked = self
            .layout
            .images
            .iter()
            .map(|c| self.item(c))
            .find(|item| {
                let mut head = [0; 4];
                let elf = item
                    .reader()
                    .and_then(|mut r| r.read_exact(&mut head))
                    .is_ok();
                elf && head == *b"\x7fELF"
            });
        let Some(item) = linked else { return Ok(None) };
        let damaged = |source| self.image_error(item, ImageError::Elf { source });
        // With debug symbols it has hundreds of megabytes, so it is not read as a whole.
        let cache = object::ReadCache::new(SeekItem {
            item: item.clone(),
            at: 0,
        });
        let build_id = finding(build_id::in_elf(&cache).map_err(damaged)?);
        Ok(Some(ImageFacts {
            format: ImageFormat::Elf,
            arch: image.facts.arch,
            release: self.release_of_name(item),
            build_id,
        }))
    }

    /// Only asked where the image itself cannot be read.
    fn release_of_name(&self, item: &Item) -> Option<Release> {
        let (_, release) = item.name().split_once('-')?;
        Release::parse(release).ok()
    }

    fn agreed(
        &self,
        image: &ImageFacts,
        vmlinux: Option<&ImageFacts>,
    ) -> Result<Result<BuildId, BuildIdAbsent>, KernelError> {
        match (&image.build_id, vmlinux.map(|v| &v.build_id)) {
            (Ok(image), Some(Ok(vmlinux))) if image != vmlinux => Err(KernelError::BuildConflict {
                path: self.path.to_owned(),
                image: image.clone(),
                vmlinux: vmlinux.clone(),
            }),
            (Err(_), Some(Ok(vmlinux))) => Ok(Ok(vmlinux.clone())),
            (own, _) => Ok(own.clone()),
        }
    }

    fn modules_match(&self, release: &Release) -> Result<(), KernelError> {
        match self.layout.releases.first() {
            Some(modules) if modules != release.as_str() => Err(KernelError::ModulesMismatch {
                path: self.path.to_owned(),
                image: release.clone(),
                modules: modules.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn files(
        &self,
        image: &Item,
        release: &Release,
    ) -> Result<BTreeMap<String, Item>, KernelError> {
        let mut files = BTreeMap::new();
        files.insert(CANONICAL_IMAGE.to_owned(), image.clone());
        let mut add = |path: String, n: usize| -> Result<(), KernelError> {
            let item = self.items[n].clone();
            let member = item.path.clone();
            match files.insert(path, item) {
                None => Ok(()),
                Some(_) => Err(KernelError::Member {
                    path: self.path.to_owned(),
                    member,
                    what: "is there twice, in two folders that mean the same: remove one",
                }),
            }
        };
        if let Some(n) = self.layout.system_map(release.as_str(), self.items) {
            add(CANONICAL_SYSTEM_MAP.to_owned(), n)?;
        }
        if let Some(n) = self.layout.config(release.as_str()) {
            add(CANONICAL_CONFIG.to_owned(), n)?;
        }
        for (n, rest) in &self.layout.modules {
            // What boots comes from boot/; some distributions keep a copy beside the modules.
            if rest != "vmlinuz" && rest != "vmlinux" {
                add(format!("lib/modules/{release}/{rest}"), *n)?;
            }
        }
        for (n, rest) in &self.layout.dtbs {
            let rest = rest
                .strip_prefix(release.as_str())
                .map_or(rest.as_str(), |r| r.trim_start_matches('/'));
            add(format!("{CANONICAL_DTBS}{rest}"), *n)?;
        }
        Ok(files)
    }

    fn item(&self, candidate: &Candidate) -> &Item {
        &self.items[candidate.item]
    }

    fn bytes(&self, item: &Item) -> Result<Vec<u8>, KernelError> {
        let path = match &item.place {
            Place::Path(path) => path.clone(),
            Place::Span { .. } => self.path.join(&item.path),
        };
        item.read(IMAGE_BYTES)
            .map_err(|source| KernelError::Open { path, source })
    }

    fn image_error(&self, item: &Item, source: ImageError) -> KernelError {
        KernelError::Image {
            path: self.path.to_owned(),
            member: item.path.clone(),
            source,
        }
    }

    fn no_release(&self, image: &Image<'_>) -> KernelError {
        KernelError::NoRelease {
            path: self.path.to_owned(),
            member: image.item.path.clone(),
            compression: image.facts.build_id.as_ref().err().map_or_else(
                || image.facts.format.to_string(),
                |absent| match absent {
                    BuildIdAbsent::Compression(c) => c.to_string(),
                    other => other.to_string(),
                },
            ),
        }
    }
}

fn is_module(path: &str) -> bool {
    [".ko", ".ko.xz", ".ko.zst", ".ko.gz"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// Reading with seeking, for `object`'s cache.
struct SeekItem {
    item: Item,
    at: u64,
}

impl Read for SeekItem {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut reader = self.item.reader()?;
        reader.skip(self.at);
        let n = reader.read(buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl io::Seek for SeekItem {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.item.size.checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Counts and digests what is written.
struct Counted<W> {
    inner: W,
    digester: Digester,
    size: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.digester.update(&bytes[..n]);
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Digests an item while it is packed, and remembers whether reading it failed.
struct Checked<R> {
    inner: R,
    digester: Digester,
    left: u64,
    failed: bool,
}

impl<R: Read> Read for &mut Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self
            .inner
            .read(buffer)
            .inspect_err(|_| self.failed = true)?;
        self.digester.update(&buffer[..n]);
        self.left = self.left.saturating_sub(n as u64);
        Ok(n)
    }
}
