//! The root file system: Debian packages unpacked, our few files on top.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::command::{run, tool};
use crate::{Error, Recipe, Result};

/// Files put into every image: path, mode, text.
const FILES: [(&str, u32, &str); 10] = [
    ("etc/inittab", 0o644, include_str!("files/inittab")),
    ("etc/init.d/rcS", 0o755, include_str!("files/rcS")),
    ("etc/init.d/rcK", 0o755, include_str!("files/rcK")),
    (
        "usr/lib/klab/run-agent",
        0o755,
        include_str!("files/run-agent"),
    ),
    (
        "usr/lib/klab/feed-watchdog",
        0o755,
        include_str!("files/feed-watchdog"),
    ),
    (
        "usr/lib/klab/mkinitrd",
        0o755,
        include_str!("files/mkinitrd"),
    ),
    (
        "usr/lib/klab/initrd-init",
        0o755,
        include_str!("files/initrd-init"),
    ),
    ("etc/hostname", 0o644, "board\n"),
    (
        "etc/fstab",
        0o644,
        "/dev/vda3 / ext4 defaults 0 1\n/dev/vda2 /boot vfat defaults 0 2\n",
    ),
    ("etc/hosts", 0o644, "127.0.0.1 localhost\n10.0.2.2 host\n"),
];

/// Paths of packages that no board reads.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/X11/*",
    "/usr/lib/python3*",
];

/// Unpacks the recipe's packages into `root`, which must not exist.
pub(crate) fn unpack(recipe: &Recipe, sources: &Path, root: &Path) -> Result<()> {
    let include = format!("--include={}", recipe.all_packages().join(","));
    let mut command = tool("mmdebstrap");
    let arch = format!("--architectures={}", recipe.machine.debian());
    command.args(["--variant=extract", &arch, &include]);
    command.arg("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr");
    command.arg("--aptopt=APT::Install-Recommends \"false\"");
    command.args(
        LEFT_OUT
            .iter()
            .map(|path| format!("--dpkgopt=path-exclude={path}")),
    );
    if rustix::process::geteuid().is_root() {
        command
            .arg("--mode=root")
            .arg(&recipe.suite)
            .arg(root)
            .arg(sources);
        return run(&mut command).map(drop);
    }
    // Without root, mmdebstrap works in a user namespace and can hand over an archive only.
    let archive = root.with_extension("tar");
    command
        .arg("--mode=unshare")
        .arg(&recipe.suite)
        .arg(&archive)
        .arg(sources);
    run(&mut command)?;
    std::fs::create_dir_all(root).map_err(Error::io("create", root))?;
    let mut untar = tool("tar");
    untar
        .args(["--no-same-owner", "--exclude=./dev/*", "-xf"])
        .arg(&archive)
        .arg("-C")
        .arg(root);
    run(&mut untar)?;
    std::fs::remove_file(&archive).map_err(Error::io("remove", &archive))
}

/// Adds init, our scripts and links for every busybox applet that no package brought.
pub(crate) fn finish(root: &Path) -> Result<()> {
    for (path, mode, text) in FILES {
        let path = root.join(path);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        }
        // A package may have a link here; it is replaced, not followed.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).map_err(Error::io("write", &path))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))
            .map_err(Error::io("chmod", &path))?;
    }
    for dir in [
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "root",
        "boot",
        "var/lib/klab",
        "etc/klab",
        "var/tmp",
        "var/log",
    ] {
        let dir = root.join(dir);
        std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    }
    link_applets(root)
}

/// `busybox --install -s`, done from outside and never over a file that is there. The host's
/// busybox lists the applets: the board's may be for another machine.
fn link_applets(root: &Path) -> Result<()> {
    let list = run(tool("busybox").arg("--list"))?;
    for applet in list.lines().filter(|a| !a.contains('/')) {
        let there = ["usr/bin", "usr/sbin"]
            .iter()
            .any(|d| root.join(d).join(applet).symlink_metadata().is_ok());
        if !there {
            let link = root.join("usr/bin").join(applet);
            symlink("busybox", &link).map_err(Error::io("link", &link))?;
        }
    }
    // Scripts of workloads get a usual shell: busybox's prefers its own tools to those in PATH.
    let sh = root.join("usr/bin/sh");
    let _ = std::fs::remove_file(&sh);
    symlink("bash", &sh).map_err(Error::io("link", &sh))?;
    // Init and what stops the machine come from busybox even if a package has its own.
    for applet in ["init", "reboot", "poweroff", "halt"] {
        let link = root.join("usr/sbin").join(applet);
        let _ = std::fs::remove_file(&link);
        symlink("../bin/busybox", &link).map_err(Error::io("link", &link))?;
    }
    Ok(())
}

/// Unpacks a kernel package and moves its parts: modules into `root`, the image to `vmlinuz`.
/// Returns the kernel's release.
pub(crate) fn add_kernel(
    deb: &Path,
    scratch: &Path,
    root: &Path,
    vmlinuz: &Path,
) -> Result<String> {
    // What was unpacked by whoever fetched it is only read.
    let unpacked = scratch.join("kernel");
    let tree = if deb.is_dir() {
        deb.to_owned()
    } else {
        run(tool("dpkg-deb").arg("-x").arg(deb).arg(&unpacked))?;
        unpacked.clone()
    };
    let (release, image) = image_of(&tree).ok_or_else(|| Error::Packages {
        what: format!("{} holds no kernel image", deb.display()),
        mend: "name a kernel image package, like linux-image-cloud-amd64".to_owned(),
    })?;
    std::fs::copy(&image, vmlinuz).map_err(Error::io("copy", &image))?;
    // Newer packages know that /lib is a link.
    let from = ["usr/lib/modules", "lib/modules"].map(|dir| tree.join(dir));
    let from = from.iter().find(|dir| dir.join(&release).is_dir());
    let from = from.ok_or_else(|| Error::Packages {
        what: format!("{} holds no modules of {release}", deb.display()),
        mend: "name a kernel image package, like linux-image-cloud-amd64".to_owned(),
    })?;
    let to = root.join("usr/lib/modules");
    std::fs::create_dir_all(&to).map_err(Error::io("create", &to))?;
    run(tool("cp").arg("-a").arg(from.join(&release)).arg(&to))?;
    run(tool("depmod").arg("-b").arg(root).arg(&release))?;
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked).map_err(Error::io("remove", &unpacked))?;
    }
    Ok(release)
}

/// Release and boot image of an unpacked kernel: in `boot`, or beside the modules.
fn image_of(tree: &Path) -> Option<(String, PathBuf)> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    let boot = tree.join("boot");
    let in_boot = names(&boot).into_iter().find_map(|name| {
        let mut kinds = ["vmlinuz-", "vmlinux-"].into_iter();
        let release = kinds.find_map(|kind| name.strip_prefix(kind))?.to_owned();
        Some((release, boot.join(name)))
    });
    let modules = tree.join("usr/lib/modules");
    let beside = || {
        names(&modules).into_iter().find_map(|release| {
            let image = modules.join(&release).join("vmlinuz");
            image.is_file().then_some((release, image))
        })
    };
    in_boot.or_else(beside)
}

/// Runs the board's own mkinitrd for the known-good kernel: with the host's busybox, and the
/// board's inside.
pub(crate) fn make_initrd(root: &Path, release: &str, out: &Path) -> Result<()> {
    let mut command = tool("busybox");
    command
        .arg("sh")
        .arg(root.join("usr/lib/klab/mkinitrd"))
        .arg(release);
    command
        .arg(root.join("usr/lib/modules").join(release))
        .arg(out);
    let host = crate::command::find("busybox").unwrap_or_else(|| "busybox".into());
    command
        .env("BUSYBOX", host)
        .env("INITRD_BUSYBOX", root.join("usr/bin/busybox"));
    run(&mut command).map(drop)
}
