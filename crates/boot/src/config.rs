//! The choice of a boot method in the agent's configuration.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::grub::GrubOptions;
use crate::hooks::HookOptions;
use crate::kexec::KexecOptions;
use crate::uboot::UbootOptions;
use crate::{BootError, BootMethod, GrubOneShot, Hooks, Kexec, UbootOneShot};

/// A boot method and its options, chosen by the key `method`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum BootConfig {
    /// GRUB one-shot.
    Grub(GrubOptions),
    /// U-Boot one-shot.
    Uboot(UbootOptions),
    /// kexec.
    Kexec(KexecOptions),
    /// Commands.
    Hooks(HookOptions),
}

impl BootConfig {
    /// Builds the method for the board below `sysroot`, `/` on a real one.
    ///
    /// # Errors
    /// [`BootError::Config`] when options make no sense together.
    pub fn build(&self, sysroot: &Path) -> Result<Box<dyn BootMethod>, BootError> {
        Ok(match self {
            Self::Grub(options) => Box::new(GrubOneShot::new(options.clone(), sysroot)),
            Self::Uboot(options) => Box::new(UbootOneShot::new(options.clone(), sysroot)),
            Self::Kexec(options) => Box::new(Kexec::new(options.clone(), sysroot)),
            Self::Hooks(options) => Box::new(Hooks::new(options.clone(), sysroot)?),
        })
    }
}
