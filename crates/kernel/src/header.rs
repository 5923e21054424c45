//! Boot images by their first bytes: format, arch, and whether the file is all there.
//!
//! Formats: x86 boot protocol (`Documentation/arch/x86/boot.rst`), the arm64 and RISC-V
//! image headers (`Documentation/arch/{arm64/booting,riscv/boot-image-header}.rst`), EFI
//! zboot (`drivers/firmware/efi/libstub/zboot-header.S`), ELF, and compressed images.
//! Needs no decompressor, so a board can look before it arms a kernel.

use std::fmt;

use klab_model::Arch;

use crate::{Compression, Release, ReleaseError};

/// Boot protocol 2.12 (Linux 3.8) introduced `xloadflags`.
const PROTOCOL_XLOADFLAGS: u16 = 0x20c;
/// `XLF_KERNEL_64`: the kernel has a 64-bit entry point.
const XLF_KERNEL_64: u16 = 1;

/// How a boot image is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// x86 bzImage.
    BzImage,
    /// Flat RISC-V or arm64 `Image`.
    Image,
    /// A flat `Image` compressed as a whole, such as `Image.gz`.
    CompressedImage(Compression),
    /// A self-decompressing EFI program, `vmlinuz.efi`.
    EfiZboot,
    /// The linked `vmlinux`; boot loaders do not start it.
    Elf,
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BzImage => f.write_str("bzImage"),
            Self::Image => f.write_str("Image"),
            Self::CompressedImage(c) => write!(f, "Image, {c}"),
            Self::EfiZboot => f.write_str("EFI zboot"),
            Self::Elf => f.write_str("ELF vmlinux"),
        }
    }
}

/// Why a file is no boot image of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// No header matches.
    #[error(
        "no boot image: starts with {found}; expected an x86 bzImage, a RISC-V or arm64 Image, \
         an EFI zboot image, a vmlinux or a compressed Image"
    )]
    Unknown {
        /// The first bytes, in hexadecimal.
        found: String,
    },
    /// An EFI program without a kernel header, such as a unified kernel image.
    #[error(
        "an EFI program without a kernel header (a unified kernel image or a boot loader): \
         give the plain kernel image, vmlinuz or Image"
    )]
    PlainEfi,
    /// A kernel for a machine the lab has no boards of.
    #[error("a kernel for {found}: expected x86-64, riscv64 or arm64, little-endian")]
    UnsupportedArch {
        /// What the image is for.
        found: String,
    },
    /// The file is shorter than its own header says.
    #[error("image is cut short: {have} bytes, its header asks for at least {want}; copy it again")]
    Truncated {
        /// Bytes the header asks for.
        want: u64,
        /// Bytes there are.
        have: u64,
    },
    /// The header names a release that is none.
    #[error("release in the image header")]
    Release(#[from] ReleaseError),
    /// A header field that makes no sense.
    #[error("image header field {field} makes no sense: {found}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// What was found.
        found: String,
    },
}

/// What the header of a boot image says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageHeader {
    /// How the image is wrapped.
    pub format: ImageFormat,
    /// Arch, unless it is hidden by compression.
    pub arch: Option<Arch>,
    /// Release, where the header has it in clear (bzImage).
    pub release: Option<Release>,
    /// Bytes the file must have at least, by its own header.
    pub min_len: u64,
    /// Where the compressed kernel lies in the file, as (offset, length) in bytes.
    pub payload: Option<(u64, u64)>,
}

impl ImageHeader {
    /// Bytes from the start of an image that [`ImageHeader::parse`] wants to see.
    pub const HEAD_BYTES: usize = 64 << 10;

    /// Reads the header from the first bytes of an image file of `file_len` bytes.
    ///
    /// `head` is the start of the file, [`Self::HEAD_BYTES`] or the whole of a shorter file.
    ///
    /// # Errors
    /// [`HeaderError`] when this is no boot image, one for another machine, or cut short.
    pub fn parse(head: &[u8], file_len: u64) -> Result<Self, HeaderError> {
        let header = Self::recognise(head)?;
        if header.min_len > file_len {
            return Err(HeaderError::Truncated {
                want: header.min_len,
                have: file_len,
            });
        }
        Ok(header)
    }

    fn recognise(head: &[u8]) -> Result<Self, HeaderError> {
        if head.get(0x202..0x206) == Some(b"HdrS") {
            return bz_image(head);
        }
        if head.get(0x30..0x35) == Some(b"RISCV") || head.get(0x38..0x3c) == Some(b"RSC\x05") {
            return Ok(flat(head, Arch::Riscv64));
        }
        if head.get(0x38..0x3c) == Some(b"ARM\x64") {
            return Ok(flat(head, Arch::Aarch64));
        }
        if head.starts_with(b"MZ") && head.get(4..8) == Some(b"zimg") {
            return zboot(head);
        }
        if head.starts_with(b"\x7fELF") {
            return elf(head);
        }
        if head.starts_with(b"MZ") {
            return Err(HeaderError::PlainEfi);
        }
        match Compression::detect(head) {
            Some(c) => Ok(Self {
                format: ImageFormat::CompressedImage(c),
                arch: None,
                release: None,
                min_len: 0,
                payload: None,
            }),
            None => Err(HeaderError::Unknown { found: hex(head) }),
        }
    }
}

fn bz_image(head: &[u8]) -> Result<ImageHeader, HeaderError> {
    let protocol = u16_at(head, 0x206)?;
    let flags = if protocol >= PROTOCOL_XLOADFLAGS {
        u16_at(head, 0x236)?
    } else {
        0
    };
    if flags & XLF_KERNEL_64 == 0 {
        return Err(HeaderError::UnsupportedArch {
            found: "32-bit x86".to_owned(),
        });
    }
    // Zero means four, for compatibility with very old images.
    let sectors = match head.get(0x1f1) {
        Some(0) | None => 4,
        Some(&n) => u64::from(n),
    };
    let setup = (sectors + 1) * 512;
    let body = u64::from(u32_at(head, 0x1f4)?) * 16;
    let payload = (
        setup + u64::from(u32_at(head, 0x248)?),
        u64::from(u32_at(head, 0x24c)?),
    );
    // The body's size is rounded up to paragraphs of 16 bytes.
    let min_len = (setup + body.saturating_sub(15)).max(payload.0 + payload.1);
    Ok(ImageHeader {
        format: ImageFormat::BzImage,
        arch: Some(Arch::X86_64),
        release: Some(bz_release(head)?),
        min_len,
        payload: Some(payload),
    })
}

/// The version text; the field at 0x20e counts from 0x200.
fn bz_release(head: &[u8]) -> Result<Release, HeaderError> {
    let at = usize::from(u16_at(head, 0x20e)?) + 0x200;
    let text = head.get(at..).unwrap_or_default();
    let end = text
        .iter()
        .position(|&b| b == b' ' || b == 0)
        .unwrap_or(text.len());
    Ok(Release::parse(&String::from_utf8_lossy(
        &text[..end.min(256)],
    ))?)
}

fn flat(head: &[u8], arch: Arch) -> ImageHeader {
    ImageHeader {
        format: ImageFormat::Image,
        arch: Some(arch),
        release: None,
        min_len: pe_len(head).unwrap_or(64),
        payload: None,
    }
}

fn zboot(head: &[u8]) -> Result<ImageHeader, HeaderError> {
    let payload = (u64::from(u32_at(head, 8)?), u64::from(u32_at(head, 12)?));
    let machine = pe_machine(head).ok_or_else(|| HeaderError::Field {
        field: "pe header",
        found: "no PE signature".to_owned(),
    })?;
    Ok(ImageHeader {
        format: ImageFormat::EfiZboot,
        arch: Some(pe_arch(machine)?),
        release: None,
        min_len: payload.0 + payload.1,
        payload: Some(payload),
    })
}

fn elf(head: &[u8]) -> Result<ImageHeader, HeaderError> {
    let (class, data) = (head.get(4).copied(), head.get(5).copied());
    let machine = u16_at(head, 18)?;
    let arch = match (class, data, machine) {
        (Some(2), Some(1), 62) => Arch::X86_64,
        (Some(2), Some(1), 243) => Arch::Riscv64,
        (Some(2), Some(1), 183) => Arch::Aarch64,
        _ => {
            let bits = if class == Some(2) { 64 } else { 32 };
            return Err(HeaderError::UnsupportedArch {
                found: format!("{bits}-bit ELF machine {machine}"),
            });
        }
    };
    Ok(ImageHeader {
        format: ImageFormat::Elf,
        arch: Some(arch),
        release: None,
        min_len: 64,
        payload: None,
    })
}

fn pe_at(head: &[u8]) -> Option<usize> {
    let at = usize::try_from(u32_at(head, 0x3c).ok()?).ok()?;
    (head.get(at..at.checked_add(4)?)? == b"PE\0\0").then_some(at)
}

fn pe_machine(head: &[u8]) -> Option<u16> {
    u16_at(head, pe_at(head)?.checked_add(4)?).ok()
}

/// Machine numbers of the PE format.
fn pe_arch(machine: u16) -> Result<Arch, HeaderError> {
    match machine {
        0x8664 => Ok(Arch::X86_64),
        0x5064 => Ok(Arch::Riscv64),
        0xaa64 => Ok(Arch::Aarch64),
        other => Err(HeaderError::UnsupportedArch {
            found: format!("PE machine {other:#x}"),
        }),
    }
}

/// End of the last section of the EFI stub's PE header: the file must reach that far.
fn pe_len(head: &[u8]) -> Option<u64> {
    let at = pe_at(head)?;
    let sections = u16_at(head, at + 6).ok()?;
    let table = at + 24 + usize::from(u16_at(head, at + 20).ok()?);
    (0..usize::from(sections))
        .map(|n| {
            let row = table + n * 40;
            let size = u32_at(head, row + 16).ok()?;
            let start = u32_at(head, row + 20).ok()?;
            Some(u64::from(start) + u64::from(size))
        })
        .max()?
}

fn short(head: &[u8], want: usize) -> HeaderError {
    HeaderError::Truncated {
        want: want as u64,
        have: head.len() as u64,
    }
}

fn u16_at(head: &[u8], at: usize) -> Result<u16, HeaderError> {
    let bytes = head.get(at..at + 2).and_then(|b| b.try_into().ok());
    bytes
        .map(u16::from_le_bytes)
        .ok_or_else(|| short(head, at + 2))
}

fn u32_at(head: &[u8], at: usize) -> Result<u32, HeaderError> {
    let bytes = head.get(at..at + 4).and_then(|b| b.try_into().ok());
    bytes
        .map(u32::from_le_bytes)
        .ok_or_else(|| short(head, at + 4))
}

/// The first bytes for a message: enough to recognise a format by.
pub(crate) fn hex(head: &[u8]) -> String {
    if head.is_empty() {
        return "nothing (an empty file)".to_owned();
    }
    head.iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}
