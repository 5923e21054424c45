//! No input makes the crate panic, and what is damaged is never taken for another kernel.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use klab_kernel::notes::{Note, build_id};
use klab_kernel::{Compression, ImageHeader, Limits, Release, open, read_image, unpack_canonical};
use proptest::prelude::*;
use proptest::sample::Index;
use support::*;

/// Good inputs of every kind that is opened.
fn seeds() -> Vec<Vec<u8>> {
    let tar = good_tar();
    let riscv = flat(RISCV, &kernel_notes(&ID));
    let kernel = vmlinux(X86);
    let mut all = vec![
        deb("data.tar.gz", &compress(Compression::Gzip, &tar)),
        deb("data.tar", &tar),
        zboot(0x5064, &compress(Compression::Gzip, &riscv), "gzip"),
        riscv,
        bz_image(RELEASE, &kernel),
        tar.clone(),
    ];
    for c in [
        Compression::Gzip,
        Compression::Xz,
        Compression::Zstd,
        Compression::Bzip2,
    ] {
        all.push(compress(c, &tar));
    }
    for c in [
        Compression::Xz,
        Compression::Lzma,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        all.push(bz_image(RELEASE, &compress(c, &kernel)));
    }
    all
}

/// Changes to a good input: bytes overwritten, then a cut.
fn damage() -> impl Strategy<Value = (Index, Vec<(Index, u8)>, Option<Index>)> {
    let writes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..12);
    (any::<Index>(), writes, prop::option::of(any::<Index>()))
}

fn damaged(
    seeds: &[Vec<u8>],
    (which, writes, cut): (Index, Vec<(Index, u8)>, Option<Index>),
) -> Vec<u8> {
    let mut bytes = which.get(seeds).clone();
    for (at, byte) in writes {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes
}

#[test]
fn damaged_packages_never_panic() {
    let seeds = seeds();
    let dir = tempfile::tempdir().unwrap();
    proptest!(ProptestConfig::with_cases(400), |(damage in damage())| {
        let path = write(dir.path(), "k", &damaged(&seeds, damage));
        if let Ok(package) = open(&path) {
            package.write_canonical(std::io::sink()).unwrap();
        }
    });
}

#[test]
fn damaged_images_never_panic() {
    let seeds = seeds();
    proptest!(ProptestConfig::with_cases(600), |(damage in damage())| {
        let bytes = damaged(&seeds, damage);
        let _ = read_image(&bytes);
        let _ = ImageHeader::parse(&bytes[..bytes.len().min(700)], bytes.len() as u64);
    });
}

#[test]
fn damaged_canonical_packages_never_panic_and_never_keep_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut good = Vec::new();
    let package = open(&write(dir.path(), "k.tar", &good_tar())).unwrap();
    let digest = package.write_canonical(&mut good).unwrap().digest;
    let seeds = [good.clone()];
    proptest!(ProptestConfig::with_cases(300), |(damage in damage())| {
        let bytes = damaged(&seeds, damage);
        let dest = tempfile::tempdir().unwrap();
        let result = unpack_canonical(bytes.as_slice(), dest.path(), &Limits::default());
        if bytes != good {
            prop_assert!(result.map_or(true, |unpacked| unpacked.digest != digest));
        }
    });
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        let _ = read_image(&bytes);
        let _ = build_id(&bytes);
        let _ = Note::first(&bytes);
        let _ = ImageHeader::parse(&bytes, bytes.len() as u64);
    }

    #[test]
    fn notes_round_trip(id in prop::collection::vec(any::<u8>(), 8..=64)) {
        let read = build_id(&note(b"GNU", 3, &id)).unwrap();
        prop_assert_eq!(read.as_bytes(), id.as_slice());
    }

    #[test]
    fn a_release_never_leaves_its_folder(text in ".{0,80}") {
        if let Ok(release) = Release::parse(&text) {
            prop_assert!(!release.as_str().contains('/') && !release.as_str().starts_with('.'));
        }
    }
}
