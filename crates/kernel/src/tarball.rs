//! Tar archives: unpacked into one temporary file, then listed with offsets.
//!
//! The canonical package is sorted and a foreign archive is not, so its files are needed in
//! another order. One temporary file without a name costs no cleaning up and no memory, and
//! nothing from the archive is ever used as a path on this machine.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::sync::Arc;

use tar::{Archive, Entry, EntryType, PaxExtensions};

use crate::canonical::plain;
use crate::error::{ArchiveError, KernelError};
use crate::item::{Item, Place};
use crate::limits::Limits;

/// Size of a tar block, in bytes.
const BLOCK: u64 = 512;
/// Longest path or extended header that is read, in bytes.
const LONG_NAME: u64 = 64 << 10;

/// Why unpacking failed: the archive, or this machine.
pub(crate) enum SpoolError {
    Archive(ArchiveError),
    Machine(io::Error),
}

impl SpoolError {
    pub(crate) fn of(self, path: &std::path::Path) -> KernelError {
        match self {
            Self::Archive(source) => KernelError::Archive {
                path: path.to_owned(),
                source,
            },
            Self::Machine(source) => KernelError::Spool(source),
        }
    }
}

impl From<ArchiveError> for SpoolError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

/// Lists the files of an uncompressed tar archive that comes from `reader`.
pub(crate) fn items(reader: impl Read, limits: &Limits) -> Result<Vec<Item>, SpoolError> {
    let (file, len) = spool(reader, limits)?;
    Ok(Index::new(Arc::new(file), len, *limits).build()?)
}

fn spool(mut reader: impl Read, limits: &Limits) -> Result<(File, u64), SpoolError> {
    let mut file = tempfile::tempfile().map_err(SpoolError::Machine)?;
    let mut buffer = vec![0; 128 << 10];
    let mut len = 0u64;
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(ArchiveError::Read(e).into()),
        };
        len += n as u64;
        if len > limits.bytes {
            return Err(too_big(limits).into());
        }
        file.write_all(&buffer[..n]).map_err(SpoolError::Machine)?;
    }
    file.rewind().map_err(SpoolError::Machine)?;
    Ok((file, len))
}

fn too_big(limits: &Limits) -> ArchiveError {
    ArchiveError::TooBig {
        bytes: limits.bytes,
        entries: limits.entries,
    }
}

struct Index {
    file: Arc<File>,
    len: u64,
    limits: Limits,
    items: Vec<Item>,
    /// Position in `items`, for hard links and for entries that replace earlier ones.
    by_path: HashMap<String, usize>,
    entries: usize,
    /// Path from a GNU or pax header, for the entry that follows.
    long_name: Option<Vec<u8>>,
    /// The same for the target of a hard link.
    long_link: Option<Vec<u8>>,
}

impl Index {
    fn new(file: Arc<File>, len: u64, limits: Limits) -> Self {
        Self {
            file,
            len,
            limits,
            items: Vec::new(),
            by_path: HashMap::new(),
            entries: 0,
            long_name: None,
            long_link: None,
        }
    }

    fn build(mut self) -> Result<Vec<Item>, ArchiveError> {
        let file = Arc::clone(&self.file);
        let mut archive = Archive::new(BufReader::new(&*file));
        let mut end = 0;
        for entry in archive.entries_with_seek()?.raw(true) {
            let mut entry = entry?;
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(too_big(&self.limits));
            }
            let start = entry.raw_file_position();
            end = start.saturating_add(entry.size());
            if end > self.len {
                return Err(ArchiveError::CutShort {
                    entries: self.entries,
                    at: self.len,
                });
            }
            self.take(&mut entry, start)?;
        }
        // A whole archive ends in two blocks of zeros; one is enough to know.
        if end.next_multiple_of(BLOCK) + BLOCK > self.len {
            return Err(ArchiveError::CutShort {
                entries: self.entries,
                at: self.len,
            });
        }
        Ok(self.items)
    }

    fn take<R: Read>(&mut self, entry: &mut Entry<'_, R>, start: u64) -> Result<(), ArchiveError> {
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                self.long_name = Some(long(entry)?);
                Ok(())
            }
            EntryType::GNULongLink => {
                self.long_link = Some(long(entry)?);
                Ok(())
            }
            EntryType::XHeader => {
                let header = bounded(entry)?;
                self.extended(&header)
            }
            // Defaults for the whole archive: times and owners, which do not matter here.
            EntryType::XGlobalHeader => Ok(()),
            EntryType::Regular | EntryType::Continuous => {
                let place = Place::Span {
                    file: Arc::clone(&self.file),
                    offset: start,
                };
                let path = self.path(entry)?;
                self.add(path, entry.size(), place);
                Ok(())
            }
            EntryType::Link => self.hard_link(entry),
            EntryType::Directory | EntryType::Symlink => {
                self.path(entry)?;
                self.long_link = None;
                Ok(())
            }
            _ => Err(ArchiveError::Entry {
                path: self.path(entry)?,
                found: "neither a file, a folder nor a link; a kernel package has no devices, \
                        pipes or sparse files",
            }),
        }
    }

    fn extended(&mut self, header: &[u8]) -> Result<(), ArchiveError> {
        for record in PaxExtensions::new(header) {
            let record = record?;
            match record.key_bytes() {
                b"path" => self.long_name = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.long_link = Some(record.value_bytes().to_vec()),
                b"size" | b"GNU.sparse.major" => {
                    let path = String::from_utf8_lossy(record.key_bytes()).into_owned();
                    let found = "extended header for huge or sparse files, which are not read";
                    return Err(ArchiveError::Entry { path, found });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn hard_link<R: Read>(&mut self, entry: &Entry<'_, R>) -> Result<(), ArchiveError> {
        let path = self.path(entry)?;
        let target = match self.long_link.take() {
            Some(target) => clean(&target)?,
            None => clean(&entry.link_name_bytes().unwrap_or_default())?,
        };
        match self
            .by_path
            .get(&target)
            .and_then(|&n| self.items.get(n))
            .cloned()
        {
            Some(item) => self.add(path, item.size, item.place),
            None => {
                let found = "hard link to a file that is not in the archive before it";
                return Err(ArchiveError::Entry { path, found });
            }
        }
        Ok(())
    }

    fn path<R: Read>(&mut self, entry: &Entry<'_, R>) -> Result<String, ArchiveError> {
        match self.long_name.take() {
            Some(name) => clean(&name),
            None => clean(&entry.path_bytes()),
        }
    }

    /// Later entries replace earlier ones of the same path, as tar itself does.
    fn add(&mut self, path: String, size: u64, place: Place) {
        let item = Item {
            path: path.clone(),
            size,
            place,
        };
        match self.by_path.get(&path) {
            Some(&n) => self.items[n] = item,
            None => {
                self.by_path.insert(path, self.items.len());
                self.items.push(item);
            }
        }
    }
}

/// The content of a GNU long-name entry, without its closing NUL.
fn long<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, ArchiveError> {
    let mut name = bounded(entry)?;
    while name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn bounded<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, ArchiveError> {
    if entry.size() > LONG_NAME {
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        return Err(ArchiveError::Entry {
            path,
            found: "path of more than 64 KiB",
        });
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path without `./` at its start and `/` at its end. Empty for the top folder.
fn clean(bytes: &[u8]) -> Result<String, ArchiveError> {
    let unsafe_path = || ArchiveError::UnsafePath {
        path: String::from_utf8_lossy(bytes).chars().take(200).collect(),
    };
    let mut path = std::str::from_utf8(bytes).map_err(|_| unsafe_path())?;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    let path = path.trim_end_matches('/');
    if path == "." || (path.is_empty() && bytes.first() != Some(&b'/')) {
        return Ok(String::new());
    }
    if plain(path) {
        Ok(path.to_owned())
    } else {
        Err(unsafe_path())
    }
}
