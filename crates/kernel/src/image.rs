//! Boot images to the bottom: arch, release and build-id of the kernel inside.

use std::fmt;

use klab_model::{Arch, BuildId};
use memchr::memmem;

use crate::build_id::{self, Search};
use crate::decode::{self, PayloadError};
use crate::error::ImageError;
use crate::limits::PAYLOAD_BYTES;
use crate::{Compression, ImageFormat, ImageHeader, Release};

/// Start of `linux_banner` (`init/version-timestamp.c`); the release and " (" follow.
const BANNER: &[u8] = b"Linux version ";

/// Why an intact boot image gives no build-id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildIdAbsent {
    /// The kernel inside is compressed in a way that is not read.
    Compression(Compression),
    /// The kernel was linked without one.
    NoNote,
    /// Several build-ids, none of which is surely the kernel's.
    Ambiguous(usize),
}

impl fmt::Display for BuildIdAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compression(c) => {
                write!(
                    f,
                    "build-id not readable: the kernel inside is {c} compressed"
                )
            }
            Self::NoNote => f.write_str("no build-id: the kernel was linked without --build-id"),
            Self::Ambiguous(n) => {
                write!(
                    f,
                    "build-id not readable: {n} different ones, none surely the kernel's"
                )
            }
        }
    }
}

/// What the content of a boot image says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// How the image is wrapped.
    pub format: ImageFormat,
    /// Arch of the kernel.
    pub arch: Arch,
    /// Release, as `uname -r` will print it; `None` only where the compression is not read.
    pub release: Option<Release>,
    /// GNU build-id of the kernel, as `/sys/kernel/notes` will show it, or why not.
    pub build_id: Result<BuildId, BuildIdAbsent>,
}

/// Reads arch, release and build-id from the bytes of a boot image.
///
/// # Errors
/// [`ImageError`] when this is no boot image, damaged, or contradicts itself.
pub fn read_image(image: &[u8]) -> Result<ImageFacts, ImageError> {
    let head = &image[..image.len().min(ImageHeader::HEAD_BYTES)];
    let header = ImageHeader::parse(head, image.len() as u64)?;
    match header.format {
        ImageFormat::Elf => vmlinux(image),
        ImageFormat::Image => flat(image, header.format, header.arch),
        ImageFormat::CompressedImage(c) => {
            let inner = decode::payload(c, image, PAYLOAD_BYTES);
            wrapped(inner, &header)
        }
        ImageFormat::BzImage | ImageFormat::EfiZboot => {
            let payload = payload_of(image, &header)?;
            match compression_of(image, payload, &header) {
                Some(c) => wrapped(decode::payload(c, payload, PAYLOAD_BYTES), &header),
                None => inside(payload, &header),
            }
        }
    }
}

fn payload_of<'a>(image: &'a [u8], header: &ImageHeader) -> Result<&'a [u8], ImageError> {
    let (at, len) = header.payload.unwrap_or((0, 0));
    let range = usize::try_from(at)
        .ok()
        .zip(usize::try_from(at.saturating_add(len)).ok());
    range
        .and_then(|(start, end)| image.get(start..end))
        .filter(|payload| !payload.is_empty())
        .ok_or(ImageError::NoPayload)
}

/// Zboot names its compression, and has no magic number for some; bzImage does not.
fn compression_of(image: &[u8], payload: &[u8], header: &ImageHeader) -> Option<Compression> {
    if header.format == ImageFormat::EfiZboot && image.get(24..28) == Some(b"lzo\0") {
        return Some(Compression::Lzo);
    }
    Compression::detect(payload)
}

fn wrapped(
    inner: Result<Vec<u8>, PayloadError>,
    header: &ImageHeader,
) -> Result<ImageFacts, ImageError> {
    match inner {
        Ok(bytes) => inside(&bytes, header),
        Err(PayloadError::Unsupported(c)) => Ok(ImageFacts {
            format: header.format,
            arch: header.arch.ok_or(ImageError::Opaque { compression: c })?,
            release: header.release.clone(),
            build_id: Err(BuildIdAbsent::Compression(c)),
        }),
        Err(PayloadError::Damaged(source)) => Err(ImageError::Payload { source }),
        Err(PayloadError::TooBig) => Err(ImageError::PayloadTooBig {
            limit: PAYLOAD_BYTES,
        }),
    }
}

/// The kernel inside, and whether it is the one the outer header announces.
fn inside(kernel: &[u8], header: &ImageHeader) -> Result<ImageFacts, ImageError> {
    let head = &kernel[..kernel.len().min(ImageHeader::HEAD_BYTES)];
    let inner = ImageHeader::parse(head, kernel.len() as u64)
        .map_err(|source| ImageError::Inside { source })?;
    let facts = match inner.format {
        ImageFormat::Elf => vmlinux(kernel)?,
        ImageFormat::Image => flat(kernel, header.format, inner.arch)?,
        other => {
            return Err(ImageError::Nested {
                outer: header.format,
                inner: other,
            });
        }
    };
    if let Some(outer) = header.arch.filter(|&outer| outer != facts.arch) {
        return Err(ImageError::ArchConflict {
            outer,
            inner: facts.arch,
        });
    }
    match (&header.release, &facts.release) {
        (Some(outer), Some(inner)) if outer != inner => Err(ImageError::ReleaseConflict {
            outer: outer.clone(),
            inner: inner.clone(),
        }),
        _ => Ok(ImageFacts {
            format: header.format,
            release: facts.release.clone().or_else(|| header.release.clone()),
            ..facts
        }),
    }
}

fn vmlinux(kernel: &[u8]) -> Result<ImageFacts, ImageError> {
    let header = ImageHeader::parse(kernel, kernel.len() as u64)?;
    let search = build_id::in_elf(kernel).map_err(|source| ImageError::Elf { source })?;
    Ok(ImageFacts {
        format: ImageFormat::Elf,
        arch: header.arch.ok_or(ImageError::NoArch)?,
        release: Some(banner(kernel).ok_or(ImageError::NoBanner)?),
        build_id: finding(search),
    })
}

fn flat(kernel: &[u8], format: ImageFormat, arch: Option<Arch>) -> Result<ImageFacts, ImageError> {
    Ok(ImageFacts {
        format,
        arch: arch.ok_or(ImageError::NoArch)?,
        release: Some(banner(kernel).ok_or(ImageError::NoBanner)?),
        build_id: finding(build_id::in_flat_image(kernel)),
    })
}

pub(crate) fn finding(search: Search) -> Result<BuildId, BuildIdAbsent> {
    match search {
        Search::Found(id) => Ok(id),
        Search::None => Err(BuildIdAbsent::NoNote),
        Search::Ambiguous(n) => Err(BuildIdAbsent::Ambiguous(n)),
    }
}

/// The release in the first well-formed banner.
fn banner(kernel: &[u8]) -> Option<Release> {
    memmem::find_iter(kernel, BANNER).find_map(|at| {
        let text = kernel.get(at + BANNER.len()..)?;
        let end = text.iter().take(80).position(|&b| b == b' ')?;
        if text.get(end + 1) != Some(&b'(') {
            return None;
        }
        Release::parse(std::str::from_utf8(&text[..end]).ok()?).ok()
    })
}
