//! Lines of a bounded length.

use std::io::{self, BufRead};

use crate::{LogReport, Recogniser};

/// Bytes of a line that are looked at.
const LONGEST: usize = 16 << 10;

/// Reads a whole log.
///
/// # Errors
/// Those of the reader.
pub fn read(mut reader: impl BufRead) -> io::Result<LogReport> {
    let mut recogniser = Recogniser::new();
    let mut line = Vec::new();
    let mut begun = false;
    loop {
        let bytes = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        let room = LONGEST.saturating_sub(line.len());
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        begun = end.is_none();
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            recogniser.line(&line);
            line.clear();
        }
    }
    if begun {
        recogniser.line(&line);
    }
    Ok(recogniser.finish())
}
