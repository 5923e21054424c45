//! A board in a temporary folder and kernel packages for it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use klab_boot::{GrubOneShot, GrubOptions, UbootOneShot, UbootOptions};
use klab_kernel::{Manifest, PackageKind, Release};
use klab_model::{Arch, BootMarker, BuildId, Digest, KernelName, OrderKernel};

pub(crate) const GRUB_CFG: &str =
    "load_env next_entry\nsave_env next_entry\nsource /klab/candidate.cfg\n";

/// What boards with U-Boot run, as it is in the script image.
pub(crate) const UBOOT_SCRIPT: &str = include_str!("../../../../configs/boot/uboot.cmd");

/// The folder `/` of a board.
pub(crate) struct Board {
    pub(crate) root: tempfile::TempDir,
}

impl Board {
    pub(crate) fn new() -> Self {
        let board = Self {
            root: tempfile::tempdir().expect("folder"),
        };
        board.put("boot/grub/grub.cfg", GRUB_CFG);
        board.put("boot/grub/grubenv", "");
        let env = include_bytes!("../data/grubenv-edited.bin");
        fs::write(board.path("boot/grub/grubenv"), env).expect("grubenv");
        board.put("boot/klab/keep", "");
        board.put("lib/modules/6.1.0-good/kernel/a.ko", "good a");
        board.put("lib/modules/6.1.0-good/modules.dep", "made here");
        board.runs(
            "6.1.0-good",
            "boot-1",
            None,
            "BOOT_IMAGE=/known-good/vmlinuz root=/dev/vda3 ro",
        );
        board
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, text).expect("file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Makes it look as if a kernel runs.
    pub(crate) fn runs(
        &self,
        release: &str,
        boot_id: &str,
        build_id: Option<&BuildId>,
        cmdline: &str,
    ) {
        self.put("proc/sys/kernel/osrelease", &format!("{release}\n"));
        self.put("proc/sys/kernel/random/boot_id", &format!("{boot_id}\n"));
        self.put("proc/cmdline", &format!("{cmdline}\n"));
        self.put("sys/kernel/notes", "");
        if let Some(id) = build_id {
            let len = u32::try_from(id.as_bytes().len()).expect("short");
            let mut note = Vec::new();
            for word in [4, len, 3] {
                note.extend(word.to_le_bytes());
            }
            note.extend(b"GNU\0");
            note.extend(id.as_bytes());
            fs::write(self.path("sys/kernel/notes"), note).expect("notes");
        }
    }

    pub(crate) fn grub(&self, options: GrubOptions) -> GrubOneShot {
        GrubOneShot::new(options, self.root.path())
    }

    pub(crate) fn uboot(&self, options: UbootOptions) -> UbootOneShot {
        UbootOneShot::new(options, self.root.path())
    }

    /// A script in the board's folder, as a command.
    pub(crate) fn script(&self, name: &str, text: &str) -> Vec<String> {
        self.put(name, text);
        vec!["/bin/sh".to_owned(), self.path(name).display().to_string()]
    }
}

pub(crate) fn marker() -> BootMarker {
    let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("id");
    BootMarker { run, attempt: 2 }
}

pub(crate) fn build_id(byte: u8) -> BuildId {
    BuildId::from_bytes(&[byte; 20]).expect("id")
}

/// A package and the order for it.
pub(crate) struct Package {
    pub(crate) path: PathBuf,
    pub(crate) order: OrderKernel,
}

/// A canonical package of a RISC-V `Image`; `body` makes kernels differ.
pub(crate) fn package(
    folder: &Path,
    release: &str,
    body: &str,
    modules: &[(&str, &str)],
) -> Package {
    let mut image = vec![0u8; 64];
    image[0x30..0x38].copy_from_slice(b"RISCV\0\0\0");
    image[0x38..0x3c].copy_from_slice(b"RSC\x05");
    image.extend(body.as_bytes());
    let manifest = Manifest {
        version: 1,
        arch: Arch::Riscv64,
        release: Release::parse(release).expect("release"),
        build_id: Some(build_id(7)),
        build_id_absent: None,
        image_format: "Image".to_owned(),
        image_digest: Digest::of(&image),
        config_digest: None,
        package_kind: PackageKind::Image,
        modules: modules.len(),
    };
    let mut tar = tar::Builder::new(Vec::new());
    append(&mut tar, "klab-kernel.json", &manifest.to_json());
    append(&mut tar, "boot/vmlinuz", &image);
    for (name, text) in modules {
        append(
            &mut tar,
            &format!("lib/modules/{release}/{name}"),
            text.as_bytes(),
        );
    }
    let bytes = zstd::encode_all(&*tar.into_inner().expect("tar"), 1).expect("zstd");
    let digest = Digest::of(&bytes);
    let path = folder.join(format!("{}.pkg", digest.short()));
    fs::write(&path, &bytes).expect("package");
    let order = OrderKernel {
        name: KernelName::parse("k").expect("name"),
        digest,
        size: bytes.len() as u64,
        arch: Arch::Riscv64,
        release: release.to_owned(),
        build_id: Some(build_id(7)),
        image_digest: manifest.image_digest,
    };
    Package { path, order }
}

fn append(tar: &mut tar::Builder<Vec<u8>>, path: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, path, bytes).expect("tar");
}
