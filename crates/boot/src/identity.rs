//! Which kernel runs, and whether it is the one that was asked for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use klab_kernel::notes;
use klab_model::{BootMarker, BuildId, Digest, Failure, Identity, IdentityProof, OrderKernel};
use serde::{Deserialize, Serialize};

/// The kernel that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// What `uname -r` prints.
    pub release: String,
    /// Different for every boot.
    pub boot_id: String,
    /// From `/sys/kernel/notes`, if the kernel has one.
    pub build_id: Option<BuildId>,
    /// The kernel command line.
    pub cmdline: String,
    /// The mark of a candidate on the command line.
    pub marker: Option<BootMarker>,
}

/// The kernel that runs could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: expected mounted /proc", .path.display())]
pub struct IdentityError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Looks at the kernel that runs, through the files below `sysroot`.
///
/// # Errors
/// [`IdentityError`] without `/proc`. A kernel without notes has no build-id; that is no error.
pub fn running(sysroot: &Path) -> Result<Running, IdentityError> {
    let text = |name: &str| {
        let path = sysroot.join(name);
        fs::read_to_string(&path)
            // A release may hold what its builder liked; logs and tables show it.
            .map(|text| text.trim().replace(char::is_control, "?"))
            .map_err(|source| IdentityError { path, source })
    };
    let cmdline = text("proc/cmdline")?;
    let build_id = fs::read(sysroot.join("sys/kernel/notes"))
        .ok()
        .and_then(|bytes| notes::build_id(&bytes).ok());
    Ok(Running {
        release: text("proc/sys/kernel/osrelease")?,
        boot_id: text("proc/sys/kernel/random/boot_id")?,
        build_id,
        marker: BootMarker::find(&cmdline),
        cmdline,
    })
}

/// What must run after a boot of a candidate.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The kernel of the order.
    pub kernel: &'a OrderKernel,
    /// Digest of the image that was armed.
    pub image_digest: Digest,
    /// The boot id before the reboot.
    pub boot_id_before: &'a str,
    /// The mark that must be on the command line; `None` for boot methods without marks.
    pub marker: Option<BootMarker>,
}

/// Why the kernel that runs is not the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProveError {
    /// No reboot.
    #[error("the board did not reboot: boot id is still {boot_id}, kernel {release} runs")]
    SameBoot {
        /// The boot id.
        boot_id: String,
        /// The release that runs.
        release: String,
    },
    /// Another release.
    #[error("kernel {found} runs, {expected} was asked for")]
    Release {
        /// The release that runs.
        found: String,
        /// The release of the order.
        expected: String,
    },
    /// Another build of the same release.
    #[error("kernel {release} runs with build-id {found}, build-id {expected} was asked for")]
    BuildId {
        /// The release that runs.
        release: String,
        /// The build-id that runs.
        found: BuildId,
        /// The build-id of the order.
        expected: BuildId,
    },
    /// The image that was armed is not the one of the order, and nothing else tells.
    #[error("image {found} was armed, image {expected} was asked for, and no build-id tells more")]
    Image {
        /// Digest of the armed image.
        found: Digest,
        /// Digest in the order.
        expected: Digest,
    },
    /// The boot was not the one that was armed.
    #[error(
        "kernel {release} was not booted for this attempt: the command line has {}, expected {expected}",
        .found.map_or_else(|| "no klab.run=".to_owned(), |m| m.to_string())
    )]
    Marker {
        /// The release that runs.
        release: String,
        /// The mark on the command line.
        found: Option<BootMarker>,
        /// The mark that was armed.
        expected: BootMarker,
    },
    /// Nothing to go by.
    #[error(
        "kernel {release} runs, but neither a build-id nor a mark on the command line proves it: \
         build with --build-id, or use a boot method that sets the command line"
    )]
    NoProof {
        /// The release that runs.
        release: String,
    },
}

/// Proves that the candidate runs.
///
/// The boot id must be a new one, release and mark must agree, and the build-ids must be equal
/// where both sides have one. Otherwise the digest of the armed image and the mark together
/// are the proof.
///
/// # Errors
/// [`ProveError`] says what runs and what was asked for.
pub fn prove(expected: &Expected<'_>, running: &Running) -> Result<Identity, ProveError> {
    let release = || running.release.clone();
    if running.boot_id == expected.boot_id_before {
        let boot_id = running.boot_id.clone();
        return Err(ProveError::SameBoot {
            boot_id,
            release: release(),
        });
    }
    if running.release != expected.kernel.release {
        let expected = expected.kernel.release.clone();
        return Err(ProveError::Release {
            found: release(),
            expected,
        });
    }
    if let (Some(found), Some(wanted)) = (&running.build_id, &expected.kernel.build_id)
        && found != wanted
    {
        let (found, expected) = (found.clone(), wanted.clone());
        return Err(ProveError::BuildId {
            release: release(),
            found,
            expected,
        });
    }
    if let Some(marker) = expected.marker
        && running.marker != Some(marker)
    {
        let found = running.marker;
        return Err(ProveError::Marker {
            release: release(),
            found,
            expected: marker,
        });
    }
    let proof = proof(expected, running)?;
    Ok(Identity {
        release: release(),
        boot_id: running.boot_id.clone(),
        proof,
    })
}

fn proof(expected: &Expected<'_>, running: &Running) -> Result<IdentityProof, ProveError> {
    if let (Some(found), Some(_)) = (&running.build_id, &expected.kernel.build_id) {
        return Ok(IdentityProof::BuildId(found.clone()));
    }
    if expected.marker.is_none() {
        return Err(ProveError::NoProof {
            release: running.release.clone(),
        });
    }
    let (found, wanted) = (expected.image_digest, expected.kernel.image_digest);
    if found != wanted {
        return Err(ProveError::Image {
            found,
            expected: wanted,
        });
    }
    Ok(IdentityProof::ImageDigest(found))
}

/// What a board came back with after a boot of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CameBack {
    /// The candidate runs.
    Candidate(Identity),
    /// The known-good kernel runs: the candidate did not come up, or went down.
    KnownGood {
        /// The release that runs.
        release: String,
    },
    /// The board has not rebooted.
    NotRebooted(ProveError),
    /// Something else runs.
    Other(ProveError),
}

impl CameBack {
    /// The failure of an attempt that waited for the candidate; `None` if it runs.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Candidate(_) => None,
            Self::KnownGood { release } => Some(Failure::kernel(format!(
                "the candidate did not stay up: the board fell back to its known-good kernel {release}"
            ))),
            Self::NotRebooted(why) | Self::Other(why) => {
                Some(Failure::infrastructure(format!("wrong kernel: {why}")))
            }
        }
    }
}

/// Tells what runs after a boot of a candidate. `known_good` is what ran when it was armed.
#[must_use]
pub fn came_back(expected: &Expected<'_>, known_good: &Running, running: &Running) -> CameBack {
    let fell_back = running.release == known_good.release
        && running.build_id == known_good.build_id
        && running.marker.is_none();
    match prove(expected, running) {
        Ok(identity) => CameBack::Candidate(identity),
        Err(why @ ProveError::SameBoot { .. }) => CameBack::NotRebooted(why),
        Err(_) if fell_back => CameBack::KnownGood {
            release: running.release.clone(),
        },
        Err(why) => CameBack::Other(why),
    }
}
