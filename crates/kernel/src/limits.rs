//! Budgets for input that nobody vouches for.

/// Budgets: what a package may cost before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files together, after decompression.
    pub bytes: u64,
    /// Entries in an archive or files in a folder.
    pub entries: usize,
}

impl Default for Limits {
    /// 4 GiB and 100,000 entries: ten times a distribution kernel without debug symbols.
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            entries: 100_000,
        }
    }
}

/// Largest boot image that is read, in bytes. Distribution images are 5 to 60 MiB.
#[cfg(feature = "read")]
pub(crate) const IMAGE_BYTES: u64 = 256 << 20;

/// Largest kernel inside a compressed boot image, in bytes.
#[cfg(feature = "read")]
pub(crate) const PAYLOAD_BYTES: u64 = 512 << 20;
