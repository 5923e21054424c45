//! Processor architectures that klab knows, under the kernel's own names.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};

/// The architecture of a kernel or a board, named as `uname -m` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit RISC-V.
    Riscv64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// Every architecture, in the order in which help texts list them.
    pub const ALL: [Arch; 3] = [Arch::X86_64, Arch::Riscv64, Arch::Aarch64];

    /// The name that `uname -m` prints.
    pub const fn as_str(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Riscv64 => "riscv64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// Reads a name as `uname -m`, Debian (`amd64`, `arm64`) or the kernel tree (`x86`,
    /// `riscv`) spell it.
    ///
    /// # Errors
    /// [`InvalidText`] for a name that klab does not know.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        match text {
            "x86_64" | "amd64" | "x86" => Ok(Arch::X86_64),
            "riscv64" | "riscv" => Ok(Arch::Riscv64),
            "aarch64" | "arm64" => Ok(Arch::Aarch64),
            _ => Err(InvalidText::new(
                "architecture",
                text,
                "x86_64, riscv64 or aarch64",
            )),
        }
    }
}

text_type!(Arch);
display_as_str!(Arch);
