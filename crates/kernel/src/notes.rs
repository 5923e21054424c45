//! ELF notes, as `/sys/kernel/notes` and the `.notes` section hold them.
//!
//! A note is three little-endian words (name size, content size, type), then the name and
//! the content, each padded to four bytes (System V gABI, "Note Section").

use klab_model::BuildId;

/// Note type of a GNU build-id: `NT_GNU_BUILD_ID` in `elf.h`.
const GNU_BUILD_ID: u32 = 3;
const WORD: usize = 4;
const HEAD: usize = 3 * WORD;

/// Why no build-id came out of notes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotesError {
    /// The bytes end inside a note or are no notes at all.
    #[error(
        "note at byte {at} does not fit into {len} bytes: expected ELF notes, the whole of \
         /sys/kernel/notes or of a .notes section"
    )]
    Truncated {
        /// Offset of the note that does not fit.
        at: usize,
        /// Length of the input.
        len: usize,
    },
    /// No note is a build-id.
    #[error(
        "no GNU build-id among {notes} notes: link the kernel with --build-id=sha1 (its default)"
    )]
    Missing {
        /// Notes that were seen.
        notes: usize,
    },
    /// Two notes disagree.
    #[error("two different GNU build-ids ({first} and {second}) in one set of notes")]
    Ambiguous {
        /// The first build-id.
        first: BuildId,
        /// The one that differs.
        second: BuildId,
    },
    /// A build-id of a size that no linker writes.
    #[error("GNU build-id of {len} bytes: expected 8 to 64, 20 for sha1")]
    Size {
        /// Size of the note's content.
        len: usize,
    },
}

/// One note, borrowed from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    /// Owner, without the closing NUL.
    pub name: &'a [u8],
    /// Type; its meaning belongs to the owner.
    pub kind: u32,
    /// Content, without padding.
    pub desc: &'a [u8],
}

impl<'a> Note<'a> {
    /// Reads the note at the start of `bytes`; the number is where the next one begins.
    ///
    /// `None` when the note does not fit. The last note may lack its padding.
    #[must_use]
    pub fn first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let name_len = word(bytes, 0)?;
        let desc_len = word(bytes, WORD)?;
        let kind = u32::try_from(word(bytes, 2 * WORD)?).ok()?;
        let name = bytes.get(HEAD..HEAD.checked_add(name_len)?)?;
        let desc_at = HEAD.checked_add(name_len.checked_next_multiple_of(WORD)?)?;
        let desc_end = desc_at.checked_add(desc_len)?;
        let desc = bytes.get(desc_at..desc_end)?;
        let next = desc_end.checked_next_multiple_of(WORD)?.min(bytes.len());
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        Some((Self { name, kind, desc }, next))
    }

    /// Whether this note carries a GNU build-id.
    #[must_use]
    pub fn is_build_id(&self) -> bool {
        self.name == b"GNU" && self.kind == GNU_BUILD_ID
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; WORD] = bytes.get(at..at + WORD)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

/// Reads the GNU build-id from the bytes of `/sys/kernel/notes` or of a `.notes` section.
///
/// # Errors
/// [`NotesError`] when the bytes are no notes, hold no build-id, or hold two that differ.
pub fn build_id(bytes: &[u8]) -> Result<BuildId, NotesError> {
    let mut found: Option<BuildId> = None;
    let mut at = 0;
    let mut notes = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.iter().any(|&b| b != 0)) {
        let truncated = || NotesError::Truncated {
            at,
            len: bytes.len(),
        };
        let (note, next) = Note::first(rest).ok_or_else(truncated)?;
        at += next;
        notes += 1;
        if !note.is_build_id() {
            continue;
        }
        let id = BuildId::from_bytes(note.desc).map_err(|_| NotesError::Size {
            len: note.desc.len(),
        })?;
        match &found {
            Some(first) if *first != id => {
                return Err(NotesError::Ambiguous {
                    first: first.clone(),
                    second: id,
                });
            }
            _ => found = Some(id),
        }
    }
    found.ok_or(NotesError::Missing { notes })
}
