//! Small RISC-V kernels: nothing that boots, but whole packages in every other respect.

use super::write;

/// A boot image of [`arch/riscv/boot`](https://docs.kernel.org/arch/riscv/boot-image-header.html):
/// header, version text, ELF notes with a build-id of `ab` twenty times.
pub(crate) fn image(release: &str) -> Vec<u8> {
    let mut out = vec![0; 64];
    out[0x30..0x35].copy_from_slice(b"RISCV");
    out[0x38..0x3c].copy_from_slice(b"RSC\x05");
    out.extend(format!("Linux version {release} (a@b) (gcc) #1\n\0").as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend(note(b"GNU\0", 3, &[0xab; 20]));
    out.extend(note(b"Linux\0", 0x101, &[0; 4]));
    out.extend(note(b"Linux\0", 0x100, b"salt\0"));
    out.extend([0x17; 64]);
    out
}

fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [name.len() as u32, content.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    for part in [name, content] {
        out.extend(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// A Debian package, deb(5), with these files.
pub(crate) fn deb(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar", tar(&[("control", b"Package: x\n")])),
        ("data.tar", tar(files)),
    ] {
        let size = content.len();
        let header = format!("{name:<16}{0:<12}{0:<6}{0:<6}100644  {size:<10}`\n", 0);
        out.extend(header.as_bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Writes the package of a whole kernel into `folder` as `name`.
pub(crate) fn kernel_deb(folder: &std::path::Path, name: &str, release: &str) {
    let image = image(release);
    let files: [(&str, &[u8]); 3] = [
        (&format!("boot/vmlinuz-{release}"), &image),
        (&format!("boot/config-{release}"), b"CONFIG_X=y\n"),
        (&format!("lib/modules/{release}/kernel/a.ko"), b"module"),
    ];
    write(folder, name, deb(&files));
}
