//! Packages of every kind, made here: what is taken and what is made of it.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use klab_kernel::{
    Compression, KernelError, KernelPackage, Limits, PackageKind, Summary, open, open_pair,
    read_canonical, unpack_canonical,
};
use klab_model::{Arch, BuildId, Digest};
use support::*;

fn expect(package: &KernelPackage, kind: PackageKind) {
    assert_eq!(package.arch(), Arch::X86_64);
    assert_eq!(package.release().as_str(), RELEASE);
    assert_eq!(package.build_id(), Some(&BuildId::from_bytes(&ID).unwrap()));
    assert_eq!(package.manifest().package_kind, kind);
}

fn canonical(package: &KernelPackage) -> (Summary, Vec<u8>) {
    let mut bytes = Vec::new();
    let summary = package.write_canonical(&mut bytes).unwrap();
    (summary, bytes)
}

const FILES: [&str; 6] = [
    "boot/System.map",
    "boot/config",
    "boot/vmlinuz",
    "lib/modules/6.1.0-test/kernel/a.ko.xz",
    "lib/modules/6.1.0-test/kernel/b.ko",
    "lib/modules/6.1.0-test/modules.order",
];

#[test]
fn tar_in_every_compression_and_deb_give_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    let tar = good_tar();
    let usr = support::tar(&as_refs(&files(&good_bz_image(), "usr/lib")));
    let mut cases = vec![
        (write(dir.path(), "k.tar", &tar), PackageKind::Tar),
        (write(dir.path(), "merged.tar", &usr), PackageKind::Tar),
        (
            write(dir.path(), "plain.deb", &deb("data.tar", &tar)),
            PackageKind::Deb,
        ),
        (
            write(dir.path(), "slash.deb", &deb("data.tar/", &tar)),
            PackageKind::Deb,
        ),
    ];
    for c in [
        Compression::Gzip,
        Compression::Xz,
        Compression::Zstd,
        Compression::Bzip2,
    ] {
        let packed = compress(c, &tar);
        cases.push((
            write(dir.path(), &format!("k.tar.{c}"), &packed),
            PackageKind::Tar,
        ));
        let deb = deb(&format!("data.tar.{c}"), &packed);
        cases.push((
            write(dir.path(), &format!("{c}.deb"), &deb),
            PackageKind::Deb,
        ));
    }
    for (path, kind) in cases {
        let package = open(&path).unwrap_or_else(|e| panic!("{}", whole(&e)));
        expect(&package, kind);
        assert_eq!(package.files().collect::<Vec<_>>(), FILES);
        assert_eq!(package.manifest().modules, 2);
        assert_eq!(
            package.manifest().config_digest,
            Some(Digest::of(b"CONFIG_X=y\n"))
        );
    }
}

#[test]
fn canonical_bytes_depend_on_the_content_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(&good_bz_image(), "lib");
    let one = write(dir.path(), "a.tar", &tar(&as_refs(&files)));
    files.reverse();
    let two = write(
        dir.path(),
        "b.tar.gz",
        &compress(Compression::Gzip, &tar(&as_refs(&files))),
    );
    let (one, two) = (
        canonical(&open(&one).unwrap()),
        canonical(&open(&two).unwrap()),
    );
    assert_eq!(one, two);
    assert_eq!(one.0.digest, Digest::of(&one.1));
    assert_eq!(one.0.size, one.1.len() as u64);
}

#[test]
fn canonical_goes_through_unpacking_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let image = good_bz_image();
    let package = open(&write(dir.path(), "k.tar", &good_tar())).unwrap();
    let (summary, bytes) = canonical(&package);
    let offer = package.offer(&summary);
    assert_eq!(
        (offer.digest, offer.image_digest),
        (summary.digest, Digest::of(&image))
    );
    assert_eq!(
        &read_canonical(bytes.as_slice()).unwrap(),
        package.manifest()
    );
    let dest = dir.path().join("out");
    let unpacked = unpack_canonical(bytes.as_slice(), &dest, &Limits::default()).unwrap();
    assert_eq!(&unpacked.manifest, package.manifest());
    assert_eq!(
        (unpacked.digest, unpacked.size),
        (summary.digest, summary.size)
    );
    assert_eq!(unpacked.files, FILES.len());
    assert_eq!(fs::read(dest.join("boot/vmlinuz")).unwrap(), image);
    let module = dest.join("lib/modules/6.1.0-test/kernel/b.ko");
    assert_eq!(fs::read(module).unwrap(), b"module b");
}

#[test]
fn folder_of_a_file_system() {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files(&good_bz_image(), "lib") {
        write(dir.path(), &path, &content);
    }
    let modules = dir.path().join("lib/modules").join(RELEASE);
    symlink("/etc", modules.join("build")).unwrap();
    symlink("/etc/passwd", modules.join("source")).unwrap();
    symlink("nowhere", dir.path().join("boot/vmlinuz")).unwrap();
    let package = open(dir.path()).unwrap();
    expect(&package, PackageKind::Folder);
    assert_eq!(package.files().collect::<Vec<_>>(), FILES);
}

#[test]
fn flat_folder_and_single_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = write(dir.path(), "real/arch/bzImage", &good_bz_image());
    let flat = dir.path().join("flat");
    write(&flat, ".config", b"CONFIG_X=y\n");
    write(&flat, &format!("modules/{RELEASE}/kernel/a.ko"), b"a");
    symlink(&image, flat.join("bzImage")).unwrap();
    let package = open(&flat).unwrap();
    expect(&package, PackageKind::Folder);
    let expected = [
        "boot/config",
        "boot/vmlinuz",
        "lib/modules/6.1.0-test/kernel/a.ko",
    ];
    assert_eq!(package.files().collect::<Vec<_>>(), expected);

    let package = open(&image).unwrap();
    expect(&package, PackageKind::Image);
    assert_eq!(package.files().collect::<Vec<_>>(), ["boot/vmlinuz"]);

    let gz = compress(Compression::Gzip, &support::flat(RISCV, &kernel_notes(&ID)));
    let package = open(&write(dir.path(), "Image.gz", &gz)).unwrap();
    assert_eq!(package.arch(), Arch::Riscv64);
    assert_eq!(package.manifest().image_format, "Image, gzip");
}

#[test]
fn image_and_modules_wherever_the_folder_starts() {
    let dir = tempfile::tempdir().unwrap();
    let image = write(dir.path(), "bzImage", &good_bz_image());
    let top = dir.path().join("mods");
    write(&top, &format!("lib/modules/{RELEASE}/kernel/a.ko"), b"a");
    for given in ["", "lib/modules", &format!("lib/modules/{RELEASE}")] {
        let package = open_pair(&image, Some(&top.join(given))).unwrap();
        let expected = ["boot/vmlinuz", "lib/modules/6.1.0-test/kernel/a.ko"];
        assert_eq!(package.files().collect::<Vec<_>>(), expected, "{given:?}");
    }
    let error = open_pair(&image, Some(&dir.path().join("mods/lib"))).unwrap_err();
    assert!(matches!(error, KernelError::NoModules { .. }), "{error}");
}

#[test]
fn device_trees_come_along() {
    let dir = tempfile::tempdir().unwrap();
    let image = support::flat(RISCV, &kernel_notes(&ID));
    let debian = format!("usr/lib/linux-image-{RELEASE}/sifive/x.dtb");
    let tar_pkg = format!("boot/dtbs/{RELEASE}/sifive/x.dtb");
    for dtb in [debian, tar_pkg] {
        let files: [(&str, &[u8]); 2] = [("boot/vmlinux-6.1.0-test", &image), (&dtb, b"dtb")];
        let package = open(&write(dir.path(), "k.tar", &tar(&files))).unwrap();
        let expected = ["boot/dtbs/sifive/x.dtb", "boot/vmlinuz"];
        assert_eq!(package.files().collect::<Vec<_>>(), expected, "{dtb}");
    }
}

#[test]
fn a_kernel_that_lies_whole_in_its_modules_folder_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let inside = |name: &str| format!("usr/lib/modules/{RELEASE}/{name}");
    let files = [
        ("vmlinuz", good_bz_image()),
        ("config", b"CONFIG_X=y\n".to_vec()),
        ("System.map", vec![b'f'; 2000]),
        ("dtb/sifive/x.dtb", b"dtb".to_vec()),
        ("kernel/a.ko", b"module a".to_vec()),
    ];
    let files = files.map(|(name, bytes)| (inside(name), bytes));
    let package = open(&write(dir.path(), "k.tar", &tar(&as_refs(&files)))).unwrap();
    expect(&package, PackageKind::Tar);
    let expected = [
        "boot/System.map",
        "boot/config",
        "boot/dtbs/sifive/x.dtb",
        "boot/vmlinuz",
        "lib/modules/6.1.0-test/System.map",
        "lib/modules/6.1.0-test/config",
        "lib/modules/6.1.0-test/kernel/a.ko",
    ];
    assert_eq!(package.files().collect::<Vec<_>>(), expected);

    // With a boot folder beside it, that is what counts.
    let mut both = files.to_vec();
    let config = format!("boot/config-{RELEASE}");
    both.push((format!("boot/vmlinuz-{RELEASE}"), good_bz_image()));
    both.push((config, b"CONFIG_Y=y\n".to_vec()));
    for order in 0..2 {
        both.reverse();
        let path = write(dir.path(), &format!("{order}.tar"), &tar(&as_refs(&both)));
        let package = open(&path).unwrap();
        let digest = Digest::of(b"CONFIG_Y=y\n");
        assert_eq!(package.manifest().config_digest, Some(digest));
    }
}

#[test]
fn vmlinux_beside_the_image_confirms_or_supplies_the_build_id() {
    let dir = tempfile::tempdir().unwrap();
    let with = |image: &[u8], linked: &[u8]| {
        let files: [(&str, &[u8]); 2] = [
            ("boot/vmlinuz-6.1.0-test", image),
            ("boot/vmlinux-6.1.0-test", linked),
        ];
        open(&write(dir.path(), "k.tar", &tar(&files)))
    };
    expect(
        &with(&good_bz_image(), &vmlinux(X86)).unwrap(),
        PackageKind::Tar,
    );
    let lzo = bz_image(RELEASE, &compress(Compression::Lzo, b"x"));
    expect(&with(&lzo, &vmlinux(X86)).unwrap(), PackageKind::Tar);
    let other = elf(X86, &kernel_notes(&[1; 20]), &banner(RELEASE));
    let error = with(&good_bz_image(), &other).unwrap_err();
    assert!(
        matches!(error, KernelError::BuildConflict { .. }),
        "{error}"
    );
}

#[test]
fn an_unreadable_build_id_is_said_in_the_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let image = bz_image(RELEASE, &compress(Compression::Lzo, b"x"));
    let package = open(&write(dir.path(), "bzImage", &image)).unwrap();
    assert_eq!(package.build_id(), None);
    let why = package.manifest().build_id_absent.as_deref().unwrap();
    assert_eq!(
        why,
        "build-id not readable: the kernel inside is lzo compressed"
    );
}

#[test]
fn bindeb_pkg_results_in_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    let deb = deb("data.tar", &good_tar());
    write(dir.path(), "linux-image-6.1.0-test_1_amd64.deb", &deb);
    write(dir.path(), "linux-image-6.1.0-test-dbg_1_amd64.deb", b"no");
    write(dir.path(), "linux-headers-6.1.0-test_1_amd64.deb", b"no");
    expect(&open(dir.path()).unwrap(), PackageKind::Deb);
    write(dir.path(), "linux-image-6.2.0_1_amd64.deb", &deb);
    let error = open(dir.path()).unwrap_err();
    assert!(
        matches!(error, KernelError::SeveralKernels { .. }),
        "{error}"
    );
}

#[test]
fn a_folder_around_everything_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<_> = files(&good_bz_image(), "lib")
        .into_iter()
        .map(|(path, content)| (format!("linux-6.1.0-test-x86/{path}"), content))
        .collect();
    let package = open(&write(dir.path(), "k.tar", &tar(&as_refs(&files)))).unwrap();
    assert_eq!(package.files().collect::<Vec<_>>(), FILES);
}

#[test]
fn long_paths_hard_links_and_extended_headers() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!(
        "lib/modules/{RELEASE}/kernel/drivers/{}/{}.ko",
        "d".repeat(60),
        "m".repeat(80)
    );
    let mut builder =
        tar::Builder::new(tar(&[("boot/vmlinuz", &good_bz_image()), (&long, b"long")]));
    let whole_len = builder.get_ref().len() - 1024;
    builder.get_mut().truncate(whole_len);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Link);
    header.set_size(0);
    let linked = format!("lib/modules/{RELEASE}/kernel/linked.ko");
    builder.append_link(&mut header, &linked, &long).unwrap();
    builder
        .append_pax_extensions([("path", format!("./lib/modules/{RELEASE}/pax").as_bytes())])
        .unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(3);
    builder
        .append_data(&mut header, "cut", &b"pax"[..])
        .unwrap();
    let path = write(dir.path(), "k.tar", &builder.into_inner().unwrap());
    let package = open(&path).unwrap_or_else(|e| panic!("{}", whole(&e)));
    let expected = [
        "boot/vmlinuz",
        &long,
        &linked,
        &format!("lib/modules/{RELEASE}/pax"),
    ];
    assert_eq!(package.files().collect::<Vec<_>>(), expected);
    let dest = dir.path().join("out");
    let bytes = canonical(&package).1;
    unpack_canonical(bytes.as_slice(), &dest, &Limits::default()).unwrap();
    assert_eq!(fs::read(dest.join(&long)).unwrap(), b"long");
}

#[test]
fn a_stub_in_place_of_the_symbol_table_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let stub =
        b"ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n";
    let files: [(&str, &[u8]); 2] = [
        ("boot/vmlinuz-6.1.0-test", &good_bz_image()),
        ("boot/System.map-6.1.0-test", stub),
    ];
    let package = open(&write(dir.path(), "k.tar", &tar(&files))).unwrap();
    assert_eq!(package.files().collect::<Vec<_>>(), ["boot/vmlinuz"]);
}
