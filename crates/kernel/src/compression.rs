//! Compression formats by their magic numbers.

use std::fmt;

/// A compression format, as kernels and packages use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// xz container with LZMA2.
    Xz,
    /// Zstandard (RFC 8878).
    Zstd,
    /// bzip2.
    Bzip2,
    /// The older stand-alone LZMA format.
    Lzma,
    /// LZ4, legacy frame: the one the kernel's build writes.
    Lz4,
    /// lzop; recognised, not read.
    Lzo,
}

/// Magic numbers; the kernel's own list is in `lib/decompress.c`.
const MAGIC: [(&[u8], Compression); 7] = [
    (&[0x1f, 0x8b], Compression::Gzip),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
    (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
    (b"BZh", Compression::Bzip2),
    (&[0x5d, 0x00, 0x00], Compression::Lzma),
    (&[0x02, 0x21, 0x4c, 0x18], Compression::Lz4),
    (&[0x89, b'L', b'Z', b'O'], Compression::Lzo),
];

impl Compression {
    /// Tells the format from the first bytes, `None` when they match no known magic number.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<Self> {
        MAGIC
            .iter()
            .find(|(magic, _)| head.starts_with(magic))
            .map(|&(_, c)| c)
    }

    /// The name users know the format by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lzma => "lzma",
            Self::Lz4 => "lz4",
            Self::Lzo => "lzo",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
