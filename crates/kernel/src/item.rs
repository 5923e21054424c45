//! What an opened package holds: a list of files and where their bytes are.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// One entry of a package, under its path inside the package.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Relative, `/` between names, no `..`.
    pub(crate) path: String,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) place: Place,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In an unpacked archive, at this offset.
    Span { file: Arc<File>, offset: u64 },
    /// A file of its own.
    Path(PathBuf),
}

impl Item {
    /// A reader over exactly the item's bytes.
    pub(crate) fn reader(&self) -> io::Result<ItemReader> {
        let (file, offset) = match &self.place {
            Place::Span { file, offset } => (Arc::clone(file), *offset),
            Place::Path(path) => (Arc::new(File::open(path)?), 0),
        };
        Ok(ItemReader {
            file,
            offset,
            left: self.size,
        })
    }

    /// All bytes of the item, which must not be more than `limit`.
    pub(crate) fn read(&self, limit: u64) -> io::Result<Vec<u8>> {
        if self.size > limit {
            let why = format!("{} bytes, more than the {limit} that are read", self.size);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != self.size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    /// The last component of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Reads one item; several may read the same archive at once.
#[derive(Debug)]
pub(crate) struct ItemReader {
    file: Arc<File>,
    offset: u64,
    left: u64,
}

impl ItemReader {
    /// Passes over `bytes`, at most to the end.
    pub(crate) fn skip(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.offset += bytes;
        self.left -= bytes;
    }
}

impl Read for ItemReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let n = self.file.read_at(&mut buffer[..want], self.offset)?;
        self.offset += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}
