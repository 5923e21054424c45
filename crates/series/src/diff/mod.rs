//! Diffs as git writes them: which files change, and whether the text is whole.
//!
//! [`parse`] reads what `git diff`, `git format-patch` and quilt write (git-diff(1),
//! "Generating patch text with -p"). Counts in hunk headers are verified, binary patches
//! are checked for their form. The content of hunks is not kept: `git am` reads the mail.

mod binary;
mod header;
mod hunk;
mod names;
mod problem;

use std::fmt;
use std::ops::Range;

use serde::Serialize;

pub use problem::PatchProblem;

use crate::path::PatchPath;
use header::{FileHeader, git_header, quilt_header};

/// The mode of a file in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// 100644.
    Regular,
    /// 100755.
    Executable,
    /// 120000.
    Symlink,
    /// 160000.
    Submodule,
}

impl Mode {
    fn parse(text: &str) -> Result<Self, PatchProblem> {
        match text.trim_end() {
            "100644" | "100664" => Ok(Self::Regular),
            "100755" => Ok(Self::Executable),
            "120000" => Ok(Self::Symlink),
            "160000" => Ok(Self::Submodule),
            other => Err(PatchProblem::Mode {
                found: crate::display::defuse(other),
            }),
        }
    }
}

impl Mode {
    /// Whether it is the mode of most files, 100644.
    pub fn is_regular(self) -> bool {
        self == Self::Regular
    }
}

/// As git writes it, in octal.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        })
    }
}

/// A blob's id in hex, often shortened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BlobId(String);

impl BlobId {
    fn parse(text: &str) -> Option<Self> {
        let hex = (4..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for no file.
    fn is_zero(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Content or mode changes.
    Modified,
    /// Made.
    Added,
    /// Removed.
    Deleted,
    /// Gets another path, maybe with changes.
    Renamed,
    /// A changed copy is made.
    Copied,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path after the patch; of a deleted file, the path before.
    pub path: PatchPath,
    /// Path before, of a file that was renamed or copied.
    pub old_path: Option<PatchPath>,
    /// What happens.
    pub kind: ChangeKind,
    /// Mode before, if told.
    pub old_mode: Option<Mode>,
    /// Mode after, if told.
    pub new_mode: Option<Mode>,
    /// Blob before; none for an added file or without an index line.
    pub old_blob: Option<BlobId>,
    /// Blob after; none for a deleted file or without an index line.
    pub new_blob: Option<BlobId>,
    /// Lines added.
    pub insertions: u32,
    /// Lines removed.
    pub deletions: u32,
    /// The change is a binary patch.
    pub binary: bool,
    /// Where the symbolic link leads that the patch makes or changes.
    pub link_target: Option<String>,
}

/// A mail's text, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Diff {
    /// Line in which the diff begins, counted from 0.
    pub(crate) line: usize,
    /// The bytes of the text from the first line of the diff to its last one.
    pub(crate) span: Range<usize>,
    /// The files, in order.
    pub(crate) files: Vec<FileChange>,
    /// Lines of text right after a hunk that are no part of a diff.
    pub(crate) trailing: Vec<String>,
}

/// A problem and its line, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) line: usize,
    pub(crate) problem: PatchProblem,
}

/// Where the diff of a text begins, if there is one: the byte.
pub(crate) fn find_start(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let quilt = || starts_quilt(&text[at..].split('\n').take(3).collect::<Vec<_>>());
        if starts_git(line) || (line.starts_with("--- ") && quilt()) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn starts_git(line: &str) -> bool {
    line.starts_with("diff --git ")
}

/// `--- a/x`, `+++ b/x`, `@@ ...` in three lines.
fn starts_quilt(lines: &[&str]) -> bool {
    matches!(lines, [old, new, hunk, ..]
        if old.starts_with("--- ") && new.starts_with("+++ ") && hunk.starts_with("@@ -"))
}

/// Reads the diff in a text.
///
/// # Errors
/// [`At`] with the line. A text without a diff has no files; that is no error here.
pub(crate) fn parse(text: &str) -> Result<Diff, At> {
    let Some(start) = find_start(text) else {
        return Ok(Diff::default());
    };
    let (before, text) = text.split_at(start);
    let begins = before.bytes().filter(|byte| *byte == b'\n').count();
    // CR stays, it may be part of a file.
    let lines: Vec<&str> = text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect();
    let mut diff = Diff {
        line: begins,
        ..Diff::default()
    };
    let end = read_files(&lines, &mut diff).map_err(|at| At {
        line: begins + at.line,
        ..at
    })?;
    let length: usize = lines[..end].iter().map(|line| line.len() + 1).sum();
    // The last line may have no LF.
    diff.span = start..start + length.min(text.len());
    Ok(diff)
}

/// Reads all files; gives the line after the last one.
fn read_files(lines: &[&str], diff: &mut Diff) -> Result<usize, At> {
    let (mut at, mut end) = (0, 0);
    while at < lines.len() {
        let line = lines[at];
        let header = if starts_git(line) {
            git_header(lines, &mut at)?
        } else if starts_quilt(&lines[at..]) {
            quilt_header(lines, &mut at)?
        } else if line.starts_with("@@ -") {
            let problem = PatchProblem::StrayHunk;
            return Err(At { line: at, problem });
        } else {
            at += 1;
            continue;
        };
        let file = body(header, lines, &mut at, diff)?;
        diff.files.push(file);
        end = at;
    }
    Ok(end)
}

/// What follows a file's header: hunks, a binary patch, or nothing.
fn body(
    header: FileHeader,
    lines: &[&str],
    at: &mut usize,
    diff: &mut Diff,
) -> Result<FileChange, At> {
    let begins = *at;
    let fail = |line: usize, problem: PatchProblem| At { line, problem };
    let mut file = header
        .finish()
        .map_err(|problem| fail(begins.saturating_sub(1), problem))?;
    let mut link = String::new();
    if lines
        .get(*at)
        .is_some_and(|line| *line == "GIT binary patch")
    {
        binary::skip(lines, at)?;
        file.binary = true;
    } else if lines
        .get(*at)
        .is_some_and(|line| line.starts_with("Binary files "))
    {
        let path = file.path.to_string();
        return Err(fail(*at, PatchProblem::BinaryLeftOut { path }));
    } else {
        let mut last = None;
        while let Some(hunk) = lines.get(*at).filter(|line| line.starts_with("@@ -")) {
            let counts = hunk::read(lines, at, file.path.as_str(), &mut link)?;
            file.insertions = file.insertions.saturating_add(counts.insertions);
            file.deletions = file.deletions.saturating_add(counts.deletions);
            last = Some(*hunk);
        }
        if let Some(last) = last {
            hunk::check_after(lines, *at, file.path.as_str(), last, &mut diff.trailing)?;
        }
    }
    if file.new_mode == Some(Mode::Symlink) && file.kind != ChangeKind::Deleted && !link.is_empty()
    {
        file.link_target = Some(link);
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
