//! GRUB's environment block, as `grub-core/lib/envblk.c` reads and writes it.
//!
//! A header line, `NAME=VALUE` lines with `\` before a backslash or line break of the value,
//! other lines starting with `#` are comments, and `#` up to the end. The file keeps its size:
//! GRUB writes into the disk blocks that it found and cannot make the file longer.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use crate::BootError;

const HEADER: &str = "# GRUB Environment Block\n";

/// Largest environment block that is read, in bytes. GRUB's own tools write 1024.
const LARGEST: u64 = 64 << 10;

/// Why an environment block could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrubenvError {
    /// No header.
    #[error("does not start with {:?}: make a new one with `grub-editenv FILE create`", HEADER.trim_end())]
    Header,
    /// Not text.
    #[error("is not UTF-8: make a new one with `grub-editenv FILE create`")]
    Text,
    /// A line that is neither a comment nor a variable.
    #[error(
        "line {line:?} is neither NAME=VALUE nor a comment: make a new block with `grub-editenv FILE create`"
    )]
    Line {
        /// The line.
        line: String,
    },
    /// A name that GRUB would not read back.
    #[error("{name:?} is no name of a variable: expected letters, digits and '_'")]
    Name {
        /// The name.
        name: String,
    },
    /// No room.
    #[error(
        "is full: {needed} bytes are needed, it has {size}; remove variables with `grub-editenv FILE unset NAME`"
    )]
    Full {
        /// Bytes that are needed.
        needed: usize,
        /// Size of the block.
        size: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Comment(String),
    Variable { name: String, value: String },
}

/// An environment block: variables in order, comments, and the size to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grubenv {
    lines: Vec<Line>,
    size: usize,
}

impl Grubenv {
    /// An empty block of 1024 bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            lines: Vec::new(),
            size: 1024,
        }
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`GrubenvError`] when the bytes are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, GrubenvError> {
        let text = std::str::from_utf8(bytes).map_err(|_| GrubenvError::Text)?;
        let mut rest = text.strip_prefix(HEADER).ok_or(GrubenvError::Header)?;
        let mut lines = Vec::new();
        while let Some((line, after)) = next_line(rest) {
            lines.push(parse_line(line)?);
            rest = after;
        }
        // Without a line break only padding may follow.
        if rest.bytes().any(|b| b != b'#') {
            return Err(GrubenvError::Line {
                line: rest.chars().take(80).collect(),
            });
        }
        Ok(Self {
            lines,
            size: bytes.len(),
        })
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Variable { name: n, value } if n == name => Some(value.as_str()),
            _ => None,
        })
    }

    /// Sets a variable; everything else stays as it is.
    ///
    /// # Errors
    /// [`GrubenvError::Name`] or [`GrubenvError::Full`]; then nothing has changed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), GrubenvError> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.is_empty() || !name.bytes().all(legal) {
            return Err(GrubenvError::Name {
                name: name.to_owned(),
            });
        }
        let mut lines = self.lines.clone();
        let found = lines.iter_mut().find_map(|line| match line {
            Line::Variable { name: n, value } if n == name => Some(value),
            _ => None,
        });
        match found {
            Some(old) => value.clone_into(old),
            None => {
                lines.push(Line::Variable {
                    name: name.to_owned(),
                    value: value.to_owned(),
                });
            }
        }
        let needed = text(&lines).len();
        if needed > self.size {
            return Err(GrubenvError::Full {
                needed,
                size: self.size,
            });
        }
        self.lines = lines;
        Ok(())
    }

    /// The block as bytes, of the size it was read with.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = text(&self.lines).into_bytes();
        bytes.resize(self.size, b'#');
        bytes
    }

    /// Reads the block in a file.
    ///
    /// # Errors
    /// [`BootError`] when there is none.
    pub fn read(path: &Path) -> Result<Self, BootError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
            .map_err(BootError::io("read", path))?;
        Self::parse(&bytes).map_err(|source| BootError::Grubenv {
            path: path.to_owned(),
            source,
        })
    }

    /// Writes the block over the file, into the same disk blocks, and syncs it.
    ///
    /// # Errors
    /// [`BootError`] when the file is not there or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), BootError> {
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.write_all(&self.to_bytes())?;
            file.sync_all()
        };
        write().map_err(BootError::io("write", path))
    }
}

/// The next line without its break; a break after a backslash belongs to the line.
fn next_line(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'\n' => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn parse_line(line: &str) -> Result<Line, GrubenvError> {
    if line.starts_with('#') || line.is_empty() {
        return Ok(Line::Comment(line.to_owned()));
    }
    let wrong = || GrubenvError::Line {
        line: line.chars().take(80).collect(),
    };
    let (name, raw) = line.split_once('=').ok_or_else(wrong)?;
    let mut value = String::new();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        value.push(if c == '\\' {
            chars.next().ok_or_else(wrong)?
        } else {
            c
        });
    }
    Ok(Line::Variable {
        name: name.to_owned(),
        value,
    })
}

fn text(lines: &[Line]) -> String {
    let mut text = HEADER.to_owned();
    for line in lines {
        match line {
            Line::Comment(comment) => text += comment,
            Line::Variable { name, value } => {
                text += name;
                text.push('=');
                for c in value.chars() {
                    if matches!(c, '\\' | '\n') {
                        text.push('\\');
                    }
                    text.push(c);
                }
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Written by `grub-editenv` 2.06: `set 'a=b\c' 'saved_entry=x y'`.
    const EDITED: &[u8] = include_bytes!("../tests/data/grubenv-edited.bin");

    #[test]
    fn the_block_of_grubs_own_tool_goes_through_unchanged() {
        let env = Grubenv::parse(EDITED).expect("block");
        assert_eq!(env.get("a"), Some("b\\c"));
        assert_eq!(env.get("saved_entry"), Some("x y"));
        assert_eq!(env.to_bytes(), EDITED);
    }

    #[test]
    fn a_choice_is_added_and_the_rest_is_kept() {
        let mut env = Grubenv::parse(EDITED).expect("block");
        env.set("next_entry", "klab-candidate").expect("room");
        let bytes = env.to_bytes();
        assert_eq!(bytes.len(), EDITED.len());
        let at = EDITED
            .windows(4)
            .position(|w| w == b"####")
            .expect("padding");
        assert_eq!(bytes[..at], EDITED[..at]);
        assert!(bytes[at..].starts_with(b"next_entry=klab-candidate\n####"));
        env.set("next_entry", "").expect("room");
        assert!(env.to_bytes()[at..].starts_with(b"next_entry=\n####"));
    }

    #[test]
    fn what_grub_would_not_read_is_refused() {
        assert_eq!(Grubenv::parse(b""), Err(GrubenvError::Header));
        assert_eq!(Grubenv::parse(b"\xff"), Err(GrubenvError::Text));
        for bad in ["nonsense\n###", "a=1", "a=b\\"] {
            let block = format!("{HEADER}{bad}");
            assert!(
                matches!(
                    Grubenv::parse(block.as_bytes()),
                    Err(GrubenvError::Line { .. })
                ),
                "{bad}"
            );
        }
        let mut env = Grubenv::empty();
        assert!(matches!(env.set("a b", ""), Err(GrubenvError::Name { .. })));
        let before = env.clone();
        assert!(matches!(
            env.set("a", &"x".repeat(1000)),
            Err(GrubenvError::Full { .. })
        ));
        assert_eq!(env, before);
    }

    #[test]
    fn the_file_is_written_in_place() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("grubenv");
        std::fs::write(&path, EDITED).expect("file");
        let inode = std::fs::metadata(&path).expect("file").ino();
        let mut env = Grubenv::read(&path).expect("block");
        env.set("next_entry", "x").expect("room");
        env.write(&path).expect("written");
        assert_eq!(Grubenv::read(&path).expect("block"), env);
        assert_eq!(std::fs::metadata(&path).expect("file").ino(), inode);
        assert!(env.write(&folder.path().join("missing")).is_err());
    }

    proptest! {
        #[test]
        fn any_value_goes_through_unchanged(
            values in proptest::collection::vec(("[a-z_]{1,8}", "[ -~\\n\\\\äß]{0,20}"), 0..12)
        ) {
            let mut env = Grubenv::empty();
            for (name, value) in &values {
                env.set(name, value).expect("room");
            }
            let bytes = env.to_bytes();
            prop_assert_eq!(bytes.len(), 1024);
            prop_assert_eq!(Grubenv::parse(&bytes), Ok(env.clone()));
            if let Some((name, value)) = values.last() {
                prop_assert_eq!(env.get(name), Some(value.as_str()));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut block = HEADER.as_bytes().to_vec();
            block.extend(bytes);
            if let Ok(env) = Grubenv::parse(&block) {
                prop_assert_eq!(env.to_bytes().len(), block.len());
            }
        }
    }
}
