//! What can go wrong on the way to a booted candidate.

use std::io;
use std::path::PathBuf;

use klab_kernel::{HeaderError, UnpackError};
use klab_model::{Arch, Digest, Failure};

use crate::GrubenvError;

/// Why a boot method could not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootError {
    /// Things that a boot method needs are missing.
    #[error("boot method {method} cannot be used: {}", .missing.join("; "))]
    Preflight {
        /// The boot method.
        method: &'static str,
        /// Each thing that is missing, with the mend.
        missing: Vec<String>,
    },
    /// The configuration makes no sense.
    #[error("boot configuration: {problem}")]
    Config {
        /// What was found and what is expected.
        problem: String,
    },
    /// No room.
    #[error(
        "disk full: {} has {} MiB free, {} MiB are needed for the kernel; remove files there",
        .path.display(), .free >> 20, (.needed >> 20) + 1
    )]
    DiskFull {
        /// A folder on the full file system.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The package was refused.
    #[error("kernel package {}", .path.display())]
    Package {
        /// The package.
        path: PathBuf,
        /// Why.
        #[source]
        source: UnpackError,
    },
    /// The package or its image is not the one of the order.
    #[error("{what} has digest {found}, the order wants {expected}: fetch the kernel again")]
    Digest {
        /// The package or the boot image.
        what: String,
        /// Digest of what is there.
        found: Digest,
        /// Digest in the order.
        expected: Digest,
    },
    /// The package is of another release than the order says.
    #[error("kernel package is of release {found}, the order wants {expected}")]
    Release {
        /// Release in the package.
        found: String,
        /// Release in the order.
        expected: String,
    },
    /// The boot image is for another machine.
    #[error("boot image is for {found}, the order wants {expected}")]
    Arch {
        /// Arch of the image.
        found: Arch,
        /// Arch in the order.
        expected: Arch,
    },
    /// The boot image would not boot.
    #[error("boot image {}", .path.display())]
    Image {
        /// The image.
        path: PathBuf,
        /// Why.
        #[source]
        source: HeaderError,
    },
    /// The candidate's modules would overwrite those of the board's own kernel.
    #[error(
        "{} belongs to a kernel of the board and differs from the candidate's ({example}): \
         build the candidate with another CONFIG_LOCALVERSION", .path.display()
    )]
    ReleaseTaken {
        /// The modules folder.
        path: PathBuf,
        /// A file that differs.
        example: String,
    },
    /// A command failed.
    #[error("{command} {outcome}{}", .stderr.as_ref().map(|line| format!(": {line}")).unwrap_or_default())]
    Command {
        /// Program and arguments.
        command: String,
        /// How it ended.
        outcome: String,
        /// Its last words.
        stderr: Option<String>,
    },
    /// The environment block could not be used.
    #[error("GRUB environment block {}", .path.display())]
    Grubenv {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: GrubenvError,
    },
    /// A command line that GRUB cannot pass on.
    #[error(
        "command line word {word:?} cannot go through GRUB unchanged: take out quotes, \
         backslashes and control characters"
    )]
    Cmdline {
        /// The word.
        word: String,
    },
    /// Nothing is armed.
    #[error("no kernel is loaded for kexec: arm one first")]
    NotArmed,
    /// A reboot was asked for below a sysroot that is not the machine's own.
    #[error("refusing to reboot this machine for the sysroot {}", .sysroot.display())]
    ForeignSysroot {
        /// The sysroot.
        sysroot: PathBuf,
    },
}

impl BootError {
    /// An I/O error with its place; no room is told apart.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Whether a full disk is the cause.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let full = |e: &io::Error| e.kind() == io::ErrorKind::StorageFull;
        match self {
            Self::DiskFull { .. } => true,
            Self::Io { source, .. } => full(source),
            Self::Package {
                source: UnpackError::Write { source, .. },
                ..
            } => full(source),
            _ => false,
        }
    }

    /// The failure of an attempt that ends here. The lab is to blame, except for a kernel
    /// that cannot be installed on any board like this.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let mut reason = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            reason = format!("{reason}: {cause}");
            source = cause.source();
        }
        match self {
            Self::ReleaseTaken { .. } | Self::Image { .. } | Self::Arch { .. } => {
                Failure::kernel(reason)
            }
            _ => Failure::infrastructure(reason),
        }
    }
}
