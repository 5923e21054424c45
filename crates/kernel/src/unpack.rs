//! Unpacking canonical packages, on a board: streaming, small, and suspicious.
//!
//! A canonical package has regular files only, in ascending order, under a handful of known
//! places; anything else is refused before a byte of it is written. No link is ever made,
//! and the target folder must be new or empty, so nothing leads out of it.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use klab_model::{Arch, Digest, Digester};
use tar::{Archive, Entry, EntryType};

use crate::canonical::{MANIFEST_BYTES, WINDOW_LOG_MAX};
use crate::{
    CANONICAL_IMAGE, CANONICAL_MANIFEST, HeaderError, ImageHeader, Limits, Manifest, ManifestError,
};

/// Zero blocks that may follow the last entry of a tar archive, in bytes.
const TAR_TAIL: u64 = 64 << 10;
/// What is said of an entry in a folder that no canonical package has.
pub(crate) const NO_PLACE: &str = "which has no place there";

/// Why a canonical package was refused. Nothing of it may be used; the target folder may
/// hold files of it and is to be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The bytes could not be read or are no intact zstd tar archive.
    #[error("kernel package is damaged or cut short: fetch it again")]
    Read(#[source] io::Error),
    /// The first entry is not the manifest.
    #[error("no canonical kernel package: first entry is {found:?}, expected {CANONICAL_MANIFEST}")]
    NoManifest {
        /// Path of the first entry.
        found: String,
    },
    /// The manifest is none.
    #[error("manifest of the kernel package")]
    Manifest(#[from] ManifestError),
    /// An entry that a canonical package cannot have.
    #[error("kernel package holds {path:?}, {why}: it was not written by klab, refuse it")]
    Entry {
        /// Path of the entry.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More than the budget allows.
    #[error("kernel package unpacks to more than {} bytes in {} files", .limits.bytes, .limits.entries)]
    TooBig {
        /// The budget.
        limits: Limits,
    },
    /// No boot image.
    #[error("kernel package without {CANONICAL_IMAGE}")]
    NoImage,
    /// The boot image is not the one of the manifest.
    #[error("boot image has digest {found}, the manifest says {expected}: fetch it again")]
    ImageDigest {
        /// Digest of the unpacked image.
        found: Digest,
        /// Digest in the manifest.
        expected: Digest,
    },
    /// The boot image cannot boot.
    #[error("boot image of the kernel package")]
    Image(#[from] HeaderError),
    /// The boot image is for another machine than the manifest says.
    #[error("boot image is for {found}, the manifest says {expected}")]
    Arch {
        /// Arch in the image's header.
        found: Arch,
        /// Arch in the manifest.
        expected: Arch,
    },
    /// Bytes after the end of the archive.
    #[error("bytes after the end of the kernel package: it was not written by klab, refuse it")]
    Trailing,
    /// The target folder has something in it.
    #[error("{} is not empty: unpack into a new folder", .path.display())]
    NotEmpty {
        /// The target folder.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The package's manifest.
    pub manifest: Manifest,
    /// Digest of the package's bytes: the kernel's name. Compare it before use.
    pub digest: Digest,
    /// Size of the package in bytes.
    pub size: u64,
    /// Files written.
    pub files: usize,
    /// Bytes written.
    pub bytes: u64,
}

/// Reads the manifest only, and not much more than its bytes.
///
/// # Errors
/// [`UnpackError`] when the reader holds no canonical package.
pub fn read_canonical(reader: impl Read) -> Result<Manifest, UnpackError> {
    let mut archive = Archive::new(decoder(BufReader::new(reader))?);
    let mut entries = archive.entries().map_err(UnpackError::Read)?.raw(true);
    manifest(entries.next())
}

/// Unpacks a canonical package into `dest`, which must be new or empty.
///
/// Streams: memory stays below the zstd window (at most 8 MiB) and small buffers. The files
/// are not synced; sync the file system once before the kernel is armed. Modules come as
/// they were packed; run `depmod` when `modules.dep` is missing.
///
/// # Errors
/// [`UnpackError`]; then `dest` is to be removed.
pub fn unpack_canonical(
    reader: impl Read,
    dest: &Path,
    limits: &Limits,
) -> Result<Unpacked, UnpackError> {
    make_empty(dest)?;
    let counted = BufReader::with_capacity(64 << 10, Counted::new(reader));
    let mut archive = Archive::new(decoder(counted)?);
    let mut entries = archive.entries().map_err(UnpackError::Read)?.raw(true);
    let manifest = manifest(entries.next())?;
    let mut target = Target::new(dest, *limits, &manifest);
    for entry in entries {
        target.take(entry.map_err(UnpackError::Read)?)?;
    }
    let (files, bytes) = target.finish()?;
    let (digest, size) = finish(archive.into_inner())?;
    Ok(Unpacked {
        manifest,
        digest,
        size,
        files,
        bytes,
    })
}

pub(crate) type Zstd<'a, R> = zstd::Decoder<'a, BufReader<R>>;

pub(crate) fn decoder<'a, R: Read>(reader: BufReader<R>) -> Result<Zstd<'a, R>, UnpackError> {
    let mut decoder = zstd::Decoder::with_buffer(reader).map_err(UnpackError::Read)?;
    decoder
        .window_log_max(WINDOW_LOG_MAX)
        .map_err(UnpackError::Read)?;
    Ok(decoder.single_frame())
}

pub(crate) fn manifest<R: Read>(
    first: Option<io::Result<Entry<'_, R>>>,
) -> Result<Manifest, UnpackError> {
    let Some(first) = first else {
        return Err(UnpackError::NoManifest {
            found: String::new(),
        });
    };
    let mut entry = first.map_err(UnpackError::Read)?;
    let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if path != CANONICAL_MANIFEST || entry.header().entry_type() != EntryType::Regular {
        return Err(UnpackError::NoManifest { found: path });
    }
    if entry.size() > MANIFEST_BYTES {
        return Err(UnpackError::Entry {
            path,
            why: "which is too long",
        });
    }
    let mut json = Vec::new();
    entry.read_to_end(&mut json).map_err(UnpackError::Read)?;
    Ok(Manifest::from_json(&json)?)
}

/// What holds for every entry after the manifest, and the budget they share.
pub(crate) struct Rules {
    limits: Limits,
    last: String,
    files: usize,
    bytes: u64,
}

impl Rules {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            last: String::new(),
            files: 0,
            bytes: 0,
        }
    }

    /// Refuses what a canonical package cannot have; gives the entry's path.
    pub(crate) fn check<R: Read>(
        &mut self,
        entry: &Entry<'_, R>,
        has_place: impl Fn(&str) -> bool,
    ) -> Result<String, UnpackError> {
        let bytes = entry.path_bytes();
        let refuse = |why| UnpackError::Entry {
            path: String::from_utf8_lossy(&bytes).into_owned(),
            why,
        };
        let path = std::str::from_utf8(&bytes).map_err(|_| refuse("whose name is not UTF-8"))?;
        if entry.header().entry_type() != EntryType::Regular {
            return Err(refuse("which is not a regular file"));
        }
        if !has_place(path) {
            return Err(refuse(NO_PLACE));
        }
        if path <= self.last.as_str() {
            return Err(refuse("which is out of order or there twice"));
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(entry.size());
        if self.files > self.limits.entries || self.bytes > self.limits.bytes {
            return Err(UnpackError::TooBig {
                limits: self.limits,
            });
        }
        self.last = path.to_owned();
        Ok(self.last.clone())
    }
}

/// The folder that is filled, and what has been checked so far.
struct Target<'a> {
    dest: &'a Path,
    manifest: &'a Manifest,
    rules: Rules,
    image: bool,
}

impl<'a> Target<'a> {
    fn new(dest: &'a Path, limits: Limits, manifest: &'a Manifest) -> Self {
        Self {
            dest,
            manifest,
            rules: Rules::new(limits),
            image: false,
        }
    }

    fn take<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), UnpackError> {
        let path = self
            .rules
            .check(&entry, |path| self.manifest.allows(path))?;
        let file = self.dest.join(&path);
        let write_error = |source| UnpackError::Write {
            path: file.clone(),
            source,
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(write_error)?;
        }
        let mut out = File::create_new(&file).map_err(write_error)?;
        let digest = copy(&mut entry, &mut out, &file)?;
        if path == CANONICAL_IMAGE {
            self.check_image(&file, entry.size(), digest)?;
            self.image = true;
        }
        Ok(())
    }

    fn check_image(&self, file: &Path, len: u64, found: Digest) -> Result<(), UnpackError> {
        if found != self.manifest.image_digest {
            let expected = self.manifest.image_digest;
            return Err(UnpackError::ImageDigest { found, expected });
        }
        let mut head = Vec::new();
        File::open(file)
            .and_then(|f| {
                f.take(ImageHeader::HEAD_BYTES as u64)
                    .read_to_end(&mut head)
            })
            .map_err(|source| UnpackError::Write {
                path: file.to_owned(),
                source,
            })?;
        match ImageHeader::parse(&head, len)?.arch {
            Some(found) if found != self.manifest.arch => Err(UnpackError::Arch {
                found,
                expected: self.manifest.arch,
            }),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<(usize, u64), UnpackError> {
        if self.image {
            Ok((self.rules.files, self.rules.bytes))
        } else {
            Err(UnpackError::NoImage)
        }
    }
}

/// Copies one entry; reading and writing fail differently, so `io::copy` does not do.
fn copy(from: &mut impl Read, to: &mut File, path: &Path) -> Result<Digest, UnpackError> {
    let mut digester = Digester::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(digester.finish()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(UnpackError::Read(e)),
        };
        digester.update(&buffer[..n]);
        to.write_all(&buffer[..n])
            .map_err(|source| UnpackError::Write {
                path: path.to_owned(),
                source,
            })?;
    }
}

/// Reads to the very end, so that the digest covers every byte and a cut tail shows.
pub(crate) fn finish<R: Read>(
    mut rest: Zstd<'_, Counted<R>>,
) -> Result<(Digest, u64), UnpackError> {
    let mut tail = Vec::new();
    rest.by_ref()
        .take(TAR_TAIL + 1)
        .read_to_end(&mut tail)
        .map_err(UnpackError::Read)?;
    if tail.len() as u64 > TAR_TAIL || tail.iter().any(|&b| b != 0) {
        return Err(UnpackError::Trailing);
    }
    let mut under = rest.finish();
    let mut one = [0];
    if under.read(&mut one).map_err(UnpackError::Read)? != 0 {
        return Err(UnpackError::Trailing);
    }
    let counted = under.into_inner();
    Ok((counted.digester.finish(), counted.size))
}

fn make_empty(dest: &Path) -> Result<(), UnpackError> {
    let write_error = |source| UnpackError::Write {
        path: dest.to_owned(),
        source,
    };
    fs::create_dir_all(dest).map_err(write_error)?;
    if fs::read_dir(dest).map_err(write_error)?.next().is_some() {
        return Err(UnpackError::NotEmpty {
            path: dest.to_owned(),
        });
    }
    Ok(())
}

/// Counts and digests what passes through.
pub(crate) struct Counted<R> {
    inner: R,
    digester: Digester,
    size: u64,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            digester: Digester::new(),
            size: 0,
        }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.digester.update(&buffer[..n]);
        self.size += n as u64;
        Ok(n)
    }
}
