//! The canonical package: names, manifest, and what may be inside.
//!
//! ```text
//! klab-kernel.json           always first
//! boot/System.map            optional
//! boot/config                optional
//! boot/dtbs/...              optional, device trees
//! boot/vmlinuz               always, whatever its format
//! lib/modules/RELEASE/...    optional
//! ```
//!
//! Regular files only, sorted by path after the manifest, mode 0644, owner 0, time 0, in one
//! zstd frame whose window a small board can afford.

use std::path::{Component, Path};

use klab_model::{Arch, BuildId, Digest};
use serde::{Deserialize, Serialize};

use crate::Release;

/// Path of the manifest, the first entry.
pub const CANONICAL_MANIFEST: &str = "klab-kernel.json";
/// Path of the boot image.
pub const CANONICAL_IMAGE: &str = "boot/vmlinuz";
/// Path of the symbol table.
pub const CANONICAL_SYSTEM_MAP: &str = "boot/System.map";
/// Path of the kernel's configuration.
pub const CANONICAL_CONFIG: &str = "boot/config";
/// Folder of the device trees, with a closing slash.
pub const CANONICAL_DTBS: &str = "boot/dtbs/";
/// Folder of the modules, with a closing slash; the release follows.
pub(crate) const MODULES: &str = "lib/modules/";

/// Version of the layout and the manifest.
pub(crate) const VERSION: u32 = 1;
/// Longest manifest that is read, in bytes.
pub(crate) const MANIFEST_BYTES: u64 = 64 << 10;
/// Largest zstd window a reader accepts, as a power of two: 8 MiB.
pub(crate) const WINDOW_LOG_MAX: u32 = 23;

/// What a kernel package was handed in as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageKind {
    /// A Debian package.
    Deb,
    /// A tar archive in the layout of `make tar-pkg`.
    Tar,
    /// A folder.
    Folder,
    /// A boot image, with or without a modules folder.
    Image,
}

/// What a kernel package says about itself; all of it was read from its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout, 1.
    pub version: u32,
    /// Arch of the boot image.
    pub arch: Arch,
    /// Release, as `uname -r` will print it.
    pub release: Release,
    /// GNU build-id, as `/sys/kernel/notes` will show it.
    pub build_id: Option<BuildId>,
    /// Why there is no build-id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id_absent: Option<String>,
    /// Format of the boot image, for people.
    pub image_format: String,
    /// Digest of the boot image alone: the identity where there is no build-id.
    pub image_digest: Digest,
    /// Digest of the kernel's configuration, if the package has it.
    pub config_digest: Option<Digest>,
    /// What the package was handed in as.
    pub package_kind: PackageKind,
    /// Loadable modules in the package.
    pub modules: usize,
}

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not the manifest's JSON.
    #[error("{CANONICAL_MANIFEST} is not a kernel manifest")]
    Json(#[from] serde_json::Error),
    /// Written by a newer klab.
    #[error("kernel package of version {found}; this klab reads version {VERSION}: update it")]
    Version {
        /// Version of the package.
        found: u32,
    },
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

impl Manifest {
    /// Reads the manifest's JSON; fields it does not know are ignored.
    ///
    /// # Errors
    /// [`ManifestError`] when it is no manifest or one of a newer version.
    pub fn from_json(json: &[u8]) -> Result<Self, ManifestError> {
        // The version first: a newer manifest may not fit this struct at all.
        let found = serde_json::from_slice::<VersionOnly>(json)?.version;
        if found != VERSION {
            return Err(ManifestError::Version { found });
        }
        Ok(serde_json::from_slice(json)?)
    }

    /// The manifest as JSON, byte for byte the same for the same values.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self)
            .expect("a manifest has text keys and no floats, so it is always JSON");
        json.push(b'\n');
        json
    }

    /// Folder of the modules inside the package, with a closing slash.
    #[must_use]
    pub fn modules_folder(&self) -> String {
        format!("{MODULES}{}/", self.release)
    }

    /// Whether `path` may be in a canonical package with this manifest.
    pub(crate) fn allows(&self, path: &str) -> bool {
        let below = |folder: &str| {
            path.strip_prefix(folder)
                .is_some_and(|rest| !rest.is_empty())
        };
        plain(path)
            && ([CANONICAL_IMAGE, CANONICAL_SYSTEM_MAP, CANONICAL_CONFIG].contains(&path)
                || below(CANONICAL_DTBS)
                || below(&self.modules_folder()))
    }
}

/// Whether `path` is relative and made of plain names: no `..`, `.`, empty name or NUL.
pub(crate) fn plain(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && Path::new(path)
            .components()
            .all(|c| matches!(c, Component::Normal(_)))
        && path.split('/').all(|name| !name.is_empty() && name != ".")
}
