//! U-Boot one-shot: a file beside the boot script names the candidate for one boot.
//!
//! The board's U-Boot runs `configs/boot/uboot.cmd` before what it boots by default. Where the
//! file `next` is there, the script deletes it and starts the candidate's extlinux entry. The
//! file must be on FAT, the file system that U-Boot deletes files from.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::{BootMarker, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::machine::{base_cmdline, has_watchdog, reboot_machine};
use crate::method::{candidate_cmdline, verdict};
use crate::store::below;
use crate::{BootError, BootMethod, Capabilities, Installed, KernelStore, command, files};

/// The script is a few hundred bytes; who names another file is told.
const MAX_SCRIPT: usize = 1 << 20;

/// What U-Boot's script does to take the choice back.
const TAKES_BACK: &str = "fatrm";

/// Options of [`UbootOneShot`]; paths are as the board sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UbootOptions {
    /// The script image that U-Boot runs, made of `configs/boot/uboot.cmd`.
    pub script: PathBuf,
    /// Where candidates are kept, on a FAT file system that U-Boot reads. The file `next` and
    /// the candidate's entry `candidate.conf` are there, too.
    pub boot_folder: PathBuf,
    /// `boot_folder` as U-Boot sees it: without the mount point of its file system. The script
    /// has it, too.
    pub uboot_path: String,
    /// A device tree of the candidate as U-Boot sees it, such as `/dtbs/board.dtb`; the one
    /// that U-Boot has if absent.
    pub device_tree: Option<String>,
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

impl Default for UbootOptions {
    fn default() -> Self {
        Self {
            script: "/boot/boot.scr".into(),
            boot_folder: "/boot/klab".into(),
            uboot_path: "/klab".to_owned(),
            device_tree: None,
            cmdline: None,
            mkinitrd: Vec::new(),
            keep: 3,
            reboot: Vec::new(),
        }
    }
}

/// Boots a candidate once through U-Boot.
#[derive(Debug, Clone)]
pub struct UbootOneShot {
    options: UbootOptions,
    store: KernelStore,
    script: PathBuf,
    next: PathBuf,
    entry: PathBuf,
}

impl UbootOneShot {
    /// The method for the board below `sysroot`.
    #[must_use]
    pub fn new(options: UbootOptions, sysroot: &Path) -> Self {
        let store = KernelStore::new(
            sysroot,
            &options.boot_folder,
            &options.mkinitrd,
            options.keep,
        );
        let folder = below(sysroot, &options.boot_folder);
        Self {
            store,
            script: below(sysroot, &options.script),
            next: folder.join("next"),
            entry: folder.join("candidate.conf"),
            options,
        }
    }

    /// The candidate's entry, as `doc/README.pxe` of U-Boot describes it.
    fn entry(&self, installed: &Installed, cmdline: &str) -> Result<String, BootError> {
        let folder = format!("{}/{}", self.options.uboot_path, installed.slot);
        let mut lines = vec![
            "default klab-candidate".to_owned(),
            "label klab-candidate".to_owned(),
            format!("  kernel {folder}/vmlinuz"),
        ];
        if installed.initrd.is_some() {
            lines.push(format!("  initrd {folder}/initrd"));
        }
        if let Some(tree) = &self.options.device_tree {
            lines.push(format!("  fdt {tree}"));
        }
        lines.push(format!("  append {}", plain(cmdline)?));
        Ok(lines.join("\n") + "\n")
    }

    /// What the board's script must say.
    fn script_problems(&self) -> Vec<String> {
        let place = self.script.display();
        let Ok(bytes) = files::head(&self.script, MAX_SCRIPT) else {
            return vec![format!(
                "{place} cannot be read: make it of configs/boot/uboot.cmd with mkimage"
            )];
        };
        let text = String::from_utf8_lossy(&bytes);
        let path = &self.options.uboot_path;
        [
            format!("{TAKES_BACK} ${{devtype}} ${{devnum}}:${{distro_bootpart}} {path}/next"),
            format!("{path}/candidate.conf"),
        ]
        .into_iter()
        .filter(|words| !text.contains(words))
        .map(|words| {
            format!(
                "{place} does not say `{words}`: make it of configs/boot/uboot.cmd with mkimage"
            )
        })
        .collect()
    }
}

impl BootMethod for UbootOneShot {
    fn name(&self) -> &'static str {
        "uboot"
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
        missing.extend(self.script_problems());
        let folder = self.store.folder();
        if folder.exists() && !files::is_fat(folder) && self.store.sysroot() == Path::new("/") {
            missing.push(format!(
                "{} is not on a FAT file system, the only one that U-Boot deletes files from",
                folder.display()
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
        files::write_atomic(&self.entry, entry.as_bytes())?;
        files::sync_fs(&self.entry)?;
        // Last: from here on the next boot is the candidate's.
        files::write_atomic(&self.next, b"klab-candidate\n")?;
        files::sync_fs(&self.next)
    }

    fn disarm(&self) -> Result<(), BootError> {
        match fs::remove_file(&self.next) {
            Ok(()) => files::sync_fs(self.store.folder()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(BootError::io("remove", &self.next)(error)),
        }
    }

    fn reboot(&self) -> Result<(), BootError> {
        reboot_machine(self.store.sysroot(), &self.options.reboot)
    }

    fn restore(&self) -> Result<(), BootError> {
        self.disarm()?;
        self.reboot()
    }
}

/// A command line that U-Boot takes as it is: it would replace `$` and end the line at a break.
fn plain(cmdline: &str) -> Result<&str, BootError> {
    let strange = |c: char| matches!(c, '$' | '\\') || c.is_control();
    match cmdline.split(' ').find(|word| word.contains(strange)) {
        None => Ok(cmdline),
        Some(word) => Err(BootError::Cmdline {
            word: word.to_owned(),
        }),
    }
}
