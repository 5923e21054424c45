//! The journal: what the agent has promised and done, on disk before it is acted on.
//!
//! One record per line: eight hexadecimal digits of BLAKE3 over the rest, a blank, the
//! record as JSON. Every append is fsync'd. A torn tail, left by a power cut in the middle
//! of an append, is cut off when the journal is opened; a damaged line before the tail is
//! an error, because then more was lost than the last word.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use klab_boot::{Installed, Running};
use klab_model::{AgentEvent, Digest, Failure, Order, TrialIndex};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::spool::SpoolFile;

/// One fact about the attempt at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// An order was taken; the attempt begins.
    Accepted(Box<Order>),
    /// The kernel package is complete on disk.
    Fetched,
    /// The kernel is installed.
    Installed(Box<Installed>),
    /// The one boot is about to be armed while this kernel runs.
    Armed(Box<Running>),
    /// The candidate was proved to run under this boot id.
    Proved {
        /// That boot id.
        boot_id: String,
    },
    /// A trial is about to start.
    TrialBegan(TrialIndex),
    /// A trial is over, its files are in the spool, its event is in the journal.
    TrialDone(TrialIndex),
    /// A file waits in the spool.
    Spooled(SpoolFile),
    /// The controller has stored the file.
    Uploaded(SpoolFile),
    /// The board is about to return to its known-good kernel.
    Restoring {
        /// The boot id that it leaves.
        boot_id: String,
    },
    /// An event was raised.
    Event(Box<AgentEvent>),
    /// The controller has stored every event up to this one.
    Acked {
        /// Its number.
        seq: u64,
    },
    /// The attempt cannot go on.
    Failed(Failure),
    /// The controller wants the attempt ended.
    CancelAsked,
    /// Nothing is left to do or to tell.
    Closed,
}

/// The journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Reading or writing failed.
    #[error("journal {path}: {source}; check the disk that holds the agent's state")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line before the last one is damaged.
    #[error(
        "journal {path}, line {line}: damaged record; the state folder must be checked by a \
         person (moving the file away forgets the attempt at hand)"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Another agent uses the state folder.
    #[error("journal {path} is in use by another agent: one agent per state folder")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens or makes the journal in `folder` and gives back its records.
    ///
    /// # Errors
    /// [`JournalError`]; nothing is changed unless the tail was torn.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Record>), JournalError> {
        let path = folder.join("journal");
        let io = |source| JournalError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| JournalError::InUse { path: path.clone() })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let (records, good) = replay(&bytes).map_err(|line| JournalError::Damaged {
            path: path.clone(),
            line,
        })?;
        if good < bytes.len() {
            file.set_len(good as u64).map_err(io)?;
            file.sync_all().map_err(io)?;
        }
        file.seek(SeekFrom::Start(good as u64)).map_err(io)?;
        sync_folder(folder).map_err(io)?;
        Ok((Self { path, file }, records))
    }

    /// Appends a record; it is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError::Io`]; the record may or may not be there after a restart.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        let line = encode(record);
        let io = |source| JournalError::Io {
            path: self.path.clone(),
            source,
        };
        self.file.write_all(&line).map_err(io)?;
        self.file.sync_data().map_err(io)
    }

    /// Forgets everything: the attempt is closed and told.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn clear(&mut self) -> Result<(), JournalError> {
        let io = |source| JournalError::Io {
            path: self.path.clone(),
            source,
        };
        self.file.set_len(0).map_err(io)?;
        self.file.seek(SeekFrom::Start(0)).map_err(io)?;
        self.file.sync_all().map_err(io)
    }
}

/// Makes a new name in `folder` survive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn checksum(json: &[u8]) -> String {
    Digest::of(json).to_string()[..8].to_owned()
}

fn encode(record: &Record) -> Vec<u8> {
    // Records are plain data; serialisation has no way to fail.
    let json = serde_json::to_vec(record).expect("a record is serialisable");
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend_from_slice(&json);
    line.push(b'\n');
    line
}

/// The records and the length of the good part, or the number of a damaged line.
fn replay(bytes: &[u8]) -> Result<(Vec<Record>, usize), usize> {
    let mut records = Vec::new();
    let mut good = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_last = good + line.len() == bytes.len();
        match decode(line) {
            Some(record) => {
                records.push(record);
                good += line.len();
            }
            None if is_last => break,
            None => return Err(index + 1),
        }
    }
    Ok((records, good))
}

fn decode(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = line.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    if sum != checksum(json).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records() -> Vec<Record> {
        vec![
            Record::Fetched,
            Record::Proved {
                boot_id: "a".into(),
            },
            Record::TrialBegan(TrialIndex(0)),
            Record::Failed(Failure::kernel("panic\nwith a line end")),
            Record::Acked { seq: 7 },
        ]
    }

    proptest! {
        /// A power cut at any byte loses at most the record that was being written.
        #[test]
        fn a_cut_at_any_byte_keeps_every_whole_record(cut in 0usize..400) {
            let lines: Vec<Vec<u8>> = records().iter().map(encode).collect();
            let bytes = lines.concat();
            let cut = cut.min(bytes.len());
            let whole = lines
                .iter()
                .scan(0, |end, line| { *end += line.len(); Some(*end) })
                .filter(|end| *end <= cut)
                .count();
            let (replayed, good) = replay(&bytes[..cut]).expect("a torn tail is no damage");
            prop_assert_eq!(&replayed, &records()[..whole]);
            prop_assert!(good <= cut);
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = replay(&bytes);
        }
    }

    #[test]
    fn damage_before_the_tail_is_named_by_its_line() {
        let mut bytes: Vec<u8> = records().iter().flat_map(encode).collect();
        bytes[12] ^= 1;
        assert_eq!(replay(&bytes), Err(1));
    }

    #[test]
    fn a_torn_tail_is_cut_off_and_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = Journal::open(folder.path()).expect("new");
        journal.append(&Record::Fetched).expect("append");
        drop(journal);
        let path = folder.path().join("journal");
        let mut file = OpenOptions::new().append(true).open(&path).expect("open");
        file.write_all(b"12345678 {\"half").expect("write");
        drop(file);
        let (mut journal, records) = Journal::open(folder.path()).expect("torn");
        assert_eq!(records, [Record::Fetched]);
        journal.append(&Record::CancelAsked).expect("append");
        drop(journal);
        let (_, records) = Journal::open(folder.path()).expect("again");
        assert_eq!(records, [Record::Fetched, Record::CancelAsked]);
    }

    #[test]
    fn a_state_folder_has_one_agent() {
        let folder = tempfile::tempdir().expect("a folder");
        let _first = Journal::open(folder.path()).expect("new");
        assert!(matches!(
            Journal::open(folder.path()),
            Err(JournalError::InUse { .. })
        ));
    }
}
