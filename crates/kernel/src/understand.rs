//! From the files of a package to what they mean: one image, its facts, its companions.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use klab_model::{BuildId, Digest};

use crate::build_id;
use crate::canonical::VERSION;
use crate::error::{ImageError, KernelError};
use crate::image::{BuildIdAbsent, ImageFacts, finding, read_image};
use crate::item::{Item, Place};
use crate::layout::{Candidate, Layout, no_image_hint};
use crate::limits::IMAGE_BYTES;
use crate::{
    CANONICAL_CONFIG, CANONICAL_DTBS, CANONICAL_IMAGE, CANONICAL_SYSTEM_MAP, ImageFormat,
    KernelPackage, Manifest, PackageKind, Release,
};

/// Understands the files of the package that was opened at `path`.
pub(crate) fn understand(
    path: &Path,
    kind: PackageKind,
    items: &[Item],
) -> Result<KernelPackage, KernelError> {
    Understand {
        path,
        items,
        layout: Layout::of(items),
    }
    .package(kind)
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

/// Whether a file of the package is a loadable module.
pub(crate) fn is_module(path: &str) -> bool {
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
