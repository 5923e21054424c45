//! GRUB one-shot: `next_entry` in the environment block names the candidate for one boot.
//!
//! The board's `grub.cfg` must source the snippet, follow `next_entry` and clear it with
//! `save_env` before it boots; the block must be on a file system that GRUB writes, such as
//! FAT.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::{BootMarker, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::machine::{base_cmdline, has_watchdog, reboot_machine};
use crate::method::{candidate_cmdline, verdict};
use crate::store::below;
use crate::{BootError, BootMethod, Capabilities, Grubenv, Installed, KernelStore, command, files};

/// The variable that distributions' and our own `grub.cfg` follow once.
const CHOICE: &str = "next_entry";

/// Options of [`GrubOneShot`]; paths are as the board sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GrubOptions {
    /// The environment block.
    pub grubenv: PathBuf,
    /// The file with the candidate's menu entry, which `grub.cfg` sources.
    pub snippet: PathBuf,
    /// Where candidates are kept, on a file system that GRUB reads.
    pub boot_folder: PathBuf,
    /// `boot_folder` as GRUB sees it: without the mount point of its file system.
    pub grub_path: String,
    /// The id of the candidate's menu entry.
    pub menu_id: String,
    /// The candidate's command line; the known-good kernel's if absent. `{release}` and
    /// `{slot}` are replaced, `panic=10` and the mark are added.
    pub cmdline: Option<String>,
    /// A command that makes an initrd from RELEASE MODULES_DIR OUT; none without.
    pub mkinitrd: Vec<String>,
    /// How many kernels stay installed.
    pub keep: usize,
    /// A command that reboots in an orderly way; the system call without.
    pub reboot: Vec<String>,
}

impl Default for GrubOptions {
    fn default() -> Self {
        Self {
            grubenv: "/boot/grub/grubenv".into(),
            snippet: "/boot/klab/candidate.cfg".into(),
            boot_folder: "/boot/klab".into(),
            grub_path: "/klab".to_owned(),
            menu_id: "klab-candidate".to_owned(),
            cmdline: None,
            mkinitrd: Vec::new(),
            keep: 3,
            reboot: Vec::new(),
        }
    }
}

/// Boots a candidate once through GRUB.
#[derive(Debug, Clone)]
pub struct GrubOneShot {
    options: GrubOptions,
    store: KernelStore,
    grubenv: PathBuf,
    snippet: PathBuf,
}

impl GrubOneShot {
    /// The method for the board below `sysroot`.
    #[must_use]
    pub fn new(options: GrubOptions, sysroot: &Path) -> Self {
        let store = KernelStore::new(
            sysroot,
            &options.boot_folder,
            &options.mkinitrd,
            options.keep,
        );
        let grubenv = below(sysroot, &options.grubenv);
        let snippet = below(sysroot, &options.snippet);
        Self {
            options,
            store,
            grubenv,
            snippet,
        }
    }

    /// The menu entry of a candidate. An image that GRUB cannot load restarts the board,
    /// which boots the known-good kernel, because the choice is used up.
    fn entry(&self, installed: &Installed, cmdline: &str) -> Result<String, BootError> {
        let id = &self.options.menu_id;
        let folder = format!("{}/{}", self.options.grub_path, installed.slot);
        let words: Vec<String> = cmdline
            .split_ascii_whitespace()
            .map(quote)
            .collect::<Result<_, _>>()?;
        let cmdline = words.join(" ");
        let boot = match installed.initrd {
            Some(_) => format!("    if initrd {folder}/initrd; then\n      boot\n    fi\n"),
            None => "    boot\n".to_owned(),
        };
        Ok(format!(
            "menuentry \"{id}\" --id {id} {{\n  if linux {folder}/vmlinuz {cmdline}; then\n{boot}  fi\n  \
             echo \"klab: the candidate cannot be loaded, restarting\"\n  reboot\n}}\n"
        ))
    }

    fn choose(&self, value: &str) -> Result<(), BootError> {
        let mut env = Grubenv::read(&self.grubenv)?;
        if env.get(CHOICE).unwrap_or_default() == value {
            return Ok(());
        }
        env.set(CHOICE, value)
            .map_err(|source| BootError::Grubenv {
                path: self.grubenv.clone(),
                source,
            })?;
        env.write(&self.grubenv)?;
        files::sync_fs(&self.grubenv)
    }

    /// What the board's `grub.cfg`, beside the environment block, must say.
    fn config_problems(&self) -> Vec<String> {
        let config = self.grubenv.with_file_name("grub.cfg");
        let Ok(text) = fs::read_to_string(&config) else {
            return vec![format!(
                "{} cannot be read: install GRUB there",
                config.display()
            )];
        };
        let snippet = self
            .snippet
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let wanted = [
            (
                &*snippet,
                format!("source {}/{snippet}", self.options.grub_path),
            ),
            (
                CHOICE,
                format!("follow {CHOICE} once and clear it with save_env"),
            ),
        ];
        wanted
            .into_iter()
            .filter(|(word, _)| !text.contains(word))
            .map(|(_, mend)| format!("{} does not {mend}: add it", config.display()))
            .collect()
    }
}

impl BootMethod for GrubOneShot {
    fn name(&self) -> &'static str {
        "grub"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_panic: true,
            survives_hang: has_watchdog(self.store.sysroot()),
            clears_itself: true,
            marks_cmdline: true,
        }
    }

    fn preflight(&self) -> Result<(), BootError> {
        let mut missing = self.store.missing();
        match Grubenv::read(&self.grubenv) {
            Err(error) => missing.push(error.failure().reason),
            Ok(_) if files::read_only(&self.grubenv) => missing.push(format!(
                "{} is on a read-only file system: mount it read-write",
                self.grubenv.display()
            )),
            Ok(_) => {}
        }
        missing.extend(self.config_problems());
        let id = &self.options.menu_id;
        if id.is_empty()
            || !id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        {
            missing.push(format!(
                "menu-id {id:?} must be letters, digits, '-', '_' and '.'"
            ));
        }
        if let Some(program) = self.options.reboot.first()
            && command::find(program, self.store.sysroot()).is_none()
        {
            missing.push(format!(
                "the reboot command {program} is not there: install it"
            ));
        }
        verdict(self.name(), missing)
    }

    fn install(&self, kernel: &OrderKernel, package: &Path) -> Result<Installed, BootError> {
        self.store.install(kernel, package)
    }

    fn arm_once(&self, installed: &Installed, marker: &BootMarker) -> Result<(), BootError> {
        let base = base_cmdline(self.options.cmdline.as_deref(), self.store.sysroot())?;
        let entry = self.entry(installed, &candidate_cmdline(&base, installed, marker))?;
        self.store.ready(installed)?;
        files::write_atomic(&self.snippet, entry.as_bytes())?;
        files::sync_fs(&self.snippet)?;
        // Last: from here on the next boot is the candidate's.
        self.choose(&self.options.menu_id)
    }

    fn disarm(&self) -> Result<(), BootError> {
        self.choose("")
    }

    fn reboot(&self) -> Result<(), BootError> {
        reboot_machine(self.store.sysroot(), &self.options.reboot)
    }

    fn restore(&self) -> Result<(), BootError> {
        self.disarm()?;
        self.reboot()
    }
}

/// One word for GRUB's script language, which knows shell-like quoting.
fn quote(word: &str) -> Result<String, BootError> {
    if word
        .chars()
        .any(|c| matches!(c, '\'' | '"' | '\\') || c.is_control())
    {
        return Err(BootError::Cmdline {
            word: word.to_owned(),
        });
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:=,@%+~".contains(&b);
    Ok(if word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{word}'")
    })
}
