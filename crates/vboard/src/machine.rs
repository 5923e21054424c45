//! The kinds of machines that boards can be, and everything that differs between them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::accel::AccelKind;

/// A machine that QEMU emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Machine {
    /// An x86-64 PC with a BIOS, started by GRUB.
    #[default]
    #[serde(rename = "x86_64")]
    X86_64,
    /// A riscv64 `virt` machine with OpenSBI, started by U-Boot.
    Riscv64,
}

impl Machine {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Riscv64];

    /// The architecture as the kernel's `uname -m` names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Riscv64 => "riscv64",
        }
    }

    /// The boot method of an agent on such a board, as its configuration names it.
    #[must_use]
    pub const fn boot_method(self) -> &'static str {
        match self {
            Self::X86_64 => "grub",
            Self::Riscv64 => "uboot",
        }
    }

    /// The Debian architecture.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Riscv64 => "riscv64",
        }
    }

    /// The first Debian release that serves it with all packages of a board.
    pub(crate) const fn suite(self) -> &'static str {
        match self {
            Self::X86_64 => "bookworm",
            Self::Riscv64 => "trixie",
        }
    }

    /// The package of the known-good kernel.
    pub(crate) const fn kernel_package(self) -> &'static str {
        match self {
            Self::X86_64 => "linux-image-cloud-amd64",
            Self::Riscv64 => "linux-image-riscv64",
        }
    }

    /// Packages that boards of this kind have besides those of all boards.
    pub(crate) const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["kexec-tools"],
            // Debian has no kexec-tools for it.
            Self::Riscv64 => &[],
        }
    }

    pub(crate) const fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Riscv64 => "qemu-system-riscv64",
        }
    }

    /// QEMU's arguments for the machine and what it starts from.
    pub(crate) const fn board_args(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["-machine", "pc"],
            Self::Riscv64 => &[
                "-machine",
                "virt",
                "-bios",
                crate::uboot::OPENSBI,
                "-kernel",
                crate::uboot::UBOOT,
            ],
        }
    }

    /// QEMU's arguments for an accelerator.
    pub(crate) const fn accel_args(self, accel: AccelKind) -> [&'static str; 4] {
        match (accel, self) {
            (AccelKind::Kvm, _) => ["-accel", "kvm", "-cpu", "host"],
            (AccelKind::Tcg, Self::X86_64) => ["-accel", "tcg,thread=multi", "-cpu", "Nehalem"],
            (AccelKind::Tcg, Self::Riscv64) => ["-accel", "tcg,thread=multi", "-cpu", "rv64"],
        }
    }

    /// Whether the host's own processor could run its code.
    pub(crate) fn is_of_host(self) -> bool {
        std::env::consts::ARCH == self.as_str()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Machine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|machine| machine.as_str() == text)
            .ok_or_else(|| Error::Machine {
                found: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read_as_they_are_written() {
        for machine in Machine::ALL {
            assert_eq!(machine.to_string().parse::<Machine>().ok(), Some(machine));
            let json = serde_json::to_string(&machine).expect("JSON");
            assert_eq!(json, format!("\"{machine}\""));
        }
        let error = "arm".parse::<Machine>().expect_err("no such machine");
        assert_eq!(
            error.to_string(),
            "\"arm\" is no machine of virtual boards: expected x86_64 or riscv64"
        );
    }
}
