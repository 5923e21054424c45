//! Kernel packages: what a developer hands in becomes one canonical kernel.
//!
//! ```text
//! .deb | tar-pkg | folder | image + modules          (feature `read`)
//!      -> open: archive or folder -> layout -> image -> facts from the content
//!      -> KernelPackage { arch, release, build-id, files }
//!      -> write_canonical: sorted tar, zstd           digest = BLAKE3 of its bytes
//! ```
//!
//! A board needs the other half only: [`unpack_canonical`] streams a canonical package
//! into a folder, [`ImageHeader`] looks at a boot image before it is armed, and
//! [`notes::build_id`] reads the build-id of the kernel that runs from `/sys/kernel/notes`.
//! That half is always there; everything that opens foreign packages sits behind `read`.
//!
//! The controller stands between them: [`verify_canonical`] reads a canonical package to its
//! last byte and holds every claim of its manifest against the content.
//!
//! Nothing is typed by hand or believed from a file name: arch, release and build-id are
//! read from the boot image itself. All input counts as hostile: sizes have budgets, paths
//! are checked, and no content makes this crate panic.

mod canonical;
mod compression;
mod header;
mod limits;
pub mod notes;
mod release;
mod unpack;

#[cfg(feature = "read")]
mod build_id;
#[cfg(feature = "read")]
mod deb;
#[cfg(feature = "read")]
mod decode;
#[cfg(feature = "read")]
mod error;
#[cfg(feature = "read")]
mod folder;
#[cfg(feature = "read")]
mod image;
#[cfg(feature = "read")]
mod item;
#[cfg(feature = "read")]
mod layout;
#[cfg(feature = "read")]
mod open;
#[cfg(feature = "read")]
mod package;
#[cfg(feature = "read")]
mod tarball;
#[cfg(feature = "read")]
mod understand;
#[cfg(feature = "read")]
mod verify;

pub use canonical::{
    CANONICAL_CONFIG, CANONICAL_DTBS, CANONICAL_IMAGE, CANONICAL_MANIFEST, CANONICAL_SYSTEM_MAP,
    Manifest, ManifestError, PackageKind,
};
pub use compression::Compression;
pub use header::{HeaderError, ImageFormat, ImageHeader};
pub use limits::Limits;
pub use release::{Release, ReleaseError};
pub use unpack::{UnpackError, Unpacked, read_canonical, unpack_canonical};

#[cfg(feature = "read")]
pub use error::{ArchiveError, ImageError, KernelError};
#[cfg(feature = "read")]
pub use image::{BuildIdAbsent, ImageFacts, read_image};
#[cfg(feature = "read")]
pub use layout::NoImageHint;
#[cfg(feature = "read")]
pub use open::{open, open_pair};
#[cfg(feature = "read")]
pub use package::{KernelPackage, Summary};
#[cfg(feature = "read")]
pub use verify::{Difference, VerifyError, verify_canonical};
