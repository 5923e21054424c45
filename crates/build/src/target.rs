//! What an architecture is called in a kernel tree, and what is built for it.

use klab_model::Arch;

use crate::BuildError;
use crate::config::DotConfig;

/// An architecture as the kernel's `make` knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    arch: Arch,
}

impl Target {
    /// What klab builds for.
    ///
    /// # Errors
    /// [`BuildError::ArchNotBuilt`] for other architectures.
    pub(crate) fn new(arch: Arch) -> Result<Self, BuildError> {
        match arch {
            Arch::X86_64 | Arch::Riscv64 => Ok(Self { arch }),
            other => Err(BuildError::ArchNotBuilt { arch: other }),
        }
    }

    pub(crate) fn arch(self) -> Arch {
        self.arch
    }

    /// `ARCH=` for make.
    pub(crate) fn make_arch(self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "x86_64",
            _ => "riscv",
        }
    }

    /// The folder below `arch/`.
    pub(crate) fn folder(self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "x86",
            _ => "riscv",
        }
    }

    /// What the programs of a cross toolchain begin with, and their Debian packages.
    pub(crate) fn cross(self) -> (&'static str, &'static str, &'static str) {
        match self.arch {
            Arch::X86_64 => (
                "x86_64-linux-gnu-",
                "gcc-x86-64-linux-gnu",
                "binutils-x86-64-linux-gnu",
            ),
            _ => (
                "riscv64-linux-gnu-",
                "gcc-riscv64-linux-gnu",
                "binutils-riscv64-linux-gnu",
            ),
        }
    }

    /// Whether the machine that builds is of this architecture.
    pub(crate) fn is_native(self) -> bool {
        std::env::consts::ARCH == self.arch.as_str()
    }

    /// The target of make for the boot image, and its file below the build folder.
    pub(crate) fn image(self) -> (&'static str, &'static str) {
        match self.arch {
            Arch::X86_64 => ("bzImage", "arch/x86/boot/bzImage"),
            // Uncompressed: U-Boot and kexec take it as it is, and the package compresses it.
            _ => ("Image", "arch/riscv/boot/Image"),
        }
    }

    /// Whether boards of this architecture may need device trees.
    pub(crate) fn has_dtbs(self) -> bool {
        self.arch != Arch::X86_64
    }

    /// Refuses a configuration for another architecture: `make` would silently drop most of it.
    pub(crate) fn accepts(self, name: &str, text: &str) -> Result<(), BuildError> {
        let config = DotConfig::parse(text);
        let own = |arch: &Target| match arch.arch {
            Arch::X86_64 => config.is_on("X86_64"),
            _ => config.is_on("RISCV") && !config.is_on("32BIT"),
        };
        let others = [
            "X86",
            "RISCV",
            "ARM64",
            "ARM",
            "PPC",
            "S390",
            "LOONGARCH",
            "MIPS",
        ];
        let found = others.into_iter().find(|symbol| config.is_on(symbol));
        match found {
            Some(found) if !own(&self) => Err(BuildError::ConfigBase {
                name: name.to_owned(),
                what: format!("it is for {found}, and the kernel for {}", self.arch),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_of_another_machine_is_refused() {
        let x86 = Target::new(Arch::X86_64).expect("built");
        let riscv = Target::new(Arch::Riscv64).expect("built");
        let text = "CONFIG_X86=y\nCONFIG_X86_64=y\n";
        assert!(x86.accepts("b", text).is_ok());
        let error = riscv.accepts("b", text).expect_err("x86");
        assert!(error.to_string().contains("it is for X86"), "{error}");
        // 32 bits are another machine; a text that names none is completed by make.
        assert!(x86.accepts("b", "CONFIG_X86=y\n").is_err());
        assert!(
            riscv
                .accepts("b", "CONFIG_RISCV=y\nCONFIG_32BIT=y\n")
                .is_err()
        );
        assert!(
            riscv
                .accepts("b", "CONFIG_RISCV=y\nCONFIG_64BIT=y\n")
                .is_ok()
        );
        assert!(riscv.accepts("b", "CONFIG_SMP=y\n").is_ok());
        assert!(Target::new(Arch::Aarch64).is_err());
    }
}
