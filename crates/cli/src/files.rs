//! Files that users name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The first bytes of what gzip wrote (RFC 1952, section 2.3.1).
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The whole file, if it has at most `limit` bytes; no more than that is ever read.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let problem = format!("it has more than {limit} bytes, which is the most that is read");
        return Err(io::Error::other(problem));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("f");
        std::fs::write(&file, "1234").expect("a file");
        assert_eq!(read(&file, 4).expect("small enough"), b"1234");
        assert!(read(&file, 3).is_err());
        let error = read("/dev/zero".as_ref(), 1000).expect_err("it has no end");
        assert!(
            error.to_string().contains("more than 1000 bytes"),
            "{error}"
        );
    }
}
