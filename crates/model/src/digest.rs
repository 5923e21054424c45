//! Content digests and GNU build-ids.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, text_type};

/// Bytes at a time: BLAKE3 is at its best from 16 KiB on.
const PIECE: usize = 64 * 1024;

/// The BLAKE3 digest of some bytes; objects are named by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of everything that `source` yields, and its size in bytes. Files may be
    /// larger than memory, so it is read in pieces.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn of_reader(source: impl io::Read) -> io::Result<(Self, u64)> {
        let mut source = io::BufReader::with_capacity(PIECE, source);
        let mut digester = Digester::new();
        let size = io::copy(&mut source, &mut digester)?;
        Ok((digester.finish(), size))
    }

    /// Takes 32 raw bytes.
    ///
    /// # Errors
    /// [`InvalidText`] if there are not exactly 32.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidText> {
        <[u8; 32]>::try_from(bytes)
            .map(Self)
            .map_err(|_| InvalidText::new("digest", &hex(bytes), "32 bytes"))
    }

    /// The 32 raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`InvalidText`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        unhex(text)
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
            .map(Self)
            .ok_or_else(|| InvalidText::new("digest", text, "64 hexadecimal digits"))
    }

    /// The first 12 hexadecimal digits, for people.
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }
}

text_type!(Digest);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

/// Computes a [`Digest`] from bytes that arrive in pieces.
#[derive(Debug, Clone, Default)]
pub struct Digester(blake3::Hasher);

impl Digester {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl std::io::Write for Digester {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A GNU build-id: the descriptor of the note of type 3 owned by `GNU`
/// (`/sys/kernel/notes` on a running kernel, `.notes` in a vmlinux).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BuildId(Vec<u8>);

const BUILD_ID_RULE: &str = "8 to 64 bytes in hexadecimal";

impl BuildId {
    /// Takes the raw descriptor. 20 bytes is usual; linkers may be told otherwise.
    ///
    /// # Errors
    /// [`InvalidText`] if it is shorter than 8 or longer than 64 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidText> {
        if (8..=64).contains(&bytes.len()) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(InvalidText::new("build-id", &hex(bytes), BUILD_ID_RULE))
        }
    }

    /// Reads hexadecimal digits.
    ///
    /// # Errors
    /// [`InvalidText`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let bytes = unhex(text).ok_or_else(|| InvalidText::new("build-id", text, BUILD_ID_RULE))?;
        Self::from_bytes(&bytes)
    }

    /// The raw descriptor.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

text_type!(BuildId);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex(&self.0))
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| {
        char::from(c)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_go_through_text_unchanged() {
        let digest = Digest::of(b"klab");
        assert_eq!(Digest::parse(&digest.to_string()), Ok(digest));
        assert_eq!(Digest::from_bytes(digest.as_bytes()), Ok(digest));
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let mut digester = Digester::new();
        digester.update(b"kl");
        digester.update(b"ab");
        assert_eq!(digester.finish(), Digest::of(b"klab"));
    }

    #[test]
    fn a_reader_gives_digest_and_size() {
        let bytes = vec![7; 3 * PIECE + 1];
        let read = Digest::of_reader(bytes.as_slice()).expect("memory can be read");
        assert_eq!(read, (Digest::of(&bytes), bytes.len() as u64));
    }

    #[test]
    fn bad_hex_is_refused() {
        for bad in [
            "",
            "0",
            "zz",
            "+1+1",
            &"0".repeat(63),
            &"0".repeat(66),
            "ää",
        ] {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
        assert!(BuildId::parse("00").is_err());
        assert!(BuildId::parse("0123456789abcdef").is_ok());
    }
}
