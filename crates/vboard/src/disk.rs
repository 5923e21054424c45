//! The disk: GPT with room for a boot loader, a FAT boot partition and an ext4 root. Made from
//! files, without loop devices and without root.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::command::{describe, run, tail, tool};
use crate::{Error, Machine, Recipe, Result, grub, uboot};

/// Goes up with every change of what is on a disk: boards of older images keep them.
pub(crate) const VERSION: u32 = 1;

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;

/// Where things lie on the disk, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    boot_mib: u64,
    root_mib: u64,
}

impl Layout {
    /// MiB of the partition for the boot loader's own code, which starts at 1 MiB.
    const CORE_MIB: u64 = 1;
    /// First MiB of the boot partition.
    const BOOT_AT: u64 = 1 + Self::CORE_MIB;

    pub(crate) fn new(recipe: &Recipe) -> Self {
        Self {
            boot_mib: recipe.boot_mib.into(),
            root_mib: recipe.root_mib.into(),
        }
    }

    fn root_at(self) -> u64 {
        Self::BOOT_AT + self.boot_mib
    }

    /// The whole disk, with room for the second partition table.
    fn total(self) -> u64 {
        self.root_at() + self.root_mib + 1
    }

    /// The partition table in sfdisk's words; sectors of 512 bytes.
    ///
    /// The partitions have the same numbers on every machine. U-Boot looks for its script on
    /// the one that is marked as bootable.
    fn sfdisk(self, machine: Machine) -> String {
        let (kind, mark) = match machine {
            Machine::X86_64 => ("21686148-6449-6E6F-744E-656564454649, name=klab-bios", ""),
            Machine::Riscv64 => (
                "8DA63339-0007-60C0-C436-083AC8230908, name=klab-spare",
                ", attrs=LegacyBIOSBootable",
            ),
        };
        let sectors = |mib: u64| mib * MIB / 512;
        format!(
            "label: gpt\n\
             start={}, size={}, type={kind}\n\
             start={}, size={}, type=U, name=klab-boot{mark}\n\
             start={}, size={}, type=L, name=klab-root\n",
            grub::CORE_SECTOR,
            sectors(Self::CORE_MIB),
            sectors(Self::BOOT_AT),
            sectors(self.boot_mib),
            sectors(self.root_at()),
            sectors(self.root_mib),
        )
    }
}

/// What the boot partition holds besides the boot loader's own files.
pub(crate) struct BootFiles<'a> {
    pub(crate) vmlinuz: &'a Path,
    pub(crate) initrd: &'a Path,
}

/// Makes the disk in `scratch` and writes it as qcow2 to `out`.
pub(crate) fn make(
    recipe: &Recipe,
    root: &Path,
    boot: &BootFiles<'_>,
    scratch: &Path,
    out: &Path,
) -> Result<()> {
    let (layout, machine) = (Layout::new(recipe), recipe.machine);
    let raw = scratch.join("disk.raw");
    let file = File::create(&raw).map_err(Error::io("create", &raw))?;
    file.set_len(layout.total() * MIB)
        .map_err(Error::io("size", &raw))?;
    sfdisk(&raw, &layout.sfdisk(machine))?;
    let fat = boot_partition(layout, machine, boot, scratch)?;
    let ext4 = root_partition(layout, root, scratch)?;
    copy_sparse(&fat, &raw, Layout::BOOT_AT * MIB)?;
    copy_sparse(&ext4, &raw, layout.root_at() * MIB)?;
    if machine == Machine::X86_64 {
        write_grub(&raw, scratch)?;
    }
    run(tool("qemu-img")
        .args(["convert", "-f", "raw", "-O", "qcow2"])
        .arg(&raw)
        .arg(out))?;
    for file in [raw, fat, ext4] {
        std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
    }
    Ok(())
}

/// Feeds the partition table to sfdisk.
fn sfdisk(raw: &Path, script: &str) -> Result<()> {
    let mut command = tool("sfdisk");
    command
        .args(["--quiet", "--no-tell-kernel", "--no-reread"])
        .arg(raw);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Error::io("start", "sfdisk"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(script.as_bytes())
            .map_err(Error::io("write to", "sfdisk"))?;
    }
    let out = child
        .wait_with_output()
        .map_err(Error::io("wait for", "sfdisk"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(Error::Tool {
        command: "sfdisk".to_owned(),
        status: describe(out.status),
        output: tail(&out.stderr),
    })
}

/// The FAT file system with the boot loader's files and the known-good kernel.
fn boot_partition(
    layout: Layout,
    machine: Machine,
    boot: &BootFiles<'_>,
    scratch: &Path,
) -> Result<PathBuf> {
    let image = scratch.join("boot.fat");
    let file = File::create(&image).map_err(Error::io("create", &image))?;
    file.set_len(layout.boot_mib * MIB)
        .map_err(Error::io("size", &image))?;
    run(tool("mformat")
        .arg("-i")
        .arg(&image)
        .args(["-F", "-v", "KLAB-BOOT", "::"]))?;
    let mut folders = vec!["::klab", "::known-good"];
    if machine == Machine::X86_64 {
        folders.push("::grub");
    }
    run(tool("mmd").arg("-i").arg(&image).args(folders))?;
    let mut files = match machine {
        Machine::X86_64 => grub::files(scratch)?,
        Machine::Riscv64 => uboot::files(scratch)?,
    };
    files.push((boot.vmlinuz.to_owned(), "::known-good/vmlinuz"));
    files.push((boot.initrd.to_owned(), "::known-good/initrd"));
    for (from, to) in files {
        run(tool("mcopy").arg("-i").arg(&image).arg(from).arg(to))?;
    }
    Ok(image)
}

/// The ext4 file system filled from the tree.
fn root_partition(layout: Layout, root: &Path, scratch: &Path) -> Result<PathBuf> {
    let image = scratch.join("root.ext4");
    let mut command = tool("mke2fs");
    command.args([
        "-q",
        "-F",
        "-t",
        "ext4",
        "-L",
        "klab-root",
        "-E",
        "root_owner=0:0",
        "-d",
    ]);
    run(command
        .arg(root)
        .arg(&image)
        .arg(format!("{}M", layout.root_mib)))?;
    Ok(image)
}

/// Boot sector and core image into their places.
fn write_grub(raw: &Path, scratch: &Path) -> Result<()> {
    let boot = std::fs::read(grub::BOOT_IMG).map_err(Error::io("read", grub::BOOT_IMG))?;
    let (boot, core) = grub::embed(&boot, &grub::core_image(scratch)?, Layout::CORE_MIB * MIB)?;
    let mut disk = OpenOptions::new()
        .write(true)
        .open(raw)
        .map_err(Error::io("open", raw))?;
    disk.write_all(&boot).map_err(Error::io("write", raw))?;
    disk.seek(SeekFrom::Start(grub::CORE_SECTOR * 512))
        .map_err(Error::io("seek in", raw))?;
    disk.write_all(&core).map_err(Error::io("write", raw))
}

/// Copies an image into the disk at an offset. Holes of the image are skipped and blocks of zeros
/// stay holes.
fn copy_sparse(from: &Path, to: &Path, at: u64) -> Result<()> {
    let mut input = File::open(from).map_err(Error::io("open", from))?;
    let mut output = OpenOptions::new()
        .write(true)
        .open(to)
        .map_err(Error::io("open", to))?;
    let mut block = vec![0u8; MIB as usize];
    let mut position = 0;
    loop {
        // Fails at the end of the data.
        let Ok(data) = rustix::fs::seek(&input, rustix::fs::SeekFrom::Data(position)) else {
            return Ok(());
        };
        let n = input.read(&mut block).map_err(Error::io("read", from))?;
        if n == 0 {
            return Ok(());
        }
        if block[..n].iter().any(|b| *b != 0) {
            output
                .seek(SeekFrom::Start(at + data))
                .map_err(Error::io("seek in", to))?;
            output
                .write_all(&block[..n])
                .map_err(Error::io("write", to))?;
        }
        position = data + n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other() {
        let layout = Layout {
            boot_mib: 64,
            root_mib: 512,
        };
        assert_eq!(
            layout.sfdisk(Machine::X86_64),
            "label: gpt\n\
             start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649, name=klab-bios\n\
             start=4096, size=131072, type=U, name=klab-boot\n\
             start=135168, size=1048576, type=L, name=klab-root\n"
        );
        assert_eq!(layout.total(), 579);
        let riscv = layout.sfdisk(Machine::Riscv64);
        let boot = "start=4096, size=131072, type=U, name=klab-boot, attrs=LegacyBIOSBootable\n";
        assert!(riscv.contains(boot), "{riscv}");
        assert!(!riscv.contains("klab-bios"), "{riscv}");
    }

    #[test]
    fn sparse_copies_keep_every_byte() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let mut data = vec![0u8; 3 * MIB as usize + 5];
        data[MIB as usize + 7] = 9;
        *data.last_mut().expect("not empty") = 3;
        std::fs::write(&from, &data).expect("write");
        File::create(&to)
            .expect("create")
            .set_len(5 * MIB)
            .expect("size");
        copy_sparse(&from, &to, MIB).expect("copy");
        let copied = std::fs::read(&to).expect("read");
        assert!(copied[MIB as usize..][..data.len()] == data[..]);
    }
}
