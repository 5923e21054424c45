//! Hooks: commands for boards that boot in their own way, such as U-Boot scripts or a lab host
//! that restarts a virtual board.

use std::path::{Path, PathBuf};

use klab_model::{BootMarker, OrderKernel};
use serde::{Deserialize, Serialize};

use crate::method::verdict;
use crate::{BootError, BootMethod, Capabilities, Installed, KernelStore, command};

/// What stands for a part of the kernel in a command.
const KERNEL_WORDS: [&str; 5] = ["kernel", "initrd", "release", "digest", "slot"];
/// What stands for a part of the attempt in a command.
const ATTEMPT_WORDS: [&str; 3] = ["run", "attempt", "marker"];

/// Options of [`Hooks`]: program and arguments each, never through a shell.
///
/// `{kernel}` (the boot image), `{initrd}` (empty without one), `{release}`, `{digest}` and
/// `{slot}` are replaced in `install` and `arm`; `{run}`, `{attempt}` and `{marker}`
/// (`klab.run=RUN.ATTEMPT`) in `arm`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HookOptions {
    /// Where candidates are kept, as the board sees it.
    pub folder: PathBuf,
    /// Ends well if everything is there.
    #[serde(default)]
    pub preflight: Vec<String>,
    /// Runs after a kernel was unpacked into `folder`.
    #[serde(default)]
    pub install: Vec<String>,
    /// Makes the next boot the candidate's.
    pub arm: Vec<String>,
    /// Takes that back.
    #[serde(default)]
    pub disarm: Vec<String>,
    /// Reboots into what is armed.
    pub reboot: Vec<String>,
    /// Reboots into the known-good kernel; `disarm` and `reboot` without.
    #[serde(default)]
    pub restore: Vec<String>,
    /// A command that makes an initrd from RELEASE MODULES_DIR OUT; none without.
    #[serde(default)]
    pub mkinitrd: Vec<String>,
    /// How many kernels stay installed; 3 if absent.
    #[serde(default = "three")]
    pub keep: usize,
    /// What the commands promise: a panic leads back to the known-good kernel.
    #[serde(default)]
    pub survives_panic: bool,
    /// A hang leads back to the known-good kernel.
    #[serde(default)]
    pub survives_hang: bool,
    /// The choice is used up before the candidate starts.
    #[serde(default)]
    pub clears_itself: bool,
    /// `arm` puts `{marker}` on the candidate's command line.
    #[serde(default)]
    pub marks_cmdline: bool,
}

fn three() -> usize {
    3
}

/// Boots a candidate through commands.
#[derive(Debug, Clone)]
pub struct Hooks {
    options: HookOptions,
    store: KernelStore,
}

impl Hooks {
    /// The method for the board below `sysroot`.
    ///
    /// # Errors
    /// [`BootError::Config`] for a missing command or a placeholder that has no meaning there.
    pub fn new(options: HookOptions, sysroot: &Path) -> Result<Self, BootError> {
        let kernel = KERNEL_WORDS.as_slice();
        let all = [KERNEL_WORDS.as_slice(), ATTEMPT_WORDS.as_slice()].concat();
        check("preflight", &options.preflight, &[], false)?;
        check("install", &options.install, kernel, false)?;
        check("arm", &options.arm, &all, true)?;
        check("disarm", &options.disarm, &[], false)?;
        check("reboot", &options.reboot, &[], true)?;
        check("restore", &options.restore, &[], false)?;
        if !options.folder.is_absolute() {
            let found = options.folder.display();
            let problem = format!("hooks need an absolute `folder`, found \"{found}\"");
            return Err(BootError::Config { problem });
        }
        let store = KernelStore::new(sysroot, &options.folder, &options.mkinitrd, options.keep);
        Ok(Self { options, store })
    }
}

impl BootMethod for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            survives_panic: self.options.survives_panic,
            survives_hang: self.options.survives_hang,
            clears_itself: self.options.clears_itself,
            marks_cmdline: self.options.marks_cmdline,
        }
    }

    fn preflight(&self) -> Result<(), BootError> {
        let mut missing = self.store.missing();
        let o = &self.options;
        for hook in [
            &o.preflight,
            &o.install,
            &o.arm,
            &o.disarm,
            &o.reboot,
            &o.restore,
        ] {
            if let Some(program) = hook.first()
                && command::find(program, Path::new("/")).is_none()
            {
                missing.push(format!("the command {program} is not there: install it"));
            }
        }
        if missing.is_empty()
            && let Err(error) = run(&o.preflight, &[])
        {
            missing.push(error.to_string());
        }
        verdict(self.name(), missing)
    }

    fn install(&self, kernel: &OrderKernel, package: &Path) -> Result<Installed, BootError> {
        let installed = self.store.install(kernel, package)?;
        run(&self.options.install, &kernel_values(&installed))?;
        Ok(installed)
    }

    fn arm_once(&self, installed: &Installed, marker: &BootMarker) -> Result<(), BootError> {
        self.store.ready(installed)?;
        let mut values = kernel_values(installed);
        values.extend([
            ("run", marker.run.to_string()),
            ("attempt", marker.attempt.to_string()),
            ("marker", marker.to_string()),
        ]);
        run(&self.options.arm, &values)
    }

    fn disarm(&self) -> Result<(), BootError> {
        run(&self.options.disarm, &[])
    }

    fn reboot(&self) -> Result<(), BootError> {
        rustix::fs::sync();
        run(&self.options.reboot, &[])
    }

    fn restore(&self) -> Result<(), BootError> {
        if self.options.restore.is_empty() {
            self.disarm()?;
            return self.reboot();
        }
        rustix::fs::sync();
        run(&self.options.restore, &[])
    }
}

fn kernel_values(installed: &Installed) -> Vec<(&'static str, String)> {
    let initrd = installed.initrd.as_ref().map(|p| p.display().to_string());
    vec![
        ("kernel", installed.image.display().to_string()),
        ("initrd", initrd.unwrap_or_default()),
        ("release", installed.release.clone()),
        ("digest", installed.digest.to_string()),
        ("slot", installed.slot.clone()),
    ]
}

/// Replaces placeholders and runs the command; an absent hook does nothing.
fn run(hook: &[String], values: &[(&str, String)]) -> Result<(), BootError> {
    if hook.is_empty() {
        return Ok(());
    }
    let fill = |word: &String| {
        values.iter().fold(word.clone(), |word, (name, value)| {
            word.replace(&format!("{{{name}}}"), value)
        })
    };
    command::run(&hook.iter().map(fill).collect::<Vec<_>>())
}

/// Refuses a required hook that is absent and placeholders that nothing stands for.
fn check(name: &str, hook: &[String], known: &[&str], required: bool) -> Result<(), BootError> {
    if required && hook.is_empty() {
        let problem = format!("hooks need `{name}`: a list of program and arguments");
        return Err(BootError::Config { problem });
    }
    let all = KERNEL_WORDS.iter().chain(&ATTEMPT_WORDS);
    for word in all.filter(|word| !known.contains(word)) {
        let placeholder = format!("{{{word}}}");
        if hook.iter().any(|arg| arg.contains(&placeholder)) {
            let problem = format!("{placeholder} has no value in hook `{name}`: take it out");
            return Err(BootError::Config { problem });
        }
    }
    Ok(())
}
