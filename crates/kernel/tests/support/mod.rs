//! Small kernels and packages, made byte by byte.
#![allow(dead_code, reason = "every test program uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};

use klab_kernel::Compression;

pub(crate) const RELEASE: &str = "6.1.0-test";
pub(crate) const ID: [u8; 20] = [0xab; 20];
pub(crate) const VDSO_ID: [u8; 20] = [0xcd; 20];

pub(crate) const X86: u16 = 62;
pub(crate) const ARM64: u16 = 183;
pub(crate) const RISCV: u16 = 243;

pub(crate) fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [name.len() as u32 + 1, desc.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    for part in [[name, &[0][..]].concat(), desc.to_vec()] {
        out.extend(&part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// The notes of a kernel: build-id, LTO info, build salt.
pub(crate) fn kernel_notes(id: &[u8]) -> Vec<u8> {
    [
        note(b"GNU", 3, id),
        note(b"Linux", 0x101, &[0; 4]),
        note(b"Linux", 0x100, b"salt\0"),
    ]
    .concat()
}

pub(crate) fn vdso_notes() -> Vec<u8> {
    [
        note(b"GNU", 3, &VDSO_ID),
        note(b"Linux", 0, &[0; 4]),
        note(b"Linux", 0x100, b"salt\0"),
    ]
    .concat()
}

pub(crate) fn banner(release: &str) -> Vec<u8> {
    format!("Linux version {release} (a@b) (gcc) #1\n\0").into_bytes()
}

/// A 64-bit ELF file with one note section and some text.
pub(crate) fn elf(machine: u16, notes: &[u8], text: &[u8]) -> Vec<u8> {
    let table = (64 + notes.len() + text.len()).next_multiple_of(8);
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend(2u16.to_le_bytes());
    out.extend(machine.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    for word in [0u64, 0, table as u64] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 0, 64, 2, 0] {
        out.extend(half.to_le_bytes());
    }
    assert_eq!(out.len(), 64, "size of an ELF header");
    out.extend(notes);
    out.extend(text);
    out.resize(table + 64, 0);
    // One section of type SHT_NOTE after the empty one.
    out.extend(0u32.to_le_bytes());
    out.extend(7u32.to_le_bytes());
    for word in [0u64, 0, 64, notes.len() as u64, 0, 4, 0] {
        out.extend(word.to_le_bytes());
    }
    out
}

pub(crate) fn vmlinux(machine: u16) -> Vec<u8> {
    elf(machine, &kernel_notes(&ID), &banner(RELEASE))
}

/// A bzImage around `payload`.
pub(crate) fn bz_image(release: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 1024];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x1f1, &[1]);
    put(0x1f4, &(payload.len().div_ceil(16) as u32).to_le_bytes());
    put(0x202, b"HdrS");
    put(0x206, &0x20fu16.to_le_bytes());
    put(0x20e, &0x100u16.to_le_bytes());
    put(0x236, &0x7fu16.to_le_bytes());
    put(0x24c, &(payload.len() as u32).to_le_bytes());
    put(0x300, format!("{release} (a@b) #1\0").as_bytes());
    out.extend(payload);
    out
}

pub(crate) fn good_bz_image() -> Vec<u8> {
    bz_image(
        RELEASE,
        &with_size(&compress(Compression::Zstd, &vmlinux(X86)), &vmlinux(X86)),
    )
}

/// What the kernel's build does: the size of the content follows the stream.
pub(crate) fn with_size(stream: &[u8], content: &[u8]) -> Vec<u8> {
    [stream, &(content.len() as u32).to_le_bytes()].concat()
}

/// A flat image: header, banner, an embedded vDSO, the kernel's notes.
pub(crate) fn flat(machine: u16, notes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 64];
    if machine == RISCV {
        out[0x30..0x35].copy_from_slice(b"RISCV");
        out[0x38..0x3c].copy_from_slice(b"RSC\x05");
    } else {
        out[0x38..0x3c].copy_from_slice(b"ARM\x64");
    }
    out.extend(banner(RELEASE));
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend(elf(machine, &vdso_notes(), b""));
    out.extend([0x13; 32]);
    out.extend(notes);
    out.extend([0x17; 64]);
    out
}

/// An EFI zboot image around `payload`.
pub(crate) fn zboot(pe_machine: u16, payload: &[u8], compression: &str) -> Vec<u8> {
    let mut out = vec![0; 0x100];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ\0\0zimg");
    put(8, &0x100u32.to_le_bytes());
    put(12, &(payload.len() as u32).to_le_bytes());
    put(24, compression.as_bytes());
    put(0x3c, &0x40u32.to_le_bytes());
    put(0x40, b"PE\0\0");
    put(0x44, &pe_machine.to_le_bytes());
    out.extend(payload);
    out
}

pub(crate) fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Gzip => {
            let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            w.write_all(bytes).expect("memory");
            w.finish().expect("memory")
        }
        Compression::Zstd => zstd::encode_all(bytes, 3).expect("memory"),
        Compression::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut w = lzma_rust2::XzWriter::new(Vec::new(), options).expect("memory");
            w.write_all(bytes).expect("memory");
            w.finish().expect("memory")
        }
        Compression::Lzma => {
            let options = lzma_rust2::LzmaOptions::with_preset(1);
            let mut w =
                lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &options, None).expect("memory");
            w.write_all(bytes).expect("memory");
            w.finish().expect("memory")
        }
        Compression::Bzip2 => {
            let mut w = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            w.write_all(bytes).expect("memory");
            w.finish().expect("memory")
        }
        Compression::Lz4 => {
            let mut out = vec![0x02, 0x21, 0x4c, 0x18];
            for block in bytes.chunks(8 << 20) {
                let packed = lz4_flex::block::compress(block);
                out.extend((packed.len() as u32).to_le_bytes());
                out.extend(packed);
            }
            out
        }
        Compression::Lzo => [&[0x89, b'L', b'Z', b'O'][..], bytes].concat(),
    }
}

/// A tar archive of (path, content).
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(1_700_000_000);
        builder
            .append_data(&mut header, path, *content)
            .expect("memory");
    }
    builder.into_inner().expect("memory")
}

/// A Debian package around a data archive.
pub(crate) fn deb(data_name: &str, data: &[u8]) -> Vec<u8> {
    let control = compress(Compression::Gzip, &tar(&[("control", b"Package: x\n")]));
    deb_of(("control.tar.gz", &control), (data_name, data))
}

/// A Debian package around a control archive and a data archive.
pub(crate) fn deb_of(control: (&str, &[u8]), data: (&str, &[u8])) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, content) in [("debian-binary", &b"2.0\n"[..]), control, data] {
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            100644,
            content.len()
        );
        out.extend(header.as_bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

/// The files of a whole package; `lib` is `lib` or `usr/lib`.
pub(crate) fn files(image: &[u8], lib: &str) -> Vec<(String, Vec<u8>)> {
    let path = |p: &str| p.replace("LIB", lib).replace("REL", RELEASE);
    let file = |p: &str, content: &[u8]| (path(p), content.to_vec());
    vec![
        file("LIB/modules/REL/modules.order", b"kernel/a.ko\n"),
        file("LIB/modules/REL/kernel/b.ko", b"module b"),
        file("LIB/modules/REL/kernel/a.ko.xz", b"module a"),
        file("boot/vmlinuz-REL", image),
        file("boot/config-REL", b"CONFIG_X=y\n"),
        file("boot/System.map-REL", &[b'f'; 2000]),
    ]
}

pub(crate) fn as_refs(files: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_slice()))
        .collect()
}

pub(crate) fn good_tar() -> Vec<u8> {
    tar(&as_refs(&files(&good_bz_image(), "lib")))
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("below the folder")).expect("folder");
    std::fs::write(&path, bytes).expect("file");
    path
}

/// An error with its causes, as the command line prints it.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
