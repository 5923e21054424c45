//! Debian packages: an `ar` archive whose member `data.tar.*` holds the files (`deb(5)`).

use std::io::{Read, Seek, SeekFrom};
use std::str;

use crate::error::ArchiveError;

/// First bytes of an ar archive.
pub(crate) const AR_MAGIC: &[u8] = b"!<arch>\n";
/// Size of a member's header, in bytes.
const HEADER: usize = 60;
/// Members that are looked at; a package has three, sometimes a signature.
const MEMBERS: usize = 16;

/// Where the data archive lies in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Finds `data.tar.*` in a package of `len` bytes.
pub(crate) fn data(file: &mut (impl Read + Seek), len: u64) -> Result<Data, ArchiveError> {
    let mut at = AR_MAGIC.len() as u64;
    for n in 0..MEMBERS {
        if at + HEADER as u64 > len {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        let (name, size) = member(&header)?;
        let offset = at + HEADER as u64;
        let end = offset.saturating_add(size);
        if end > len {
            return Err(bad(format!(
                "member {name} ends at byte {end}, the file has {len}"
            )));
        }
        if n == 0 && name != "debian-binary" {
            return Err(bad(format!(
                "first member is {name:?}, expected debian-binary"
            )));
        }
        if name == "data.tar" || name.starts_with("data.tar.") {
            return Ok(Data { offset, size });
        }
        // Members start at even offsets.
        at = end.next_multiple_of(2);
    }
    Err(bad(
        "no member data.tar.*, or the file is cut short".to_owned()
    ))
}

fn member(header: &[u8; HEADER]) -> Result<(String, u64), ArchiveError> {
    let text = |range: std::ops::Range<usize>| {
        str::from_utf8(&header[range])
            .map(str::trim_end)
            .unwrap_or_default()
    };
    let name = text(0..16).trim_end_matches('/').to_owned();
    if &header[58..60] != b"`\n" {
        return Err(bad(format!("member {name:?} has no header mark")));
    }
    let size = text(48..58);
    match size.parse() {
        Ok(size) => Ok((name, size)),
        Err(_) => Err(bad(format!("member {name:?} has size {size:?}"))),
    }
}

fn bad(found: String) -> ArchiveError {
    ArchiveError::Deb { found }
}
