//! The lines before a file's hunks.

use super::names::{both, git_path, quilt_path, unquote};
use super::{At, BlobId, ChangeKind, FileChange, Mode, PatchProblem};
use crate::display::defuse;
use crate::path::PatchPath;

/// What the header of one file says, as far as it was read.
#[derive(Default)]
pub(super) struct FileHeader {
    line: String,
    old: Option<PatchPath>,
    new: Option<PatchPath>,
    kind: Option<ChangeKind>,
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    blobs: Option<(BlobId, BlobId)>,
}

/// Reads from `diff --git` to the first line that is no header.
pub(super) fn git_header(lines: &[&str], at: &mut usize) -> Result<FileHeader, At> {
    let fail = |line: usize| move |problem| At { line, problem };
    let first = lines[*at];
    let mut header = FileHeader {
        line: first.to_owned(),
        ..FileHeader::default()
    };
    if let Some((old, new)) = both(first.strip_prefix("diff --git ").unwrap_or(first)) {
        header.old = Some(git_path(&old).map_err(fail(*at))?);
        header.new = Some(git_path(&new).map_err(fail(*at))?);
    }
    *at += 1;
    while let Some(line) = lines.get(*at) {
        if !header
            .take(line.trim_end_matches('\r'))
            .map_err(fail(*at))?
        {
            break;
        }
        *at += 1;
    }
    Ok(header)
}

/// Reads `---` and `+++` of a diff that git did not write.
pub(super) fn quilt_header(lines: &[&str], at: &mut usize) -> Result<FileHeader, At> {
    let fail = |line: usize| move |problem| At { line, problem };
    let mut header = FileHeader {
        line: lines[*at].to_owned(),
        ..FileHeader::default()
    };
    let old = &lines[*at]["--- ".len()..];
    let new = &lines[*at + 1]["+++ ".len()..];
    let name = |text: &str| unquote(text).map(|(name, _)| name).unwrap_or_default();
    let (old, new) = (name(old), name(new));
    if new != "/dev/null" {
        header.new = Some(quilt_path(&new).map_err(fail(*at + 1))?);
        header.old = header.new.clone();
    }
    if old == "/dev/null" {
        header.kind = Some(ChangeKind::Added);
    } else {
        let path = quilt_path(&old).map_err(fail(*at))?;
        if new == "/dev/null" {
            header.kind = Some(ChangeKind::Deleted);
            header.old = Some(path.clone());
            header.new = Some(path);
        }
    }
    *at += 2;
    Ok(header)
}

impl FileHeader {
    /// Reads one line; false if it is no header line.
    fn take(&mut self, line: &str) -> Result<bool, PatchProblem> {
        if let Some(name) = line.strip_prefix("--- ") {
            self.side(name, "---", ChangeKind::Added)?;
        } else if let Some(name) = line.strip_prefix("+++ ") {
            self.side(name, "+++", ChangeKind::Deleted)?;
        } else if let Some(mode) = line.strip_prefix("old mode ") {
            self.old_mode = Some(Mode::parse(mode)?);
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            self.new_mode = Some(Mode::parse(mode)?);
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            self.new_mode = Some(Mode::parse(mode)?);
            self.kind = Some(ChangeKind::Added);
        } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
            self.old_mode = Some(Mode::parse(mode)?);
            self.kind = Some(ChangeKind::Deleted);
        } else if let Some(name) = line.strip_prefix("rename from ") {
            self.kind = Some(ChangeKind::Renamed);
            self.old = Some(plain(name)?);
        } else if let Some(name) = line.strip_prefix("copy from ") {
            self.kind = Some(ChangeKind::Copied);
            self.old = Some(plain(name)?);
        } else if let Some(name) = line
            .strip_prefix("rename to ")
            .or_else(|| line.strip_prefix("copy to "))
        {
            self.new = Some(plain(name)?);
        } else if let Some(ids) = line.strip_prefix("index ") {
            self.index(ids)?;
        } else {
            return Ok(
                line.starts_with("similarity index ") || line.starts_with("dissimilarity index ")
            );
        }
        Ok(true)
    }

    /// `--- a/x` or `+++ b/x`: must say again what was said.
    fn side(
        &mut self,
        text: &str,
        what: &'static str,
        none: ChangeKind,
    ) -> Result<(), PatchProblem> {
        let name = unquote(text).map(|(name, _)| name);
        let name = name.ok_or_else(|| self.unread())?;
        if name == "/dev/null" {
            self.kind = Some(self.kind.unwrap_or(none));
            return Ok(());
        }
        let path = git_path(&name)?;
        let known = if what == "---" {
            &mut self.old
        } else {
            &mut self.new
        };
        match known {
            Some(known) if *known != path => Err(PatchProblem::Contradiction {
                what,
                found: path.to_string(),
                expected: known.to_string(),
            }),
            known => {
                *known = Some(path);
                Ok(())
            }
        }
    }

    /// `1234567..89abcde 100644`.
    fn index(&mut self, text: &str) -> Result<(), PatchProblem> {
        let (ids, mode) = text.split_once(' ').unwrap_or((text, ""));
        if !mode.is_empty() {
            let mode = Mode::parse(mode)?;
            self.old_mode = Some(mode);
            self.new_mode = Some(mode);
        }
        if let Some((old, new)) = ids.split_once("..") {
            self.blobs = BlobId::parse(old).zip(BlobId::parse(new));
        }
        Ok(())
    }

    fn unread(&self) -> PatchProblem {
        PatchProblem::Names {
            found: defuse(&self.line),
        }
    }

    /// The file, without what its hunks say.
    pub(super) fn finish(self) -> Result<FileChange, PatchProblem> {
        let unread = self.unread();
        let (Some(old), Some(new)) = (self.old.clone().or(self.new.clone()), self.new.or(self.old))
        else {
            return Err(unread);
        };
        let kind = self.kind.unwrap_or(ChangeKind::Modified);
        let moved = matches!(kind, ChangeKind::Renamed | ChangeKind::Copied);
        if !moved && old != new {
            return Err(PatchProblem::Contradiction {
                what: "the second path",
                found: new.to_string(),
                expected: old.to_string(),
            });
        }
        let (old_blob, new_blob) = self.blobs.unzip();
        Ok(FileChange {
            path: new,
            old_path: moved.then_some(old),
            kind,
            old_mode: self.old_mode,
            new_mode: self.new_mode,
            old_blob: old_blob.filter(|blob| !blob.is_zero()),
            new_blob: new_blob.filter(|blob| !blob.is_zero()),
            insertions: 0,
            deletions: 0,
            binary: false,
            link_target: None,
        })
    }
}

/// A path without prefix, as in `rename from`.
fn plain(text: &str) -> Result<PatchPath, PatchProblem> {
    let (name, _) = unquote(text).ok_or_else(|| PatchProblem::Names {
        found: defuse(text),
    })?;
    Ok(PatchPath::parse(&name)?)
}
