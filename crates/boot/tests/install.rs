//! Installing kernels: whole or not at all, cached, pruned, never over the board's own.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;

use common::{Board, package};
use klab_boot::{BootError, BootMethod, GrubOptions};
use klab_model::{Arch, Digest, FailureClass};

fn with_mkinitrd(board: &Board) -> GrubOptions {
    let mkinitrd = board.script(
        "mkinitrd",
        "echo made >> \"$0.log\"; echo \"$1 $(ls $2)\" > $3",
    );
    GrubOptions {
        mkinitrd,
        ..GrubOptions::default()
    }
}

#[test]
fn a_kernel_is_installed_once() {
    let board = Board::new();
    let method = board.grub(with_mkinitrd(&board));
    let kernel = package(
        board.root.path(),
        "6.12.0",
        "A",
        &[("kernel/x.ko", "x of A")],
    );
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    let slot = &installed.slot;
    assert_eq!(
        installed.image,
        board.path(&format!("boot/klab/{slot}/vmlinuz"))
    );
    assert_eq!(
        Digest::of(&fs::read(&installed.image).expect("image")),
        kernel.order.image_digest
    );
    assert!(
        board
            .read(&format!("boot/klab/{slot}/initrd"))
            .starts_with("6.12.0 kernel")
    );
    assert_eq!(board.read("lib/modules/6.12.0/kernel/x.ko"), "x of A");
    assert_eq!(board.read("lib/modules/6.1.0-good/kernel/a.ko"), "good a");
    let inode = fs::metadata(&installed.image).expect("image").ino();
    // The package is not even read again.
    let again = method
        .install(&kernel.order, &board.path("gone"))
        .expect("cached");
    assert_eq!(again, installed);
    assert_eq!(fs::metadata(&installed.image).expect("image").ino(), inode);
    assert_eq!(board.read("mkinitrd.log"), "made\n");
}

#[test]
fn a_damaged_installation_is_made_again() {
    let board = Board::new();
    let method = board.grub(with_mkinitrd(&board));
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    fs::write(&installed.image, "garbage").expect("written");
    method
        .install(&kernel.order, &kernel.path)
        .expect("installed again");
    assert_eq!(
        Digest::of(&fs::read(&installed.image).expect("image")),
        kernel.order.image_digest
    );
    assert_eq!(board.read("mkinitrd.log"), "made\nmade\n");
}

#[test]
fn kernels_of_one_release_keep_their_own_modules() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    let base = package(board.root.path(), "6.12.0", "A", &[("kernel/x.ko", "base")]);
    let patched = package(
        board.root.path(),
        "6.12.0",
        "B",
        &[("kernel/x.ko", "patched")],
    );
    let module = || board.read("lib/modules/6.12.0/kernel/x.ko");
    let installed = method.install(&base.order, &base.path).expect("base");
    method
        .install(&patched.order, &patched.path)
        .expect("patched");
    assert_eq!(module(), "patched");
    method
        .arm_once(&installed, &common::marker())
        .expect("armed");
    assert_eq!(module(), "base");
    method
        .install(&patched.order, &patched.path)
        .expect("patched, cached");
    assert_eq!(module(), "patched");
    let plain = package(board.root.path(), "6.12.0", "C", &[]);
    method
        .install(&plain.order, &plain.path)
        .expect("without modules");
    assert!(!board.path("lib/modules/6.12.0").exists());
}

#[test]
fn modules_of_the_boards_own_kernel_stay() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    let same = [("kernel/a.ko", "good a"), ("modules.dep", "made elsewhere")];
    let same = package(board.root.path(), "6.1.0-good", "A", &same);
    let installed = method
        .install(&same.order, &same.path)
        .expect("the board's own kernel");
    assert!(
        installed.notes[0].contains("the board has its own modules"),
        "{:?}",
        installed.notes
    );
    let other = package(
        board.root.path(),
        "6.1.0-good",
        "B",
        &[("kernel/a.ko", "other a")],
    );
    let error = method
        .install(&other.order, &other.path)
        .expect_err("differs");
    assert!(matches!(&error, BootError::ReleaseTaken { example, .. } if example == "kernel/a.ko"));
    assert_eq!(error.failure().class, FailureClass::Kernel);
    assert_eq!(board.read("lib/modules/6.1.0-good/kernel/a.ko"), "good a");
    assert_eq!(
        board.read("lib/modules/6.1.0-good/modules.dep"),
        "made here"
    );
    assert!(
        !board
            .path(&format!("boot/klab/{}", other.order.digest.short()))
            .exists()
    );
}

#[test]
fn older_kernels_make_room_and_the_running_one_stays() {
    let board = Board::new();
    let method = board.grub(GrubOptions {
        keep: 2,
        ..GrubOptions::default()
    });
    let mut slots = Vec::new();
    for n in 0..4 {
        let release = format!("6.12.{n}");
        let kernel = package(board.root.path(), &release, "A", &[("kernel/x.ko", "x")]);
        slots.push(
            method
                .install(&kernel.order, &kernel.path)
                .expect("installed")
                .slot,
        );
        if n == 0 {
            board.runs("6.12.0", "boot-1", None, "ro");
        }
    }
    let there: Vec<bool> = slots
        .iter()
        .map(|slot| board.path(&format!("boot/klab/{slot}")).exists())
        .collect();
    assert_eq!(there, [true, false, false, true]);
    let modules: Vec<bool> = (0..4)
        .map(|n| board.path(&format!("lib/modules/6.12.{n}")).exists())
        .collect();
    assert_eq!(modules, there);
    assert!(board.path("boot/klab/keep").exists());
}

#[test]
fn nothing_but_the_ordered_kernel_is_installed() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    let kernel = package(board.root.path(), "6.12.0", "A", &[("kernel/x.ko", "x")]);
    let other = Digest::of(b"other");
    let orders = [
        klab_model::OrderKernel {
            digest: other,
            ..kernel.order.clone()
        },
        klab_model::OrderKernel {
            image_digest: other,
            ..kernel.order.clone()
        },
        klab_model::OrderKernel {
            release: "6.12.1".to_owned(),
            ..kernel.order.clone()
        },
        klab_model::OrderKernel {
            arch: Arch::X86_64,
            ..kernel.order.clone()
        },
    ];
    for order in orders {
        let error = method
            .install(&order, &kernel.path)
            .expect_err("not the ordered kernel");
        assert!(!error.is_disk_full(), "{error}");
        assert_eq!(
            fs::read_dir(board.path("boot/klab"))
                .expect("folder")
                .count(),
            1,
            "{error}"
        );
        assert!(!board.path("lib/modules/6.12.0").exists(), "{error}");
        assert_eq!(
            fs::read_dir(board.path("lib/modules/.klab"))
                .expect("folder")
                .count(),
            0
        );
    }
    let bytes = fs::read(&kernel.path).expect("package");
    fs::write(&kernel.path, &bytes[..bytes.len() - 9]).expect("cut");
    let error = method
        .install(&kernel.order, &kernel.path)
        .expect_err("cut short");
    assert!(matches!(error, BootError::Package { .. }), "{error}");
}

#[test]
fn an_interrupted_installation_is_cleaned_by_the_next() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    board.put("boot/klab/.new-0123/vmlinuz", "half");
    board.put("lib/modules/.klab/new/boot/vmlinuz", "half");
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    // Whole to look at, but the rename came before the record: not a slot.
    board.put(
        &format!("boot/klab/{}/vmlinuz", kernel.order.digest.short()),
        "half",
    );
    method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    assert!(!board.path("boot/klab/.new-0123").exists());
    assert!(!board.path("lib/modules/.klab/new").exists());
}

#[test]
fn a_full_disk_is_named_and_prunes_first() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    let older = package(board.root.path(), "6.12.0", "A", &[]);
    let older_slot = method
        .install(&older.order, &older.path)
        .expect("installed")
        .slot;
    let mut kernel = package(board.root.path(), "6.12.1", "B", &[]);
    kernel.order.size = 1 << 60;
    let error = method
        .install(&kernel.order, &kernel.path)
        .expect_err("no room");
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(error.failure().class, FailureClass::Infrastructure);
    assert!(!board.path(&format!("boot/klab/{older_slot}")).exists());
}

#[test]
fn a_maker_of_initrds_that_fails_is_told() {
    let board = Board::new();
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    for (script, words) in [
        ("echo 'no busybox' >&2; exit 1", "no busybox"),
        ("true", "no initrd"),
    ] {
        let mkinitrd = board.script("mkinitrd", script);
        let method = board.grub(GrubOptions {
            mkinitrd,
            ..GrubOptions::default()
        });
        let error = method
            .install(&kernel.order, &kernel.path)
            .expect_err("no initrd");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(
            fs::read_dir(board.path("boot/klab"))
                .expect("folder")
                .count(),
            1
        );
    }
}
