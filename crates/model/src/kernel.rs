//! Kernels: built things, named by the digest of their content.

use serde::{Deserialize, Serialize};

use crate::{Arch, BuildId, Digest, KernelName, Timestamp};

/// What a kernel package says about itself; everything is read from its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOffer {
    /// Digest of the canonical package.
    pub digest: Digest,
    /// Size of the canonical package in bytes.
    pub size: u64,
    /// The architecture of the boot image.
    pub arch: Arch,
    /// The release, as `uname -r` will print it.
    pub release: String,
    /// The GNU build-id; `None` where the image does not let it be read.
    pub build_id: Option<BuildId>,
    /// Digest of the boot image alone: the fallback identity where no build-id exists.
    pub image_digest: Digest,
}

/// A kernel of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name it was added under.
    pub name: KernelName,
    /// What it is.
    pub offer: KernelOffer,
    /// When it was added.
    pub added_at: Timestamp,
}
