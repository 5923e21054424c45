//! Small kernels: nothing that boots, but whole packages in every other respect.

use std::io::Write as _;
use std::path::{Path, PathBuf};

const X86: u16 = 62;

/// A kernel of a few kilobytes for x86-64.
#[derive(Debug, Clone)]
pub struct SmallKernel {
    /// What `uname -r` prints where it runs.
    pub release: String,
    /// Its GNU build-id.
    pub build_id: [u8; 20],
}

impl SmallKernel {
    /// A kernel whose build-id is `fill` twenty times.
    #[must_use]
    pub fn new(release: &str, fill: u8) -> Self {
        Self {
            release: release.to_owned(),
            build_id: [fill; 20],
        }
    }

    /// The content of `/sys/kernel/notes` where it runs: ELF notes, elf(5).
    #[must_use]
    pub fn notes(&self) -> Vec<u8> {
        [
            note(b"GNU", 3, &self.build_id),
            note(b"Linux", 0x101, &[0; 4]),
            note(b"Linux", 0x100, b"salt\0"),
        ]
        .concat()
    }

    /// Writes what `make tar-pkg` makes of it into `folder`; `filler` is the size of its one
    /// module in bytes, which do not compress.
    ///
    /// # Panics
    /// If the folder cannot be written.
    #[must_use]
    pub fn tar_package(&self, folder: &Path, filler: usize) -> PathBuf {
        let image = self.bz_image();
        let module = noise(filler);
        let path = folder.join(format!("linux-{}-x86.tar", self.release));
        let file = std::fs::File::create(&path).expect("a file for the package");
        let mut tar = tar::Builder::new(file);
        for (name, content) in [
            (format!("boot/vmlinuz-{}", self.release), &image),
            (
                format!("lib/modules/{}/modules.order", self.release),
                &b"kernel/a.ko\n".to_vec(),
            ),
            (format!("lib/modules/{}/kernel/a.ko", self.release), &module),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, content.as_slice())
                .expect("the package is written");
        }
        tar.finish().expect("the package is written");
        path
    }

    /// A bzImage with setup header, version text and compressed vmlinux, as
    /// Documentation/arch/x86/boot.rst lays it out.
    #[must_use]
    pub fn bz_image(&self) -> Vec<u8> {
        let text = format!("Linux version {} (a@b) (gcc) #1\n\0", self.release);
        let content = elf(&self.notes(), text.as_bytes());
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&content).expect("memory");
        let mut payload = packer.finish().expect("memory");
        payload.extend((content.len() as u32).to_le_bytes());
        let mut out = vec![0; 1024];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x1f1, &[1]);
        put(0x1f4, &(payload.len().div_ceil(16) as u32).to_le_bytes());
        put(0x202, b"HdrS");
        put(0x206, &0x20f_u16.to_le_bytes());
        put(0x20e, &0x100_u16.to_le_bytes());
        put(0x236, &0x7f_u16.to_le_bytes());
        put(0x24c, &(payload.len() as u32).to_le_bytes());
        put(0x300, format!("{} (a@b) #1\0", self.release).as_bytes());
        out.extend(payload);
        out
    }
}

fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [name.len() as u32 + 1, content.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    for part in [[name, &[0]].concat(), content.to_vec()] {
        out.extend(&part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// A 64-bit ELF file with one section of notes and some text.
fn elf(notes: &[u8], text: &[u8]) -> Vec<u8> {
    let table = (64 + notes.len() + text.len()).next_multiple_of(8);
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend(2_u16.to_le_bytes());
    out.extend(X86.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    for word in [0, 0, table as u64] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 0, 64, 2, 0] {
        out.extend(half.to_le_bytes());
    }
    out.extend(notes);
    out.extend(text);
    // An empty section, then one of type SHT_NOTE.
    out.resize(table + 64, 0);
    out.extend([0_u32, 7].map(u32::to_le_bytes).concat());
    for word in [0, 0, 64, notes.len() as u64, 0, 4, 0] {
        out.extend(u64::to_le_bytes(word));
    }
    out
}

/// Bytes that no compressor shortens: xorshift64, Marsaglia 2003.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(size).collect()
}
