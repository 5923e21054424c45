//! The machine that runs: its command line, its watchdog, its reboot.

use std::fs;
use std::path::Path;

use crate::{BootError, command};

/// The configured command line, or that of the kernel that runs while the candidate is armed.
pub(crate) fn base_cmdline(configured: Option<&str>, sysroot: &Path) -> Result<String, BootError> {
    match configured {
        Some(cmdline) => Ok(cmdline.to_owned()),
        None => {
            let path = sysroot.join("proc/cmdline");
            fs::read_to_string(&path).map_err(BootError::io("read", path))
        }
    }
}

/// What the kernel's own watchdog calls itself; it hangs with the kernel.
const SOFTDOG: &str = "Software Watchdog";

/// Whether the board has a hardware watchdog.
pub(crate) fn has_watchdog(sysroot: &Path) -> bool {
    let Ok(dir) = fs::read_dir(sysroot.join("sys/class/watchdog")) else {
        return false;
    };
    // Kernels without CONFIG_WATCHDOG_SYSFS tell no identity.
    let identity = |dog: &fs::DirEntry| fs::read_to_string(dog.path().join("identity"));
    dir.flatten()
        .any(|dog| identity(&dog).map_or(true, |name| name.trim() != SOFTDOG))
}

/// Reboots by the command, or by the system call where there is none or it fails: a board
/// must not stay where it is because a service does not stop.
pub(crate) fn reboot_machine(sysroot: &Path, command: &[String]) -> Result<(), BootError> {
    rustix::fs::sync();
    let failed = if command.is_empty() {
        None
    } else {
        Some(command::run(command))
    };
    match failed {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) if sysroot != Path::new("/") => Err(error),
        _ if sysroot != Path::new("/") => Err(BootError::ForeignSysroot {
            sysroot: sysroot.to_owned(),
        }),
        _ => rustix::system::reboot(rustix::system::RebootCommand::Restart)
            .map_err(|e| BootError::io("reboot through", "/")(e.into())),
    }
}
