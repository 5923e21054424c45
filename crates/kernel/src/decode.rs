//! Decompression, with a budget for output and for the decoder's own memory.

use std::io::{self, BufRead, Read};

use bzip2::bufread::{BzDecoder, MultiBzDecoder};
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use lzma_rust2::{LzmaReader, XzReader};

use crate::Compression;

/// Memory that an xz or lzma decoder may take, in KiB. `xz -9` wants 65 MiB.
const LZMA_MEMORY_KIB: u32 = 256 << 10;
/// Largest zstd window, as a power of two. The kernel's build uses 128 MiB (`zstd -22`).
const ZSTD_WINDOW_LOG: u32 = 27;
/// Block size of the LZ4 legacy frame, in bytes.
const LZ4_BLOCK: usize = 8 << 20;

/// Why a compressed kernel inside a boot image did not open.
#[derive(Debug)]
pub(crate) enum PayloadError {
    /// No decoder for this format.
    Unsupported(Compression),
    /// The data is damaged.
    Damaged(io::Error),
    /// More output than the budget.
    TooBig,
}

impl From<io::Error> for PayloadError {
    fn from(error: io::Error) -> Self {
        Self::Damaged(error)
    }
}

/// A reader over a compressed archive, several members or frames included.
pub(crate) fn archive_reader<'a>(
    compression: Compression,
    input: impl BufRead + 'a,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(input)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(input, true, LZMA_MEMORY_KIB)),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(input)),
        Compression::Lzma => Box::new(LzmaReader::new_mem_limit(input, LZMA_MEMORY_KIB, None)?),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(input)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Compression::Lz4 | Compression::Lzo => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("{compression} archives are not read; use xz, gzip or zstd"),
            ));
        }
    })
}

/// Decompresses the kernel inside a boot image. The kernel's build appends the size after
/// the stream, so what follows the first stream is ignored.
pub(crate) fn payload(
    compression: Compression,
    input: &[u8],
    limit: u64,
) -> Result<Vec<u8>, PayloadError> {
    let reader: Box<dyn Read + '_> = match compression {
        Compression::Gzip => Box::new(GzDecoder::new(input)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(input, false, LZMA_MEMORY_KIB)),
        Compression::Bzip2 => Box::new(BzDecoder::new(input)),
        Compression::Lzma => Box::new(LzmaReader::new_mem_limit(input, LZMA_MEMORY_KIB, None)?),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(input)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder.single_frame())
        }
        Compression::Lz4 => return lz4_legacy(input, limit),
        Compression::Lzo => return Err(PayloadError::Unsupported(compression)),
    };
    let mut out = Vec::new();
    reader.take(limit + 1).read_to_end(&mut out)?;
    if out.len() as u64 > limit {
        Err(PayloadError::TooBig)
    } else {
        Ok(out)
    }
}

/// The LZ4 legacy frame: a magic number, then blocks of (length, data), each of 8 MiB but
/// the last. The end is the end of the input, or the size that the kernel's build appends.
fn lz4_legacy(input: &[u8], limit: u64) -> Result<Vec<u8>, PayloadError> {
    let mut rest = input.get(4..).unwrap_or_default();
    let mut out = Vec::new();
    let mut block = vec![0; LZ4_BLOCK];
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if tail.is_empty() && length == out.len() {
            break;
        }
        let Some((data, next)) = tail.split_at_checked(length) else {
            let why = "lz4 block longer than its input";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why).into());
        };
        let n = lz4_flex::block::decompress_into(data, &mut block)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        out.extend_from_slice(&block[..n]);
        if out.len() as u64 > limit {
            return Err(PayloadError::TooBig);
        }
        rest = next;
    }
    Ok(out)
}
