//! What is no kernel package: it is refused, and what to give instead is said.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;

use klab_kernel::{Compression, KernelError, KernelPackage, open};
use support::*;

fn refused(path: &Path) -> String {
    let error = open(path).unwrap_err();
    let text = whole(&error).replace(&path.parent().unwrap().display().to_string(), "DIR");
    assert!(text.contains("DIR/"), "names the file: {text}");
    text
}

#[test]
fn packages_without_an_image_say_what_to_give() {
    let dir = tempfile::tempdir().unwrap();
    let case = |path: &str| {
        refused(&write(
            dir.path(),
            "k.deb",
            &deb("data.tar", &tar(&[(path, b"x")])),
        ))
    };
    assert_eq!(
        case("usr/src/linux-headers-6.1.0/Makefile"),
        "no kernel image in DIR/k.deb: looked for boot/vmlinuz-*, boot/vmlinux-*, boot/Image-*, \
         lib/modules/*/vmlinuz and bzImage; found 1 file; this is a headers package: give the \
         linux-image package beside it"
    );
    assert!(case("usr/lib/debug/boot/vmlinux-6.1.0").contains("debug symbols"));
    let unknown = "found 1 file; give the image package of a kernel";
    assert!(case("etc/hosts").ends_with(unknown));
    assert!(case("usr/share/doc/x/copyright").ends_with(unknown));
    let two = tar(&[("etc/hosts", b"x"), ("etc/passwd", b"x")]);
    let text = refused(&write(dir.path(), "k.tar", &two));
    assert!(text.contains("found 2 files;"), "{text}");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let text = refused(&empty);
    assert!(
        text.ends_with("found no files; give the image package of a kernel"),
        "{text}"
    );
    let tree = write(dir.path(), "linux/Kconfig", b"")
        .parent()
        .unwrap()
        .to_owned();
    write(&tree, "Makefile", b"");
    assert!(refused(&tree).contains("run `make tar-pkg`"));
}

#[test]
fn a_package_that_only_depends_on_others_names_the_one_to_give() {
    let dir = tempfile::tempdir().unwrap();
    let doc: [(&str, &[u8]); 1] = [("usr/share/doc/linux-image-amd64/copyright", b"x")];
    let case = |name: &str, control: &[u8], files: &[(&str, &[u8])]| {
        let bytes = deb_of((name, control), ("data.tar", &tar(files)));
        refused(&write(dir.path(), "k.deb", &bytes))
    };
    let depends = |need: &str| format!("Package: x\nDepends: {need}\nDescription: y\n");
    let signed = depends("linux-base (>= 4), linux-image-6.1.0-44-amd64 (= 6.1.164-1)");
    let signed = tar(&[("./control", signed.as_bytes())]);
    let other = tar(&[("control", depends("linux-base").as_bytes())]);
    for compression in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
        let packed = compress(compression, &signed);
        let name = format!("control.tar.{compression}");
        for (files, count) in [(&doc[..], "1 file"), (&[], "no files")] {
            let mend = format!(
                "found {count}; this package only depends on others: give \
                 linux-image-6.1.0-44-amd64"
            );
            let text = case(&name, &packed, files);
            assert!(text.ends_with(&mend), "{text}");
        }
    }
    let text = case("control.tar", &other, &doc);
    assert!(text.ends_with("depends on others: give linux-image-RELEASE"));
    let parts = depends("linux-binary-7.2-x (= 1), dracut | linux-modules-6, linux-modules-7.2-x");
    let parts = tar(&[("control", parts.as_bytes())]);
    let text = case("control.tar", &parts, &doc);
    assert!(
        text.ends_with("unpack linux-binary-7.2-x and linux-modules-7.2-x into one folder with `dpkg-deb -x` and give that"),
        "{text}"
    );
    // Who has files of his own does not only depend on others.
    let text = case("control.tar", &signed, &[("etc/hosts", b"x")]);
    assert!(text.ends_with("give the image package of a kernel"));
    for damaged in [&signed[..500], b"\x1f\x8b\x08nonsense", b""] {
        let text = case("control.tar", damaged, &doc);
        assert!(text.ends_with("give the image package of a kernel"));
    }
}

#[test]
fn only_a_vmlinux_does_not_boot() {
    let dir = tempfile::tempdir().unwrap();
    let text = refused(&write(
        dir.path(),
        "k.tar",
        &tar(&[("boot/vmlinux-6.1.0-test", &vmlinux(X86))]),
    ));
    assert!(
        text.contains("boot/vmlinux-6.1.0-test is the linked vmlinux"),
        "{text}"
    );
}

#[test]
fn two_kernels_or_foreign_modules_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = good_bz_image();
    let case = |files: &[(&str, &[u8])]| refused(&write(dir.path(), "k.tar", &tar(files)));
    let text = case(&[
        ("boot/vmlinuz-6.1.0-test", &image),
        ("boot/vmlinuz-6.2", &image),
    ]);
    assert!(text.contains("several kernels (6.1.0-test, 6.2)"), "{text}");
    let text = case(&[
        ("boot/vmlinuz-6.1.0-test", &image),
        ("lib/modules/6.1.0-test/modules.order", b""),
        ("lib/modules/6.2/modules.order", b""),
    ]);
    assert!(text.contains("several kernels (6.1.0-test, 6.2)"), "{text}");
    let text = case(&[
        ("boot/vmlinuz", &image),
        ("lib/modules/6.2/modules.order", b""),
    ]);
    assert!(
        text.contains("image is release 6.1.0-test, modules are for 6.2"),
        "{text}"
    );
    let text = case(&[
        ("boot/vmlinuz", &image),
        ("lib/modules/6.1.0-test/kernel/a.ko", b""),
        ("usr/lib/modules/6.1.0-test/kernel/a.ko", b""),
    ]);
    assert!(text.contains("is there twice"), "{text}");
}

#[test]
fn hostile_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for evil in ["../evil", "/etc/evil", "boot/../../evil", "lib//x"] {
        let mut bytes = tar(&[("placeholder", b"x")]);
        bytes[..100].fill(0);
        bytes[..evil.len()].copy_from_slice(evil.as_bytes());
        let mut header = tar::Header::from_byte_slice(&bytes[..512]).clone();
        header.set_cksum();
        bytes[..512].copy_from_slice(header.as_bytes());
        let text = refused(&write(dir.path(), "k.tar", &bytes));
        assert!(text.contains("unsafe path"), "{evil}: {text}");
    }
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Block);
    header.set_size(0);
    builder
        .append_data(&mut header, "boot/sda", &b""[..])
        .unwrap();
    let text = refused(&write(dir.path(), "k.tar", &builder.into_inner().unwrap()));
    assert!(
        text.contains("neither a file, a folder nor a link"),
        "{text}"
    );
}

#[test]
fn cut_and_damaged_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tar = good_tar();
    for keep in [tar.len() - 1024, tar.len() - 3000, 1500, 700] {
        let text = refused(&write(dir.path(), "k.tar", &tar[..keep]));
        assert!(
            text.contains("cannot unpack DIR/k.tar: copy or build it again"),
            "{keep}: {text}"
        );
    }
    for c in [
        Compression::Gzip,
        Compression::Xz,
        Compression::Zstd,
        Compression::Bzip2,
    ] {
        let packed = compress(c, &tar);
        let cut = &packed[..packed.len() / 2];
        refused(&write(dir.path(), "cut.tar", cut));
        let text = refused(&write(dir.path(), "k.deb", &deb("data.tar.x", cut)));
        assert!(text.contains("cannot unpack DIR/k.deb"), "{c}: {text}");
    }
    let deb = deb("data.tar", &tar);
    let text = refused(&write(dir.path(), "k.deb", &deb[..deb.len() - 600]));
    assert!(text.contains("member data.tar ends at byte"), "{text}");
    let text = refused(&write(dir.path(), "k.deb", &deb[..72]));
    assert!(text.contains("no member data.tar.*"), "{text}");
}

#[test]
fn other_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let case = |bytes: &[u8]| refused(&write(dir.path(), "f", bytes));
    assert!(case(b"hello world").contains("neither package nor image, it starts with 68 65 6c"));
    assert!(case(&[0xed, 0xab, 0xee, 0xdb, 3, 0]).contains("an RPM package"));
    assert!(case(b"").contains("an empty file"));
    let text = case(&compress(Compression::Gzip, b"just some text"));
    assert!(text.contains("inside is neither tar nor image"), "{text}");
}

#[test]
fn a_folder_that_changes_while_it_is_packed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let module = format!("lib/modules/{RELEASE}/kernel/b.ko");
    let prepare = || {
        for (path, content) in files(&good_bz_image(), "lib") {
            write(dir.path(), &path, &content);
        }
        open(dir.path()).unwrap()
    };
    let refused = |package: &KernelPackage| {
        let error = package.write_canonical(std::io::sink()).unwrap_err();
        assert!(matches!(error, KernelError::Changed { .. }), "{error}");
    };
    let package = prepare();
    write(dir.path(), &module, b"less");
    refused(&package);
    let package = prepare();
    fs::remove_file(dir.path().join(&module)).unwrap();
    refused(&package);
    let package = prepare();
    let image = dir.path().join(format!("boot/vmlinuz-{RELEASE}"));
    let mut bytes = fs::read(&image).unwrap();
    bytes[0] ^= 1;
    fs::write(&image, bytes).unwrap();
    refused(&package);
}
