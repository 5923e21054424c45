//! Errors of opening foreign packages: each names the file and the mend.

use std::io;
use std::path::PathBuf;

use klab_model::{Arch, BuildId};

use crate::layout::NoImageHint;
use crate::{Compression, HeaderError, ImageFormat, Release};

/// Why a boot image was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The header is unknown, for another machine, or the file is cut short.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The header points nowhere.
    #[error("image header points at no compressed kernel: rebuild the image or copy it again")]
    NoPayload,
    /// The kernel inside does not decompress.
    #[error("the compressed kernel inside the image is damaged: copy the image again")]
    Payload {
        /// Why.
        source: io::Error,
    },
    /// The kernel inside is absurdly big.
    #[error("the kernel inside the image is bigger than {limit} bytes")]
    PayloadTooBig {
        /// Limit in bytes.
        limit: u64,
    },
    /// What was decompressed is no kernel.
    #[error("what the image holds, once decompressed, is no kernel")]
    Inside {
        /// Why.
        source: HeaderError,
    },
    /// An image in an image.
    #[error("{outer} image that holds a {inner} image: expected the kernel itself inside")]
    Nested {
        /// Format of the file.
        outer: ImageFormat,
        /// Format of what is inside.
        inner: ImageFormat,
    },
    /// Nothing is known about an image whose compression is not read.
    #[error(
        "image is {compression} compressed, which is not read: neither arch nor release are \
         known; build it with gzip, xz, zstd or lz4"
    )]
    Opaque {
        /// The compression.
        compression: Compression,
    },
    /// Header and content name different machines.
    #[error("image header is for {outer}, the kernel inside for {inner}")]
    ArchConflict {
        /// Arch in the header.
        outer: Arch,
        /// Arch of the kernel inside.
        inner: Arch,
    },
    /// Header and content name different releases.
    #[error("image header says release {outer}, the kernel inside {inner}: build it again")]
    ReleaseConflict {
        /// Release in the header.
        outer: Release,
        /// Release of the kernel inside.
        inner: Release,
    },
    /// Not a kernel, or one whose version text was removed.
    #[error("no \"Linux version\" text in the image: is this a Linux kernel?")]
    NoBanner,
    /// The header names no machine.
    #[error("image names no machine")]
    NoArch,
    /// The vmlinux is damaged.
    #[error("vmlinux is damaged: copy it again")]
    Elf {
        /// Why.
        source: object::read::Error,
    },
}

/// Why an archive did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Reading or decompressing failed.
    #[error("damaged or cut short")]
    Read(#[from] io::Error),
    /// Not the ar archive a Debian package is.
    #[error("no Debian package: {found}")]
    Deb {
        /// What is wrong.
        found: String,
    },
    /// The tar archive ends inside an entry or without its end mark.
    #[error("tar archive ends early, after {entries} entries at byte {at}")]
    CutShort {
        /// Entries that were seen.
        entries: usize,
        /// Where the archive should have gone on.
        at: u64,
    },
    /// A path that would leave the package.
    #[error("entry {path:?} has an unsafe path: expected a relative path without ..")]
    UnsafePath {
        /// The path.
        path: String,
    },
    /// A header that no packer writes.
    #[error("entry {path:?}: {found}")]
    Entry {
        /// The path.
        path: String,
        /// What is wrong with it.
        found: &'static str,
    },
    /// More than the budget allows.
    #[error("unpacks to more than {bytes} bytes or {entries} entries")]
    TooBig {
        /// Budget in bytes.
        bytes: u64,
        /// Budget in entries.
        entries: usize,
    },
}

/// Why a kernel package was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The file or folder cannot be read.
    #[error("cannot read {}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The archive is damaged or hostile.
    #[error("cannot unpack {}: copy or build it again", .path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        source: ArchiveError,
    },
    /// Neither package nor image.
    #[error(
        "{}: {what}; give a linux-image .deb, the result of `make tar-pkg`, a folder with boot/ \
         and lib/modules/, or a boot image",
        .path.display()
    )]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        what: String,
    },
    /// No boot image in the package.
    #[error(
        "no kernel image in {}: looked for boot/vmlinuz-*, boot/vmlinux-*, boot/Image-*, \
         lib/modules/*/vmlinuz and bzImage; found {}; {hint}",
        .path.display(), counted(*.files)
    )]
    NoImage {
        /// The package.
        path: PathBuf,
        /// Files in the package.
        files: usize,
        /// What it seems to be instead, and what to give.
        hint: NoImageHint,
    },
    /// Only a vmlinux, which no boot loader starts.
    #[error(
        "{}: {member} is the linked vmlinux, which boot loaders do not start; add the boot \
         image beside it (x86: bzImage as vmlinuz, others: Image)",
        .path.display()
    )]
    NotBootable {
        /// The package.
        path: PathBuf,
        /// The vmlinux.
        member: String,
    },
    /// More than one kernel.
    #[error(
        "{} holds several kernels ({}): give a package with one, or the image and its modules",
        .path.display(), .found.join(", ")
    )]
    SeveralKernels {
        /// The package.
        path: PathBuf,
        /// The releases or files found.
        found: Vec<String>,
    },
    /// Modules of another kernel.
    #[error(
        "{}: image is release {image}, modules are for {modules}; install the modules of this \
         very build (make modules_install) or pack it again",
        .path.display()
    )]
    ModulesMismatch {
        /// The package.
        path: PathBuf,
        /// Release of the image.
        image: Release,
        /// Name of the modules folder.
        modules: String,
    },
    /// No modules where modules were promised.
    #[error(
        "no modules in {}: expected a folder RELEASE with modules.order or kernel/ in it, or one \
         above it (lib/modules)",
        .path.display()
    )]
    NoModules {
        /// The folder.
        path: PathBuf,
    },
    /// The boot image is damaged, unknown or for another machine.
    #[error("{}: image {member}", .path.display())]
    Image {
        /// The package.
        path: PathBuf,
        /// The image inside the package.
        member: String,
        /// Why.
        source: ImageError,
    },
    /// Image and vmlinux are from different builds.
    #[error(
        "{}: boot image has build-id {image}, the vmlinux beside it {vmlinux}; they are from \
         different builds, pack them again",
        .path.display()
    )]
    BuildConflict {
        /// The package.
        path: PathBuf,
        /// Build-id of the boot image.
        image: BuildId,
        /// Build-id of the vmlinux.
        vmlinux: BuildId,
    },
    /// The release is nowhere to be read.
    #[error(
        "{}: the release of image {member} cannot be read ({compression} compressed); pack the \
         vmlinux beside it or build it with gzip, xz, zstd or lz4",
        .path.display()
    )]
    NoRelease {
        /// The package.
        path: PathBuf,
        /// The image inside the package.
        member: String,
        /// Its compression.
        compression: String,
    },
    /// Two files want the same place, or one has no place.
    #[error("{}: {member:?} {what}", .path.display())]
    Member {
        /// The package.
        path: PathBuf,
        /// The file inside the package.
        member: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file of a folder changed while it was packed.
    #[error("{} changed while it was packed: try again when nothing writes to it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The canonical package could not be written.
    #[error("cannot write the canonical package")]
    Write(#[source] io::Error),
    /// No room for unpacking.
    #[error("cannot unpack into the temporary folder: free some space or set TMPDIR")]
    Spool(#[source] io::Error),
}

fn counted(files: usize) -> String {
    match files {
        0 => "no files".to_owned(),
        1 => "1 file".to_owned(),
        _ => format!("{files} files"),
    }
}
