//! Canonical packages that klab did not write, or that arrived damaged.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use klab_kernel::{
    CANONICAL_MANIFEST, Limits, Manifest, UnpackError, open, read_canonical, unpack_canonical,
};
use klab_model::{Arch, Digest};
use support::*;
use tar::EntryType;

fn manifest() -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    open(&write(dir.path(), "k.tar", &good_tar()))
        .unwrap()
        .manifest()
        .clone()
}

/// One entry of a forged package.
type Entry<'a> = (EntryType, &'a str, &'a [u8]);

fn file<'a>(path: &'a str, content: &'a [u8]) -> Entry<'a> {
    (EntryType::Regular, path, content)
}

fn forge_tar(manifest: &Manifest, entries: &[Entry<'_>]) -> Vec<u8> {
    let json = manifest.to_json();
    let mut builder = tar::Builder::new(Vec::new());
    let first = [file(CANONICAL_MANIFEST, &json)];
    for (kind, path, content) in first.iter().chain(entries) {
        let mut header = tar::Header::new_ustar();
        header.as_ustar_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn forge(manifest: &Manifest, entries: &[Entry<'_>]) -> Vec<u8> {
    zstd::encode_all(forge_tar(manifest, entries).as_slice(), 1).unwrap()
}

fn unpack(bytes: &[u8]) -> Result<(), UnpackError> {
    let dir = tempfile::tempdir().unwrap();
    unpack_canonical(bytes, &dir.path().join("out"), &Limits::default()).map(|_| ())
}

fn why(bytes: &[u8]) -> String {
    whole(&unpack(bytes).unwrap_err())
}

#[test]
fn the_smallest_package_is_accepted() {
    unpack(&forge(
        &manifest(),
        &[file("boot/vmlinuz", &good_bz_image())],
    ))
    .unwrap();
}

#[test]
fn paths_have_their_places() {
    let image = good_bz_image();
    for evil in [
        "../x",
        "/boot/x",
        "boot/vmlinux",
        "boot/dtbs/",
        "boot/dtbs/../../x",
        "etc/passwd",
        "lib/modules/6.1.0-test/../../x",
        "lib/modules/6.1.0-test/./x",
        "lib/modules/6.2/x",
        "lib/modules/6.1.0-test",
        "lib/modules/6.1.0-test//x",
    ] {
        let text = why(&forge(
            &manifest(),
            &[file("boot/vmlinuz", &image), file(evil, b"x")],
        ));
        assert!(text.contains("which has no place there"), "{evil}: {text}");
    }
}

#[test]
fn only_regular_files_in_order_and_once() {
    let image = good_bz_image();
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNULongName,
        EntryType::GNUSparse,
        EntryType::XHeader,
    ] {
        let entry = (kind, "lib/modules/6.1.0-test/x", &b""[..]);
        let text = why(&forge(&manifest(), &[file("boot/vmlinuz", &image), entry]));
        assert!(
            text.contains("which is not a regular file"),
            "{kind:?}: {text}"
        );
    }
    for second in ["boot/vmlinuz", "boot/config"] {
        let entries = [file("boot/vmlinuz", &image), file(second, &image)];
        let text = why(&forge(&manifest(), &entries));
        assert!(
            text.contains("out of order or there twice"),
            "{second}: {text}"
        );
    }
}

#[test]
fn the_image_must_be_the_one_of_the_manifest() {
    let image = good_bz_image();
    let boot = |manifest: &Manifest, image: &[u8]| {
        unpack(&forge(manifest, &[file("boot/vmlinuz", image)]))
    };
    let mut other = manifest();
    other.image_digest = Digest::of(b"other");
    assert!(matches!(
        boot(&other, &image),
        Err(UnpackError::ImageDigest { .. })
    ));
    let mut other = manifest();
    other.arch = Arch::Riscv64;
    assert!(matches!(
        boot(&other, &image),
        Err(UnpackError::Arch { .. })
    ));
    let cut = &image[..image.len() - 100];
    let mut other = manifest();
    other.image_digest = Digest::of(cut);
    assert!(matches!(boot(&other, cut), Err(UnpackError::Image(_))));
    assert!(matches!(
        unpack(&forge(&manifest(), &[])),
        Err(UnpackError::NoImage)
    ));
}

#[test]
fn manifests_are_read_first_and_only_in_our_version() {
    let forged = |json: &str| {
        let files = [(CANONICAL_MANIFEST, json.as_bytes())];
        zstd::encode_all(tar(&files).as_slice(), 1).unwrap()
    };
    assert!(why(&forged(r#"{"version":2}"#)).contains("version 2; this klab reads version 1"));
    assert!(why(&forged("{}")).contains("not a kernel manifest"));
    let big = format!("{{\"version\":1}}{}", " ".repeat(70_000));
    assert!(why(&forged(&big)).contains("too long"));
    let none = zstd::encode_all(good_tar().as_slice(), 1).unwrap();
    assert!(why(&none).contains("no canonical kernel package: first entry is"));
    assert!(why(b"hello").contains("damaged or cut short"));
    assert!(read_canonical(&b""[..]).is_err());
    let mut json: serde_json::Value = serde_json::from_slice(&manifest().to_json()).unwrap();
    json["release"] = "../../etc".into();
    assert!(why(&forged(&json.to_string())).contains("no kernel release"));
}

#[test]
fn cut_anywhere_is_noticed() {
    let good = forge(&manifest(), &[file("boot/vmlinuz", &good_bz_image())]);
    for len in (0..good.len()).step_by(7).chain([good.len() - 1]) {
        assert!(unpack(&good[..len]).is_err(), "{len} of {}", good.len());
    }
}

#[test]
fn nothing_may_follow() {
    let good = forge(&manifest(), &[file("boot/vmlinuz", &good_bz_image())]);
    for tail in [&b"x"[..], &zstd::encode_all(&b"more"[..], 1).unwrap()] {
        let bytes = [&good, tail].concat();
        assert!(matches!(unpack(&bytes), Err(UnpackError::Trailing)));
    }
    let mut inner = forge_tar(&manifest(), &[file("boot/vmlinuz", &good_bz_image())]);
    inner.extend(b"hidden");
    let bytes = zstd::encode_all(inner.as_slice(), 1).unwrap();
    assert!(matches!(unpack(&bytes), Err(UnpackError::Trailing)));
}

#[test]
fn budgets_hold() {
    let image = good_bz_image();
    let bytes = forge(&manifest(), &[file("boot/vmlinuz", &image)]);
    let dir = tempfile::tempdir().unwrap();
    let small = Limits {
        bytes: image.len() as u64 - 1,
        entries: 10,
    };
    let error = unpack_canonical(bytes.as_slice(), &dir.path().join("a"), &small).unwrap_err();
    assert!(matches!(error, UnpackError::TooBig { .. }), "{error}");
    let none = Limits {
        bytes: 1 << 30,
        entries: 0,
    };
    let error = unpack_canonical(bytes.as_slice(), &dir.path().join("b"), &none).unwrap_err();
    assert!(matches!(error, UnpackError::TooBig { .. }), "{error}");
    assert!(!dir.path().join("b/boot").exists(), "nothing was written");
}

#[test]
fn a_wide_window_is_refused() {
    let inner = forge_tar(&manifest(), &[file("boot/vmlinuz", &vec![1; 20 << 20])]);
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(24).unwrap();
    std::io::Write::write_all(&mut encoder, &inner).unwrap();
    assert!(matches!(
        unpack(&encoder.finish().unwrap()),
        Err(UnpackError::Read(_))
    ));
}

#[test]
fn the_target_must_be_empty() {
    let bytes = forge(&manifest(), &[file("boot/vmlinuz", &good_bz_image())]);
    let dir = tempfile::tempdir().unwrap();
    symlink("/etc", dir.path().join("boot")).unwrap();
    let error = unpack_canonical(bytes.as_slice(), dir.path(), &Limits::default()).unwrap_err();
    assert!(matches!(error, UnpackError::NotEmpty { .. }), "{error}");
    fs::remove_file(dir.path().join("boot")).unwrap();
    unpack_canonical(bytes.as_slice(), dir.path(), &Limits::default()).unwrap();
}
