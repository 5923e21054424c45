//! What goes into a base image; its digest names the cached image.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Machine, Result};

/// Packages every board has: init, tools to boot with, workloads, tracing.
const BASE_PACKAGES: [&str; 16] = [
    "libc6",
    "base-files",
    "base-passwd",
    "busybox-static",
    "bash",
    "coreutils",
    "sed",
    "grep",
    "util-linux",
    "mount",
    "procps",
    "iproute2",
    "kmod",
    "rt-tests",
    "stress-ng",
    "trace-cmd",
];

/// Kernel command line of the known-good kernel, and a good one for candidates.
///
/// `root=` names the third partition of the first disk, which also works for kernels without an
/// initrd. `panic=10` restarts after a panic; `klab.watchdog=` makes the initrd arm the
/// watchdog (seconds), so that a boot that hangs ends.
pub const CMDLINE: &str =
    "root=/dev/vda3 ro console=ttyS0 quiet loglevel=4 panic=10 klab.watchdog=120";

/// Every text that is put into the image; a change of one makes another image.
const TEXTS: [&str; 9] = [
    include_str!("files/inittab"),
    include_str!("files/rcS"),
    include_str!("files/rcK"),
    include_str!("files/run-agent"),
    include_str!("files/feed-watchdog"),
    include_str!("files/mkinitrd"),
    include_str!("files/initrd-init"),
    include_str!("files/grub.cfg"),
    include_str!("../../../configs/boot/uboot.cmd"),
];

/// What a base image is made of. The agent is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The machine it is for.
    pub machine: Machine,
    /// Debian release by code name.
    pub suite: String,
    /// Packages besides the fixed set (busybox, util-linux, rt-tests, stress-ng, trace-cmd ...).
    pub packages: Vec<String>,
    /// Package of the known-good kernel; a metapackage is followed to the real one.
    pub kernel_package: String,
    /// Size of the root file system in MiB, 512 to 65536. The image file grows as it is used.
    pub root_mib: u32,
    /// Size of the boot partition in MiB, 64 to 2048.
    pub boot_mib: u32,
    /// Apt sources to build from; by default those of the host.
    pub sources: Option<PathBuf>,
}

impl Recipe {
    /// The recipe of a machine: Debian with its own kernel.
    #[must_use]
    pub fn of(machine: Machine) -> Self {
        Self {
            machine,
            suite: machine.suite().to_owned(),
            packages: Vec::new(),
            kernel_package: machine.kernel_package().to_owned(),
            root_mib: 4096,
            boot_mib: 256,
            sources: None,
        }
    }

    /// Checks the sizes.
    ///
    /// # Errors
    /// [`Error::Range`] names the field and the range.
    pub fn validate(&self) -> Result<()> {
        in_range("root_mib", self.root_mib, 512..=65536, "512 to 65536")?;
        in_range("boot_mib", self.boot_mib, 64..=2048, "64 to 2048")
    }

    /// All packages of the root file system.
    pub(crate) fn all_packages(&self) -> Vec<&str> {
        let more = self.packages.iter().map(String::as_str);
        let own = self.machine.packages().iter().copied();
        BASE_PACKAGES.into_iter().chain(own).chain(more).collect()
    }

    /// Names the image: the first 16 hexadecimal digits of a BLAKE3 digest over everything in it
    /// except the point versions of packages.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = blake3::Hasher::new();
        let root = self.root_mib.to_string();
        let boot = self.boot_mib.to_string();
        let fields = [
            self.machine.as_str(),
            self.suite.as_str(),
            &self.kernel_package,
            &root,
            &boot,
            CMDLINE,
        ];
        hash.update(&crate::disk::VERSION.to_le_bytes());
        for part in fields.into_iter().chain(self.all_packages()).chain(TEXTS) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().to_hex()[..16].to_owned()
    }
}

/// Checks a number against a range.
pub(crate) fn in_range(
    field: &'static str,
    found: u32,
    range: std::ops::RangeInclusive<u32>,
    expected: &'static str,
) -> Result<()> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(Error::Range {
        field,
        found: found.into(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_follows_the_content() {
        let plain = Recipe::of(Machine::X86_64);
        let more = Recipe {
            packages: vec!["zstd".to_owned()],
            ..Recipe::of(Machine::X86_64)
        };
        let larger = Recipe {
            root_mib: 8192,
            ..Recipe::of(Machine::X86_64)
        };
        assert_eq!(plain.digest(), Recipe::of(Machine::X86_64).digest());
        assert_ne!(plain.digest(), more.digest());
        assert_ne!(plain.digest(), larger.digest());
        assert_ne!(plain.digest(), Recipe::of(Machine::Riscv64).digest());
        assert_eq!(plain.digest().len(), 16);
    }

    #[test]
    fn sizes_are_checked() {
        let error = Recipe {
            boot_mib: 10,
            ..Recipe::of(Machine::X86_64)
        }
        .validate()
        .expect_err("too small");
        assert_eq!(error.to_string(), "boot_mib is 10, expected 64 to 2048");
    }
}
