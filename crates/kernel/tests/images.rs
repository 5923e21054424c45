//! Boot images of every format, made here: arch, release, build-id, and clear refusals.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use klab_kernel::{
    BuildIdAbsent, Compression, HeaderError, ImageError, ImageFacts, ImageFormat, ImageHeader,
    read_image,
};
use klab_model::{Arch, BuildId};
use support::*;

const READABLE: [Compression; 6] = [
    Compression::Gzip,
    Compression::Xz,
    Compression::Zstd,
    Compression::Bzip2,
    Compression::Lzma,
    Compression::Lz4,
];

fn expect(facts: &ImageFacts, format: ImageFormat, arch: Arch) {
    assert_eq!(facts.format, format);
    assert_eq!(facts.arch, arch);
    assert_eq!(facts.release.as_ref().unwrap().as_str(), RELEASE);
    assert_eq!(facts.build_id, Ok(BuildId::from_bytes(&ID).unwrap()));
}

#[test]
fn bz_image_of_every_compression() {
    let kernel = vmlinux(X86);
    for c in READABLE {
        // gzip carries its size itself; the others get it appended.
        let stream = compress(c, &kernel);
        for payload in [stream.clone(), with_size(&stream, &kernel)] {
            let facts =
                read_image(&bz_image(RELEASE, &payload)).unwrap_or_else(|e| panic!("{c}: {e}"));
            expect(&facts, ImageFormat::BzImage, Arch::X86_64);
        }
    }
    expect(
        &read_image(&bz_image(RELEASE, &kernel)).unwrap(),
        ImageFormat::BzImage,
        Arch::X86_64,
    );
}

#[test]
fn lz4_kernel_of_several_blocks() {
    let mut kernel = vmlinux(X86);
    kernel.resize(20 << 20, 7);
    let payload = with_size(&compress(Compression::Lz4, &kernel), &kernel);
    expect(
        &read_image(&bz_image(RELEASE, &payload)).unwrap(),
        ImageFormat::BzImage,
        Arch::X86_64,
    );
}

#[test]
fn lzo_gives_a_release_but_no_build_id_and_says_why() {
    let image = bz_image(RELEASE, &compress(Compression::Lzo, b"whatever"));
    let facts = read_image(&image).unwrap();
    assert_eq!(facts.release.unwrap().as_str(), RELEASE);
    let absent = facts.build_id.unwrap_err();
    assert_eq!(absent, BuildIdAbsent::Compression(Compression::Lzo));
    assert_eq!(
        absent.to_string(),
        "build-id not readable: the kernel inside is lzo compressed"
    );
}

#[test]
fn flat_images_alone_and_wrapped() {
    for (machine, pe, arch) in [
        (RISCV, 0x5064, Arch::Riscv64),
        (ARM64, 0xaa64, Arch::Aarch64),
    ] {
        let image = flat(machine, &kernel_notes(&ID));
        expect(&read_image(&image).unwrap(), ImageFormat::Image, arch);
        for c in READABLE {
            let packed = compress(c, &image);
            let facts = read_image(&packed).unwrap_or_else(|e| panic!("{c}: {e}"));
            expect(&facts, ImageFormat::CompressedImage(c), arch);
            let facts = read_image(&zboot(pe, &packed, c.name())).unwrap();
            expect(&facts, ImageFormat::EfiZboot, arch);
        }
    }
}

#[test]
fn vmlinux_alone() {
    expect(
        &read_image(&vmlinux(RISCV)).unwrap(),
        ImageFormat::Elf,
        Arch::Riscv64,
    );
}

#[test]
fn build_id_of_a_flat_image_is_never_that_of_the_vdso() {
    // Only the vDSO has one.
    let facts = read_image(&flat(RISCV, b"")).unwrap();
    assert_eq!(facts.build_id, Err(BuildIdAbsent::NoNote));

    // A vDSO whose ELF header is gone: the notes that follow tell the kernel's from it.
    let loose = [kernel_notes(&ID), vec![0x13; 16], vdso_notes()].concat();
    expect(
        &read_image(&flat(RISCV, &loose)).unwrap(),
        ImageFormat::Image,
        Arch::Riscv64,
    );

    // Two that look the same: no guess.
    let twice = [kernel_notes(&ID), vec![0x13; 16], kernel_notes(&[1; 20])].concat();
    let facts = read_image(&flat(RISCV, &twice)).unwrap();
    assert_eq!(facts.build_id, Err(BuildIdAbsent::Ambiguous(2)));
}

#[test]
fn kernel_without_build_id() {
    let image = bz_image(
        RELEASE,
        &elf(X86, &note(b"Linux", 0x100, b"s"), &banner(RELEASE)),
    );
    assert_eq!(
        read_image(&image).unwrap().build_id,
        Err(BuildIdAbsent::NoNote)
    );
}

#[test]
fn contradictions_are_refused() {
    let other = bz_image("6.2.0", &vmlinux(X86));
    assert!(matches!(
        read_image(&other),
        Err(ImageError::ReleaseConflict { .. })
    ));
    let other = bz_image(RELEASE, &vmlinux(RISCV));
    assert!(matches!(
        read_image(&other),
        Err(ImageError::ArchConflict { .. })
    ));
    let nested = bz_image(RELEASE, &compress(Compression::Gzip, &good_bz_image()));
    assert!(matches!(
        read_image(&nested),
        Err(ImageError::Nested { .. })
    ));
}

#[test]
fn damaged_images_are_refused() {
    let good = good_bz_image();
    let cut = read_image(&good[..good.len() - 30]).unwrap_err();
    assert!(
        matches!(cut, ImageError::Header(HeaderError::Truncated { .. })),
        "{cut}"
    );

    let mut broken = bz_image(RELEASE, &compress(Compression::Gzip, &vmlinux(X86)));
    broken[1024 + 20..1024 + 60].fill(0x55);
    assert!(matches!(
        read_image(&broken),
        Err(ImageError::Payload { .. })
    ));

    let mut empty = good;
    empty[0x24c..0x250].fill(0);
    assert!(matches!(read_image(&empty), Err(ImageError::NoPayload)));
}

#[test]
fn a_flat_image_must_reach_as_far_as_its_sections() {
    let mut image = flat(RISCV, &kernel_notes(&ID));
    let len = image.len() as u32;
    // PE header in the middle of the padding: one section, that ends one byte too late.
    let at = image.len();
    image.extend(b"PE\0\0\x64\x50\x01\x00");
    image.resize(at + 24, 0);
    image.resize(at + 24 + 16, 0);
    image.extend((len + 65).to_le_bytes());
    image.extend(0u32.to_le_bytes());
    image.resize(at + 64, 0);
    image[0x3c..0x40].copy_from_slice(&(at as u32).to_le_bytes());
    let cut = read_image(&image).unwrap_err();
    assert!(
        matches!(cut, ImageError::Header(HeaderError::Truncated { .. })),
        "{cut}"
    );
    image.push(0);
    assert!(read_image(&image).is_ok());
}

#[test]
fn other_machines_and_other_files() {
    let mut bz32 = good_bz_image();
    bz32[0x236] = 0x7e;
    let text = |bytes: &[u8]| whole(&read_image(bytes).unwrap_err());
    assert_eq!(
        text(&bz32),
        "a kernel for 32-bit x86: expected x86-64, riscv64 or arm64, little-endian"
    );
    assert!(text(&elf(20, b"", b"")).contains("64-bit ELF machine 20"));
    assert!(text(&zboot(0x6264, b"x", "gzip")).contains("PE machine 0x6264"));
    assert!(text(b"MZ\0\0\0\0\0\0\0\0\0\0").contains("unified kernel image"));
    assert!(text(b"#!/bin/sh").contains("starts with 23 21 2f 62"));
    assert!(text(b"").contains("an empty file"));
}

#[test]
fn a_header_is_enough_for_a_board() {
    let image = good_bz_image();
    let header = ImageHeader::parse(&image[..1024], image.len() as u64).unwrap();
    assert_eq!(header.arch, Some(Arch::X86_64));
    assert_eq!(header.release.unwrap().as_str(), RELEASE);
    let image = flat(RISCV, b"");
    let header = ImageHeader::parse(&image, image.len() as u64).unwrap();
    assert_eq!(
        (header.arch, header.format),
        (Some(Arch::Riscv64), ImageFormat::Image)
    );
}
