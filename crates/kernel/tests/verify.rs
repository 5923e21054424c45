//! Packages whose manifest is typed, cut or true.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::io::Read as _;

use klab_kernel::{
    CANONICAL_MANIFEST, Compression, Difference, KernelPackage, Limits, Manifest, Release,
    UnpackError, VerifyError, open, verify_canonical,
};
use klab_model::{Arch, BuildId, Digest, KernelOffer};
use support::*;

fn opened(bytes: &[u8]) -> KernelPackage {
    let dir = tempfile::tempdir().unwrap();
    open(&write(dir.path(), "k.tar", bytes)).unwrap()
}

fn canonical(package: &KernelPackage) -> (KernelOffer, Vec<u8>) {
    let mut bytes = Vec::new();
    let summary = package.write_canonical(&mut bytes).unwrap();
    (package.offer(&summary), bytes)
}

fn good() -> Vec<u8> {
    canonical(&opened(&good_tar())).1
}

/// The same files with another manifest.
fn typed(package: &[u8], change: impl FnOnce(&mut Manifest)) -> Vec<u8> {
    let archive = zstd::decode_all(package).unwrap();
    let mut archive = tar::Archive::new(archive.as_slice());
    let mut out = tar::Builder::new(Vec::new());
    let mut change = Some(change);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        if path.as_os_str() == CANONICAL_MANIFEST {
            let mut manifest = Manifest::from_json(&content).unwrap();
            change.take().unwrap()(&mut manifest);
            content = manifest.to_json();
        }
        let mut header = entry.header().clone();
        header.set_size(content.len() as u64);
        out.append_data(&mut header, path, content.as_slice())
            .unwrap();
    }
    zstd::encode_all(out.into_inner().unwrap().as_slice(), 1).unwrap()
}

fn verify(bytes: &[u8]) -> Result<KernelOffer, VerifyError> {
    verify_canonical(bytes, &Limits::default())
}

fn differences(bytes: &[u8]) -> Vec<Difference> {
    match verify(bytes) {
        Err(VerifyError::Manifest { differences }) => differences,
        other => panic!("expected differences, got {other:?}"),
    }
}

#[test]
fn what_was_written_is_believed() {
    let flat_image = flat(RISCV, &kernel_notes(&ID));
    let packed = compress(Compression::Gzip, &flat_image);
    let payload = compress(Compression::Xz, &flat(ARM64, &kernel_notes(&ID)));
    let images = [
        good_bz_image(),
        bz_image(RELEASE, &elf(X86, &[], &banner(RELEASE))),
        flat_image,
        packed,
        zboot(0xaa64, &payload, "xz"),
    ];
    for image in images {
        let mut files = files(&image, "lib");
        files.push((
            format!("lib/modules/{RELEASE}/modules.dep"),
            b"none".to_vec(),
        ));
        let package = opened(&tar(&as_refs(&files)));
        let (offer, bytes) = canonical(&package);
        assert_eq!(verify(&bytes).unwrap(), offer);
    }
}

#[test]
fn a_kernel_that_cannot_be_read_keeps_the_build_id_of_its_vmlinux() {
    let lzo = bz_image(RELEASE, &compress(Compression::Lzo, b"x"));
    let files: [(&str, &[u8]); 2] = [
        ("boot/vmlinuz-6.1.0-test", &lzo),
        ("boot/vmlinux-6.1.0-test", &vmlinux(X86)),
    ];
    let (offer, bytes) = canonical(&opened(&tar(&files)));
    assert_eq!(offer.build_id, Some(BuildId::from_bytes(&ID).unwrap()));
    assert_eq!(verify(&bytes).unwrap(), offer);
    // Its release is in the header all the same.
    let other = typed(&bytes, |m| m.release = Release::parse("6.2").unwrap());
    assert_eq!(differences(&other)[0].field, "release");
}

#[test]
fn each_claim_that_is_wrong_is_named() {
    let good = good();
    let other = Digest::of(b"other");
    type Change = fn(&mut Manifest, Digest);
    let cases: [(&str, Change); 7] = [
        ("arch", |m, _| m.arch = Arch::Riscv64),
        ("release", |m, _| {
            m.release = Release::parse("6.2.0-test").unwrap();
        }),
        ("build_id", |m, _| {
            m.build_id = Some(BuildId::from_bytes(&[1; 20]).unwrap());
        }),
        ("image_format", |m, _| m.image_format = "Image".to_owned()),
        ("image_digest", |m, other| m.image_digest = other),
        ("config_digest", |m, other| m.config_digest = Some(other)),
        ("modules", |m, _| m.modules = 3),
    ];
    for (field, change) in cases {
        let found = differences(&typed(&good, |m| change(m, other)));
        let fields: Vec<&str> = found.iter().map(|d| d.field).collect();
        assert_eq!(fields, [field]);
    }
    let all = typed(&good, |m| cases.iter().for_each(|(_, c)| c(m, other)));
    let fields: Vec<&str> = differences(&all).iter().map(|d| d.field).collect();
    assert_eq!(fields, cases.map(|(field, _)| field));
}

#[test]
fn what_is_left_out_is_wrong_as_well() {
    let found = differences(&typed(&good(), |m| {
        m.build_id = None;
        m.config_digest = None;
        m.modules = 0;
    }));
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let id = "ab".repeat(20);
    let config = Digest::of(b"CONFIG_X=y\n");
    assert_eq!(
        text,
        [
            format!("the manifest says none, the content is {id}"),
            format!("the manifest says none, the content is {config}"),
            "the manifest says 0, the content is 2".to_owned(),
        ]
    );
    // An image that was linked without a build-id has none to claim.
    let bare = bz_image(RELEASE, &elf(X86, &[], &banner(RELEASE)));
    let bytes = canonical(&opened(&tar(&[("boot/vmlinuz", &bare)]))).1;
    let claimed = typed(&bytes, |m| {
        m.build_id = Some(BuildId::from_bytes(&ID).unwrap());
    });
    assert_eq!(differences(&claimed)[0].field, "build_id");
}

#[test]
fn a_long_claim_is_not_repeated_whole() {
    let long = typed(&good(), |m| m.image_format = "x".repeat(5000));
    assert!(differences(&long)[0].to_string().len() < 200);
}

/// A package with the manifest of the good one and these files.
fn forged(files: &[(&str, &[u8])]) -> Vec<u8> {
    let manifest = opened(&good_tar()).manifest().to_json();
    let all: Vec<(&str, &[u8])> = [(CANONICAL_MANIFEST, manifest.as_slice())]
        .into_iter()
        .chain(files.iter().copied())
        .collect();
    zstd::encode_all(tar(&all).as_slice(), 1).unwrap()
}

#[test]
fn modules_of_another_kernel_have_no_place() {
    let image = good_bz_image();
    let text = whole(
        &verify(&forged(&[
            ("boot/config", b"CONFIG_X=y\n"),
            ("boot/vmlinuz", &image),
            ("lib/modules/6.2.0/a.ko", b"a"),
            ("lib/modules/6.2.0/b.ko", b"b"),
        ]))
        .unwrap_err(),
    );
    assert!(text.contains("lib/modules/6.2.0/"), "{text}");
    assert!(text.contains("which has no place there"), "{text}");
}

#[test]
fn what_does_not_boot_is_no_package() {
    let none = verify(&forged(&[("boot/config", b"CONFIG_X=y\n")]));
    assert!(
        matches!(none, Err(VerifyError::Package(UnpackError::NoImage))),
        "{none:?}"
    );
    let linked = verify(&forged(&[("boot/vmlinuz", &vmlinux(X86))]));
    assert!(
        matches!(linked, Err(VerifyError::NotBootable)),
        "{linked:?}"
    );
    let text = whole(&verify(&forged(&[("boot/vmlinuz", b"text")])).unwrap_err());
    assert!(
        text.starts_with("boot image of the kernel package"),
        "{text}"
    );
}

#[test]
fn no_package_and_a_cut_one_are_told_apart() {
    let foreign = zstd::encode_all(&good_tar()[..], 1).unwrap();
    let error = verify(&foreign).unwrap_err();
    assert!(
        whole(&error).starts_with("no canonical kernel package: first entry is"),
        "{error}"
    );
    let good = good();
    for bytes in [&b"no tar"[..], b"", &good_bz_image(), &good[1..]] {
        assert!(verify(bytes).is_err());
    }
    for cut in [1, good.len() / 4, good.len() / 2, good.len() - 1] {
        let error = verify(&good[..cut]).unwrap_err();
        assert!(whole(&error).contains("cut short"), "{cut}: {error}");
    }
    let more = [&good[..], b"x"].concat();
    assert!(whole(&verify(&more).unwrap_err()).contains("bytes after the end"));
}

#[test]
fn the_budget_holds() {
    let limits = Limits {
        bytes: 3000,
        entries: 100,
    };
    let error = verify_canonical(good().as_slice(), &limits).unwrap_err();
    assert!(
        matches!(error, VerifyError::Package(UnpackError::TooBig { .. })),
        "{error}"
    );
}
