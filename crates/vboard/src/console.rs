//! Following a board's console log from any offset.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How often a waiting follower looks, while nothing new comes.
const POLL: Duration = Duration::from_millis(50);

/// Reads what a board's console prints, across restarts of board and follower.
#[derive(Debug)]
pub struct ConsoleFollower {
    path: PathBuf,
    offset: u64,
    /// Read for lines and not yet ended by a line break.
    partial: Vec<u8>,
}

impl ConsoleFollower {
    /// Follows the log at `path` from `offset` bytes on. The file may come later.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, offset: u64) -> Self {
        Self {
            path: path.into(),
            offset,
            partial: Vec::new(),
        }
    }

    /// The log that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The offset after the last byte read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What came since the last read; empty if nothing did. A log that became shorter is read
    /// from its start.
    ///
    /// # Errors
    /// [`Error::Io`] if the file is there and cannot be read.
    pub fn read(&mut self) -> Result<Vec<u8>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("open", &self.path)(e)),
        };
        let length = file
            .metadata()
            .map_err(Error::io("read", &self.path))?
            .len();
        if length < self.offset {
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset))
            .map_err(Error::io("seek in", &self.path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(Error::io("read", &self.path))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// The whole lines that came since the last read, without line ends.
    ///
    /// # Errors
    /// Those of [`ConsoleFollower::read`].
    pub fn lines(&mut self) -> Result<Vec<String>> {
        let new = self.read()?;
        self.partial.extend(new);
        let Some(end) = self.partial.iter().rposition(|b| *b == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        Ok(String::from_utf8_lossy(&whole)
            .lines()
            .map(|l| l.trim_end_matches('\r').to_owned())
            .collect())
    }

    /// Waits for a line with `text` in it and returns that line, or nothing after `limit`.
    /// Lines after it that came in the same read are kept for the next call.
    ///
    /// # Errors
    /// Those of [`ConsoleFollower::read`].
    pub fn wait_for(&mut self, text: &str, limit: Duration) -> Result<Option<String>> {
        let end = Instant::now() + limit;
        loop {
            let mut lines = self.lines()?.into_iter();
            if let Some(found) = lines.by_ref().find(|l| l.contains(text)) {
                let mut kept: Vec<u8> = lines
                    .flat_map(|l| [l.into_bytes(), b"\n".to_vec()].concat())
                    .collect();
                kept.append(&mut self.partial);
                self.partial = kept;
                return Ok(Some(found));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn lines_come_whole_and_once() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let path = dir.path().join("console.log");
        let mut follower = ConsoleFollower::new(&path, 0);
        assert_eq!(follower.lines().expect("no file yet"), Vec::<String>::new());
        let mut file = File::create(&path).expect("create");
        file.write_all(b"one\r\ntw").expect("write");
        assert_eq!(follower.lines().expect("read"), ["one"]);
        file.write_all(b"o\nthree\nfour\n").expect("write");
        assert_eq!(
            follower
                .wait_for("two", Duration::ZERO)
                .expect("read")
                .as_deref(),
            Some("two")
        );
        assert_eq!(
            follower
                .wait_for("four", Duration::ZERO)
                .expect("read")
                .as_deref(),
            Some("four")
        );
        assert_eq!(
            follower.wait_for("three", Duration::ZERO).expect("read"),
            None
        );
        assert_eq!(follower.offset(), 20);
    }

    #[test]
    fn a_new_log_is_read_from_its_start() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let path = dir.path().join("console.log");
        std::fs::write(&path, "a long first log\n").expect("write");
        let mut follower = ConsoleFollower::new(&path, 0);
        follower.read().expect("read");
        std::fs::write(&path, "new\n").expect("write");
        assert_eq!(follower.read().expect("read"), b"new\n");
    }
}
