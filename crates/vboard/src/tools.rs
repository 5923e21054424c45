//! Host tools: which are needed, which are missing, how to get them.
//!
//! Everything comes from Debian packages. [`check`] looks; [`install_missing`] also mends, which
//! needs root (or a `sudo` that does not ask).

use std::path::Path;

use crate::command::{find, run, tool};
use crate::{Error, Machine, Result};

/// Where a tool is found on a Debian host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// An executable in PATH or the system folders.
    Program(&'static str),
    /// A file that a package installs at a fixed place.
    File(&'static str),
}

/// What building the kernels of the demo's series takes, its source included.
const FOR_BUILDS: [(Place, &str); 12] = [
    (Place::Program("git"), "git"),
    (Place::Program("make"), "make"),
    (Place::Program("gcc"), "gcc"),
    (Place::File("/usr/include/stdio.h"), "libc6-dev"),
    (Place::Program("flex"), "flex"),
    (Place::Program("bison"), "bison"),
    (Place::Program("bc"), "bc"),
    (Place::File("/usr/include/gelf.h"), "libelf-dev"),
    (Place::Program("depmod"), "kmod"),
    (Place::Program("xz"), "xz-utils"),
    (Place::Program("ccache"), "ccache"),
    (Place::File(LINUX_SOURCE), "linux-source-6.1"),
];

/// The source of Linux 6.1, as Debian's package `linux-source-6.1` leaves it.
pub const LINUX_SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// What every board needs on its host, each with the Debian package that brings it.
const NEEDED: [(Place, &str); 14] = [
    (Place::Program("qemu-img"), "qemu-utils"),
    (Place::Program("mmdebstrap"), "mmdebstrap"),
    (Place::Program("mke2fs"), "e2fsprogs"),
    (Place::Program("mcopy"), "mtools"),
    (Place::Program("mformat"), "mtools"),
    (Place::Program("sfdisk"), "fdisk"),
    (Place::Program("busybox"), "busybox-static"),
    (Place::Program("depmod"), "kmod"),
    (Place::Program("setpriv"), "util-linux"),
    (Place::Program("dpkg-deb"), "dpkg"),
    (Place::Program("apt-get"), "apt"),
    (Place::Program("apt-cache"), "apt"),
    (Place::Program("tar"), "tar"),
    (Place::Program("cp"), "coreutils"),
];

/// What x86-64 boards need besides.
const FOR_X86_64: [(Place, &str); 3] = [
    (Place::Program("qemu-system-x86_64"), "qemu-system-x86"),
    (Place::Program("grub-mkimage"), "grub-common"),
    (Place::File(crate::grub::BOOT_IMG), "grub-pc-bin"),
];

/// What riscv64 boards need besides.
const FOR_RISCV64: [(Place, &str); 4] = [
    (Place::Program("qemu-system-riscv64"), "qemu-system-misc"),
    (Place::File(crate::uboot::OPENSBI), "opensbi"),
    (Place::File(crate::uboot::UBOOT), "u-boot-qemu"),
    (Place::Program("mkimage"), "u-boot-tools"),
];

/// All that boards of a machine need.
fn needed(machine: Machine) -> Vec<(Place, &'static str)> {
    let own: &[_] = match machine {
        Machine::X86_64 => &FOR_X86_64,
        Machine::Riscv64 => &FOR_RISCV64,
    };
    [&NEEDED, own].concat()
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Program(name) | Self::File(name) => name,
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Program(name) => find(name).is_some(),
            Self::File(path) => Path::new(path).is_file(),
        }
    }
}

/// The apt-get command that installs these packages, each named once.
#[must_use]
pub fn install_line(packages: &[&str]) -> String {
    format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    )
}

/// The tools that are missing and their packages, without doubles.
fn missing(needed: &[(Place, &'static str)]) -> (Vec<String>, Vec<&'static str>) {
    missing_of(needed, Place::is_there)
}

fn missing_of(
    needed: &[(Place, &'static str)],
    there: impl Fn(Place) -> bool,
) -> (Vec<String>, Vec<&'static str>) {
    let (mut tools, mut packages) = (Vec::new(), Vec::new());
    for &(place, package) in needed.iter().filter(|(place, _)| !there(*place)) {
        tools.push(place.name().to_owned());
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    (tools, packages)
}

/// Checks that every host tool for boards of a machine is there.
///
/// # Errors
/// [`Error::MissingTools`] names all that are missing and the one command that installs them.
pub fn check(machine: Machine) -> Result<()> {
    check_list(&needed(machine))
}

fn check_list(needed: &[(Place, &'static str)]) -> Result<()> {
    let (tools, packages) = missing(needed);
    if tools.is_empty() {
        return Ok(());
    }
    Err(Error::MissingTools {
        tools,
        install: install_line(&packages),
    })
}

/// How often apt-get is asked: where packages of another Debian release are installed, it may
/// take one away to make room for another, and the next call brings it back as it fits.
const PASSES: usize = 3;

/// Installs what [`check`] misses, through apt-get. `say` gets one line per thing done.
/// Returns the packages that were installed.
///
/// # Errors
/// [`Error::MissingTools`] if the process is not root and `sudo` would ask for a password, or
/// if tools are still missing afterwards; [`Error::Tool`] if apt-get failed.
pub fn install_missing(machine: Machine, say: impl FnMut(&str)) -> Result<Vec<&'static str>> {
    install_list(&needed(machine), say)
}

/// The same for what building the kernels of the demo's series for a machine takes: git, make,
/// compiler, headers, and the source of Linux 6.1.
///
/// # Errors
/// As [`install_missing`].
pub fn install_for_builds(machine: Machine, say: impl FnMut(&str)) -> Result<Vec<&'static str>> {
    let cross: &[_] = match machine {
        _ if machine.is_of_host() => &[],
        Machine::X86_64 => &[(
            Place::Program("x86_64-linux-gnu-gcc"),
            "gcc-x86-64-linux-gnu",
        )],
        Machine::Riscv64 => &[(
            Place::Program("riscv64-linux-gnu-gcc"),
            "gcc-riscv64-linux-gnu",
        )],
    };
    install_list(&[&FOR_BUILDS, cross].concat(), say)
}

fn install_list(
    needed: &[(Place, &'static str)],
    mut say: impl FnMut(&str),
) -> Result<Vec<&'static str>> {
    let sudo = !rustix::process::geteuid().is_root();
    let mut installed: Vec<&'static str> = Vec::new();
    for _ in 0..PASSES {
        let (_, packages) = missing(needed);
        if packages.is_empty() {
            break;
        }
        if sudo && run(tool("sudo").args(["-n", "true"])).is_err() {
            break;
        }
        install(&packages, sudo, &mut say)?;
        installed.extend(packages);
    }
    check_list(needed)?;
    Ok(installed)
}

fn install(packages: &[&str], sudo: bool, say: &mut impl FnMut(&str)) -> Result<()> {
    say(&format!(
        "running {}{}",
        if sudo { "sudo " } else { "" },
        install_line(packages)
    ));
    let install = || {
        run(apt_get(sudo)
            .args(["install", "-y", "--no-install-recommends"])
            .args(packages))
    };
    if install().is_err() {
        say("package lists may be old: running apt-get update and trying again");
        run(apt_get(sudo).arg("update"))?;
        install()?;
    }
    Ok(())
}

fn apt_get(sudo: bool) -> std::process::Command {
    if !sudo {
        return tool("apt-get");
    }
    let mut command = tool("sudo");
    command.args(["-n", "apt-get"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_name_each_package_once() {
        let (tools, packages) = missing_of(&needed(Machine::X86_64), |p| {
            !matches!(p, Place::Program("mcopy" | "mformat" | "qemu-img"))
        });
        assert_eq!(tools, ["qemu-img", "mcopy", "mformat"]);
        assert_eq!(
            install_line(&packages),
            "apt-get install --no-install-recommends qemu-utils mtools"
        );
    }
}
