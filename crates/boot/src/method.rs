//! The trait of boot methods and the values that go through it.

use std::path::{Path, PathBuf};

use klab_model::{BootMarker, BuildId, Digest, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::BootError;

/// What a boot method promises, honestly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Capabilities {
    /// A candidate that panics leads back to the known-good kernel.
    pub survives_panic: bool,
    /// A candidate that hangs leads back to the known-good kernel; needs a hardware watchdog.
    pub survives_hang: bool,
    /// The choice of the candidate is used up before the candidate starts.
    pub clears_itself: bool,
    /// The candidate's command line carries the [`BootMarker`].
    pub marks_cmdline: bool,
}

impl Capabilities {
    /// The capabilities that are there, in words for the board's list.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        [
            (self.survives_panic, "survives-panic"),
            (self.survives_hang, "survives-hang"),
            (self.clears_itself, "clears-itself"),
            (self.marks_cmdline, "marks-cmdline"),
        ]
        .into_iter()
        .filter_map(|(there, word)| there.then_some(word))
        .collect()
    }
}

/// The command line of a candidate: `base` without an older mark, a `panic=` so that a panic
/// restarts the board, and the mark.
///
/// `{release}` and `{slot}` in `base` are replaced.
pub(crate) fn candidate_cmdline(base: &str, installed: &Installed, marker: &BootMarker) -> String {
    let base = base
        .replace("{release}", &installed.release)
        .replace("{slot}", &installed.slot);
    let mut words: Vec<&str> = base
        .split_ascii_whitespace()
        .filter(|word| {
            !["BOOT_IMAGE=", "initrd=", BootMarker::NAME]
                .iter()
                .any(|name| word.starts_with(name))
        })
        .collect();
    if !words.iter().any(|word| word.starts_with("panic=")) {
        words.push("panic=10");
    }
    let mark = marker.to_string();
    words.push(&mark);
    words.join(" ")
}

/// A kernel that is ready to be armed. The agent keeps it in its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Name of its folder below the boot folder.
    pub slot: String,
    /// Digest of the canonical package.
    pub digest: Digest,
    /// The release that `uname -r` will print.
    pub release: String,
    /// The build-id that the package names.
    pub build_id: Option<BuildId>,
    /// Digest of the boot image as it was read back.
    pub image_digest: Digest,
    /// The boot image.
    pub image: PathBuf,
    /// The initrd, if one is made.
    pub initrd: Option<PathBuf>,
    /// What people should know, one sentence each.
    pub notes: Vec<String>,
}

/// A way to boot a candidate kernel once.
///
/// Every method may be called again after it failed or after the agent died in it.
pub trait BootMethod: Send {
    /// Its name in configurations.
    fn name(&self) -> &'static str;

    /// What it promises on this board.
    fn capabilities(&self) -> Capabilities;

    /// Looks whether everything is there, before anything is changed.
    ///
    /// # Errors
    /// [`BootError::Preflight`] with everything that is missing, not only the first thing.
    fn preflight(&self) -> Result<(), BootError>;

    /// Installs the canonical package beside the known-good kernel. The same kernel installed
    /// before costs nothing.
    ///
    /// # Errors
    /// [`BootError`]; the board boots as before.
    fn install(&self, kernel: &OrderKernel, package: &Path) -> Result<Installed, BootError>;

    /// Makes the next boot, and only that one, start the candidate. The image is read again
    /// first; everything is on the disk when this returns.
    ///
    /// # Errors
    /// [`BootError`]; the next boot starts the known-good kernel.
    fn arm_once(&self, installed: &Installed, marker: &BootMarker) -> Result<(), BootError>;

    /// Takes the choice of the next boot back. Nothing armed is fine.
    ///
    /// # Errors
    /// [`BootError`] when the choice may still stand.
    fn disarm(&self) -> Result<(), BootError>;

    /// Reboots into what is armed. Returns `Ok` only where the reboot happens in the
    /// background; the caller then stops working.
    ///
    /// # Errors
    /// [`BootError`] when the board does not go down.
    fn reboot(&self) -> Result<(), BootError>;

    /// Reboots into the known-good kernel.
    ///
    /// # Errors
    /// [`BootError`] when the board does not go down.
    fn restore(&self) -> Result<(), BootError>;
}

/// The result of a preflight.
pub(crate) fn verdict(method: &'static str, missing: Vec<String>) -> Result<(), BootError> {
    if missing.is_empty() {
        Ok(())
    } else {
        Err(BootError::Preflight { method, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> BootMarker {
        let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("id");
        BootMarker { run, attempt: 3 }
    }

    fn installed() -> Installed {
        let digest = Digest::of(b"k");
        Installed {
            slot: digest.short(),
            digest,
            release: "6.12.0".to_owned(),
            build_id: None,
            image_digest: digest,
            image: PathBuf::new(),
            initrd: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn candidates_restart_after_a_panic() {
        let line = candidate_cmdline(
            "BOOT_IMAGE=/v root=/dev/vda3 klab.run=old.1 ro",
            &installed(),
            &marker(),
        );
        assert_eq!(line, format!("root=/dev/vda3 ro panic=10 {}", marker()));
        let own = candidate_cmdline("panic=5 a={release} b={slot}", &installed(), &marker());
        let slot = installed().slot;
        assert_eq!(own, format!("panic=5 a=6.12.0 b={slot} {}", marker()));
    }

    #[test]
    fn capabilities_are_listed_in_words() {
        let all = Capabilities {
            survives_panic: true,
            survives_hang: false,
            clears_itself: true,
            marks_cmdline: false,
        };
        assert_eq!(all.words(), ["survives-panic", "clears-itself"]);
    }
}
