//! Debian packages: an `ar` archive whose member `data.tar.*` holds the files and whose
//! member `control.tar.*` says what it needs (`deb(5)`, `deb-control(5)`).

use std::io::{self, Read, Seek, SeekFrom};
use std::str;

use crate::Compression;
use crate::decode::archive_reader;
use crate::error::ArchiveError;

/// First bytes of an ar archive.
pub(crate) const AR_MAGIC: &[u8] = b"!<arch>\n";
/// Size of a member's header, in bytes.
const HEADER: usize = 60;
/// Members that are looked at; a package has three, sometimes a signature.
const MEMBERS: usize = 16;
/// What is read of a control archive and of the control file in it, in bytes.
const CONTROL_BYTES: u64 = 1 << 20;

/// Where a member lies in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The archives in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Members {
    pub(crate) control: Option<Member>,
    pub(crate) data: Member,
}

/// Finds `control.tar.*` and `data.tar.*` in a package of `len` bytes.
pub(crate) fn members(file: &mut (impl Read + Seek), len: u64) -> Result<Members, ArchiveError> {
    let mut control = None;
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
        let found = Member { offset, size };
        if name == "data.tar" || name.starts_with("data.tar.") {
            let data = found;
            return Ok(Members { control, data });
        }
        if name == "control.tar" || name.starts_with("control.tar.") {
            control = Some(found);
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

/// Names of the packages that a package depends on, the first of each set of alternatives.
/// They only help to say what to give instead, so a control archive that cannot be read
/// counts as one without.
pub(crate) fn depends(file: &mut (impl Read + Seek), control: Member) -> Vec<String> {
    control_text(file, control).map_or_else(|_| Vec::new(), |text| depends_in(&text))
}

fn control_text(file: &mut (impl Read + Seek), control: Member) -> io::Result<String> {
    file.seek(SeekFrom::Start(control.offset))?;
    let mut bytes = Vec::new();
    let size = control.size.min(CONTROL_BYTES);
    file.take(size).read_to_end(&mut bytes)?;
    let reader: Box<dyn Read> = match Compression::detect(&bytes) {
        Some(compression) => archive_reader(compression, bytes.as_slice())?,
        None => Box::new(bytes.as_slice()),
    };
    let mut archive = tar::Archive::new(reader.take(CONTROL_BYTES));
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.path_bytes().as_ref() == b"control" || entry.path_bytes().as_ref() == b"./control"
        {
            let mut text = String::new();
            entry.take(CONTROL_BYTES).read_to_string(&mut text)?;
            return Ok(text);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn depends_in(control: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in control.lines() {
        // A line that starts with a space goes on with the field before it.
        let values = if line.starts_with([' ', '\t']) {
            line
        } else {
            let (field, values) = line.split_once(':').unwrap_or((line, ""));
            inside = ["Depends", "Pre-Depends"]
                .iter()
                .any(|name| field.eq_ignore_ascii_case(name));
            values
        };
        if inside {
            let first = |need: &str| {
                let name = need.trim_start();
                let end = name.find(|c: char| c.is_whitespace() || "(|:[<".contains(c));
                name[..end.unwrap_or(name.len())].to_owned()
            };
            let found = values.split(',').map(first);
            names.extend(found.filter(|name| !name.is_empty()));
        }
    }
    names
}

fn bad(found: String) -> ArchiveError {
    ArchiveError::Deb { found }
}

#[cfg(test)]
mod tests {
    use super::depends_in;

    #[test]
    fn names_of_packages_are_read_from_the_fields_of_dependence() {
        let control = "Package: linux-image-amd64\nSource: linux-signed-amd64 (6.1.1+1)\n\
                       Pre-Depends: dpkg (>= 1.17)\n\
                       depends: linux-image-6.1.0-44-amd64 (= 6.1.1-1), a:any|b,\n\
                       \x20c [amd64] | d,\n\
                       Recommends: e\nDescription: words\n Depends: f\n";
        let expected = ["dpkg", "linux-image-6.1.0-44-amd64", "a", "c"];
        assert_eq!(depends_in(control), expected);
        assert!(depends_in("Package: x\n").is_empty());
        assert!(depends_in("Depends").is_empty());
    }
}
