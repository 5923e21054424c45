//! Limits of what is read. Beyond them a file is no patch series, or an attack.

/// Bytes of one source, decompressed: the largest threads of the kernel's lists (whole
/// driver submissions with their reviews) stay below 30 MB.
pub const MAX_INPUT: usize = 64 << 20;
/// Mails of one source; the longest threads of the kernel's lists have about 2000.
pub const MAX_MAILS: usize = 10_000;
/// Bytes of one mail's header: mail servers stop at far less, and a header of this size
/// with its thousand recipients is still read.
pub const MAX_HEADER: usize = 256 << 10;
/// Patches of one series: the reviews of stable kernels reach about 1200.
pub const MAX_PATCHES: u32 = 4096;
/// Trailers that are kept of the replies to one patch, and prerequisites of one series.
pub const MAX_TRAILERS: usize = 1000;
/// Bytes of a path: Linux's own limit.
pub const MAX_PATH: usize = 4096;
/// Files whose blobs are looked for when a base is guessed: more do not make the guess surer.
pub const MAX_BASE_FILES: usize = 64;
/// Tags and branches that are looked at when a base is guessed, newest first.
pub const MAX_BASE_REFS: usize = 3000;
/// Bytes that git may print for one question; the names of all tags and branches of large
/// trees are far below it.
pub(crate) const MAX_GIT_OUTPUT: usize = 64 << 20;
