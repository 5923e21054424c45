//! From a base commit and patches to the commits of every prefix of the series.
//!
//! Patches are applied in a work tree that holds no files but those they touch, so that a
//! kernel tree costs nothing here and the work tree of builds does not move.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::lock::Lock;
use crate::refusal::{Refusal, RefusalKind};
use crate::{BuildError, Cancel, Commit, ObjectId, Stage, Tree, Watcher, files};

/// Largest mail that is taken for a patch, in bytes. The largest on the kernel's lists have a
/// few megabytes.
const LARGEST_MAIL: usize = 32 << 20;

/// What git says when it takes a file for changed that it has just written itself.
const STALE: &str = "would be overwritten by merge";

/// A patch as it came: one mail, byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPatch<'a> {
    /// The mail: headers, text, diff. A leading `From ` line of an mbox may be there.
    pub mail: &'a [u8],
    /// Whether carriage returns at the ends of lines belong to the patch.
    pub keep_cr: bool,
}

/// What came of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What it was applied to.
    pub base: Commit,
    /// The commits of the patches that applied, first patch first.
    pub commits: Vec<Commit>,
    /// Why the next patch did not apply, if there is one.
    pub refused: Option<Refusal>,
}

impl Applied {
    /// The commit after the first `patches` patches; the base for 0.
    ///
    /// # Errors
    /// [`BuildError::Refused`] if one of these patches did not apply,
    /// [`BuildError::TooFewPatches`] if there are fewer.
    pub fn prefix(&self, patches: usize) -> Result<&Commit, BuildError> {
        if patches == 0 {
            return Ok(&self.base);
        }
        match (self.commits.get(patches - 1), &self.refused) {
            (Some(commit), _) => Ok(commit),
            (None, Some(refusal)) => Err(BuildError::Refused(Box::new(refusal.clone()))),
            (None, None) => Err(BuildError::TooFewPatches {
                wanted: patches,
                found: self.commits.len(),
            }),
        }
    }
}

impl Tree {
    /// Applies patches in their order to `base`, as `git am --3way` does, and stops at the
    /// first that does not apply. The same base and patches give the same commits.
    ///
    /// # Errors
    /// Those of git and files; a patch that does not apply is part of the result.
    pub fn apply(
        &self,
        base: &Commit,
        patches: &[RawPatch<'_>],
        watcher: &mut Watcher<'_>,
    ) -> Result<Applied, BuildError> {
        watcher.stage(Stage::Applying)?;
        files::make_folder(self.work())?;
        let lock = self.work().join("apply.lock");
        let what = format!("patches being applied to tree {}", self.name());
        let _lock = Lock::take(&lock, &what, watcher)?;
        let room = Room::prepare(self, base, watcher.cancel())?;
        let mut applied = Applied {
            base: base.clone(),
            commits: Vec::new(),
            refused: None,
        };
        for (n, patch) in patches.iter().enumerate() {
            watcher.check()?;
            match room.apply(n + 1, patch)? {
                Ok(commit) => applied.commits.push(commit),
                Err(refusal) => {
                    applied.refused = Some(refusal);
                    break;
                }
            }
        }
        // Nothing of a patch stays behind, least of all of one that did not apply.
        room.empty()?;
        Ok(applied)
    }
}

/// The work tree for patches.
struct Room<'a> {
    tree: &'a Tree,
    folder: PathBuf,
    /// Where git keeps what belongs to this work tree.
    git_dir: PathBuf,
    cancel: &'a Cancel,
}

impl<'a> Room<'a> {
    fn prepare(tree: &'a Tree, base: &Commit, cancel: &'a Cancel) -> Result<Self, BuildError> {
        let folder = tree.work().join("apply");
        tree.work_tree(&folder, &base.id, cancel)?;
        let git_dir = tree
            .git()
            .ok(&folder, &["rev-parse", "--absolute-git-dir"], cancel)?;
        let room = Self {
            tree,
            folder,
            git_dir: git_dir.into(),
            cancel,
        };
        room.empty()?;
        files::remove(&room.git_dir.join("index.lock"))?;
        let id = base.id.as_str();
        room.git(&["update-ref", "--no-deref", "HEAD", id])?;
        room.git(&["read-tree", "--reset", id])?;
        Ok(room)
    }

    fn git(&self, args: &[&str]) -> Result<String, BuildError> {
        self.tree.git().ok(&self.folder, args, self.cancel)
    }

    fn git_state(&self) -> PathBuf {
        self.git_dir.join("rebase-apply")
    }

    /// Removes every file of the work tree and what an unfinished `git am` left.
    fn empty(&self) -> Result<(), BuildError> {
        let read = BuildError::io("read the folder", &self.folder);
        let entries = std::fs::read_dir(&self.folder).map_err(read)?;
        for entry in entries {
            let path = entry
                .map_err(BuildError::io("read the folder", &self.folder))?
                .path();
            if path.file_name() != Some(OsStr::new(".git")) {
                files::remove(&path)?;
            }
        }
        files::remove(&self.git_state())
    }

    /// Applies the patch with that number, counted from 1.
    fn apply(
        &self,
        number: usize,
        patch: &RawPatch<'_>,
    ) -> Result<Result<Commit, Refusal>, BuildError> {
        if patch.mail.len() > LARGEST_MAIL {
            let message = format!(
                "{} bytes, and at most {LARGEST_MAIL} are read",
                patch.mail.len()
            );
            return Ok(Err(Refusal::of_size(number, message)));
        }
        let mail = self.git_dir.join("klab-mail");
        std::fs::write(&mail, prepared(patch.mail)).map_err(BuildError::io("write", &mail))?;
        let before = self.head()?;
        let mut said = self.am(&mail, patch.keep_cr)?;
        if said.as_ref().is_some_and(|said| said.contains(STALE)) {
            // Trying the patch has written the files that it is about. Git merges into files
            // that it knows to be unchanged only, so it is made to look at them.
            files::remove(&self.git_state())?;
            let refresh = ["update-index", "-q", "--refresh"].map(OsStr::new);
            self.tree
                .git()
                .attempt(&self.folder, &refresh, self.cancel)?;
            said = self.am(&mail, patch.keep_cr)?;
        }
        let now = self.head()?;
        // `git am` is content with a patch whose changes are there, and with an empty mail.
        let said = match said {
            None if now.id != before.id => return Ok(Ok(now)),
            None if patch.mail.is_empty() => "Patch is empty".to_owned(),
            None => "No changes -- Patch already applied".to_owned(),
            Some(said) => said,
        };
        let subject = self.subject(patch.mail);
        let why = self.why_not(&said)?;
        files::remove(&self.git_state())?;
        Ok(Err(Refusal::read(number, subject, &said, &why)))
    }

    /// Runs `git am`; what it said if it failed.
    fn am(&self, mail: &Path, keep_cr: bool) -> Result<Option<String>, BuildError> {
        let args = [
            "am",
            "--3way",
            if keep_cr { "--keep-cr" } else { "--no-keep-cr" },
            "--no-gpg-sign",
            "--no-scissors",
            // Not the time of applying, so that the commit is the same next time.
            "--committer-date-is-author-date",
            "--patch-format=mbox",
        ];
        let mut args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        args.push(mail.as_os_str());
        let output = self.tree.git().attempt(&self.folder, &args, self.cancel)?;
        Ok((!output.success).then(|| format!("{}\n{}", output.out, output.err)))
    }

    /// What plain `git apply` says about the patch at hand. With `--3way` git does not name
    /// the hunk that does not fit.
    fn why_not(&self, said: &str) -> Result<String, BuildError> {
        let patch = self.git_state().join("patch");
        if !patch.is_file() || RefusalKind::of(said) != RefusalKind::Conflict {
            return Ok(String::new());
        }
        self.git(&["read-tree", "--reset", "HEAD"])?;
        let args = ["apply", "--check", "--cached", "--"].map(OsStr::new);
        let mut args = args.to_vec();
        args.push(patch.as_os_str());
        let output = self.tree.git().attempt(&self.folder, &args, self.cancel)?;
        Ok(output.err)
    }

    fn head(&self) -> Result<Commit, BuildError> {
        Ok(Commit {
            id: ObjectId::parse(&self.git(&["rev-parse", "HEAD^{commit}"])?)?,
            tree: ObjectId::parse(&self.git(&["rev-parse", "HEAD^{tree}"])?)?,
        })
    }

    /// The subject as `git am` understood it, or as the mail has it.
    fn subject(&self, mail: &[u8]) -> String {
        let message = std::fs::read(self.git_state().join("final-commit")).unwrap_or_default();
        let message = String::from_utf8_lossy(&message);
        let subject = message.lines().next().unwrap_or_default().trim();
        let subject = if subject.is_empty() {
            header(mail, "subject").unwrap_or_default()
        } else {
            subject.to_owned()
        };
        subject.chars().take(200).collect()
    }
}

/// A mail as git shall see it: without the line that an mbox puts before it, so that no line of
/// its text can be taken for the next mail, and with a date, so that its commit does not take
/// the time of applying.
fn prepared(mail: &[u8]) -> Vec<u8> {
    let mail = match mail.strip_prefix(b"From ") {
        Some(rest) => rest
            .iter()
            .position(|&b| b == b'\n')
            .map_or(&rest[rest.len()..], |end| &rest[end + 1..]),
        None => mail,
    };
    let mut out = Vec::with_capacity(mail.len() + 64);
    if header(mail, "date").is_none() {
        out.extend_from_slice(b"Date: Thu, 01 Jan 1970 00:00:00 +0000\n");
    }
    out.extend_from_slice(mail);
    out
}

/// The first line of a header field.
fn header(mail: &[u8], name: &str) -> Option<String> {
    for line in mail.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        if let Some(colon) = line.iter().position(|&b| b == b':')
            && line[..colon].eq_ignore_ascii_case(name.as_bytes())
        {
            let value = String::from_utf8_lossy(&line[colon + 1..]);
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_loses_its_separator_and_gets_a_date() {
        let mail = b"From 0123 Mon Sep 17 00:00:00 2001\nSubject: a\n\ndate: no header\n";
        let text = String::from_utf8(prepared(mail)).expect("text");
        assert_eq!(
            text,
            "Date: Thu, 01 Jan 1970 00:00:00 +0000\nSubject: a\n\ndate: no header\n"
        );
        let dated = b"Subject: a\r\nDATE: Thu, 21 Sep 2023 20:02:15 +0800\r\n\r\nx\r\n";
        assert_eq!(prepared(dated), dated);
        assert_eq!(header(dated, "subject").as_deref(), Some("a"));
    }
}
