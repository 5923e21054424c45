//! An opened kernel package, and writing it as a canonical one.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use klab_model::{Arch, BuildId, Digest, Digester, KernelOffer};
use tar::{EntryType, Header};

use crate::error::KernelError;
use crate::item::{Item, Place};
use crate::{CANONICAL_CONFIG, CANONICAL_IMAGE, CANONICAL_MANIFEST, Manifest, Release};

/// Compression level of canonical packages: modules shrink to a quarter at 100 MB/s.
const ZSTD_LEVEL: i32 = 6;
/// Window of canonical packages as a power of two: 2 MiB, what a board spends on unpacking.
const ZSTD_WINDOW_LOG: u32 = 21;

/// A kernel as it was handed in, understood and ready to be written.
#[derive(Debug)]
pub struct KernelPackage {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// By path in the canonical package, which is the order of its entries.
    pub(crate) files: BTreeMap<String, Item>,
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
