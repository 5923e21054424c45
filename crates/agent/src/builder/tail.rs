//! The log of make, read as it grows.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of one piece; a busy make prints some ten kilobytes in a second.
const PIECE: u64 = 256 << 10;

/// A file that another program appends to.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    offset: u64,
}

impl Tail {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            offset: 0,
        }
    }

    /// What was appended since the last call, in pieces; nothing where the file cannot be
    /// read: a log is not worth a build.
    pub(super) fn pieces(&mut self) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        while let Some(piece) = self.piece() {
            pieces.push(piece);
        }
        pieces
    }

    fn piece(&mut self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.offset)).ok()?;
        let mut bytes = Vec::new();
        file.take(PIECE).read_to_end(&mut bytes).ok()?;
        self.offset += bytes.len() as u64;
        (!bytes.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn every_byte_comes_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut tail = Tail::new(&path);
        assert!(tail.pieces().is_empty(), "no file yet");
        let mut file = File::create(&path).expect("a file");
        let long = vec![7; PIECE as usize + 3];
        file.write_all(&long).expect("space");
        assert_eq!(tail.pieces().concat(), long);
        assert!(tail.pieces().is_empty());
        file.write_all(b"more").expect("space");
        assert_eq!(tail.pieces(), [b"more"]);
    }
}
