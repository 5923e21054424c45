//! Small files of the kernel: one value each.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The trimmed text; `None` if it cannot be read. A NUL at the end, as device trees have it,
/// goes too.
pub(crate) fn read(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(
        text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .to_owned(),
    )
}

/// Writes a value into a file that is there; kernel files are never created.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    // Truncating empties an ordinary file that stands in, and clears `trace` in tracefs.
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?
        .write_all(value.as_bytes())
}

/// The entries of a folder, sorted as people count: `cpu2` before `cpu10`.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort_by_key(|path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        (
            name.len() - digits.len(),
            digits.parse::<u64>().unwrap_or(u64::MAX),
            name,
        )
    });
    entries
}

/// The last component of a path as text.
pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
