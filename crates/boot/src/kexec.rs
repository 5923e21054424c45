//! kexec: the running kernel starts the candidate. Nothing on the disk says so, thus any reset
//! boots the known-good kernel.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::{BootMarker, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::machine::{base_cmdline, has_watchdog, reboot_machine};
use crate::method::{candidate_cmdline, verdict};
use crate::{BootError, BootMethod, Capabilities, Installed, KernelStore, command};

/// Options of [`Kexec`]; paths are as the board sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct KexecOptions {
    /// Where candidates are kept.
    pub folder: PathBuf,
    /// The tool of kexec-tools.
    pub tool: String,
    /// The candidate's command line; the known-good kernel's if absent. `{release}` and
    /// `{slot}` are replaced, `panic=10` and the mark are added.
    pub cmdline: Option<String>,
    /// A command that makes an initrd from RELEASE MODULES_DIR OUT; none without.
    pub mkinitrd: Vec<String>,
    /// How many kernels stay installed.
    pub keep: usize,
    /// A command that reboots into the known-good kernel; the system call without.
    pub reboot: Vec<String>,
}

impl Default for KexecOptions {
    fn default() -> Self {
        Self {
            folder: "/var/lib/klab/kernels".into(),
            tool: "kexec".to_owned(),
            cmdline: None,
            mkinitrd: Vec::new(),
            keep: 3,
            reboot: Vec::new(),
        }
    }
}

/// Boots a candidate once through kexec.
#[derive(Debug, Clone)]
pub struct Kexec {
    options: KexecOptions,
    store: KernelStore,
}

impl Kexec {
    /// The method for the board below `sysroot`.
    #[must_use]
    pub fn new(options: KexecOptions, sysroot: &Path) -> Self {
        let store = KernelStore::new(sysroot, &options.folder, &options.mkinitrd, options.keep);
        Self { options, store }
    }

    fn tool(&self, args: &[String]) -> Result<(), BootError> {
        let mut words = vec![self.options.tool.clone()];
        words.extend_from_slice(args);
        command::run(&words)
    }

    /// Whether a kernel is loaded; `None` for a kernel without kexec.
    fn loaded(&self) -> Option<bool> {
        let text = fs::read_to_string(self.store.sysroot().join("sys/kernel/kexec_loaded")).ok()?;
        Some(text.trim() == "1")
    }
}

impl BootMethod for Kexec {
    fn name(&self) -> &'static str {
        "kexec"
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
        let tool = &self.options.tool;
        if command::find(tool, self.store.sysroot()).is_none() {
            missing.push(format!("{tool} is not there: install kexec-tools"));
        }
        if self.loaded().is_none() {
            missing
                .push("the kernel that runs has no kexec: build it with CONFIG_KEXEC".to_owned());
        }
        verdict(self.name(), missing)
    }

    fn install(&self, kernel: &OrderKernel, package: &Path) -> Result<Installed, BootError> {
        self.store.install(kernel, package)
    }

    fn arm_once(&self, installed: &Installed, marker: &BootMarker) -> Result<(), BootError> {
        self.store.ready(installed)?;
        let base = base_cmdline(self.options.cmdline.as_deref(), self.store.sysroot())?;
        let cmdline = candidate_cmdline(&base, installed, marker);
        let mut args = vec![
            "-l".to_owned(),
            installed.image.to_string_lossy().into_owned(),
        ];
        if let Some(initrd) = &installed.initrd {
            args.push(format!("--initrd={}", initrd.display()));
        }
        args.push(format!("--command-line={cmdline}"));
        let with = |call: &str| [&[call.to_owned()], args.as_slice()].concat();
        // kexec_file_load first; kernels and images without it take the older system call.
        self.tool(&with("-s")).or_else(|_| self.tool(&with("-c")))
    }

    fn disarm(&self) -> Result<(), BootError> {
        if self.loaded() == Some(true) {
            self.tool(&["-u".to_owned()])
        } else {
            Ok(())
        }
    }

    fn reboot(&self) -> Result<(), BootError> {
        if self.loaded() != Some(true) {
            return Err(BootError::NotArmed);
        }
        rustix::fs::sync();
        self.tool(&["-e".to_owned()])
    }

    fn restore(&self) -> Result<(), BootError> {
        reboot_machine(self.store.sysroot(), &self.options.reboot)
    }
}
