//! Why a patch did not apply, from what git says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::last_lines;

/// What is wrong with a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The files are not as the patch expects them.
    Conflict,
    /// The mail holds no patch, or a damaged one.
    Damaged,
    /// Every change of the patch is there already.
    NoChange,
    /// The patch reaches out of the tree: through a link, or by its paths.
    Unsafe,
    /// The mail is larger than what is read.
    TooLarge,
    /// Something else; git's message says what.
    Other,
}

/// A patch that did not apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its place in the series, counted from 1.
    pub patch: usize,
    /// Its subject.
    pub subject: String,
    /// What is wrong.
    pub kind: RefusalKind,
    /// The first file that is concerned, if git names one.
    pub file: Option<String>,
    /// The line of that file at which the hunk that does not fit begins.
    pub line: Option<u32>,
    /// What git said, at most a few lines.
    pub message: String,
}

/// Parts of git's messages, the first that is found decides. The texts are those of git 2.20
/// to 2.47 in the language C.
const SIGNS: [(&str, RefusalKind); 15] = [
    ("is beyond a symbolic link", RefusalKind::Unsafe),
    ("invalid path", RefusalKind::Unsafe),
    ("is outside repository", RefusalKind::Unsafe),
    ("No changes -- Patch already applied", RefusalKind::NoChange),
    ("corrupt patch", RefusalKind::Damaged),
    ("corrupt binary patch", RefusalKind::Damaged),
    ("patch fragment without header", RefusalKind::Damaged),
    ("No valid patches in input", RefusalKind::Damaged),
    ("unrecognized input", RefusalKind::Damaged),
    ("Patch is empty", RefusalKind::Damaged),
    ("could not parse patch", RefusalKind::Damaged),
    ("invalid date format", RefusalKind::Damaged),
    ("empty ident name", RefusalKind::Damaged),
    ("CONFLICT", RefusalKind::Conflict),
    ("Patch failed at", RefusalKind::Conflict),
];

impl RefusalKind {
    /// What git's message means.
    pub(crate) fn of(said: &str) -> Self {
        SIGNS
            .iter()
            .find(|(sign, _)| said.contains(sign))
            .map_or(Self::Other, |&(_, kind)| kind)
    }

    /// What to do about it.
    fn mend(self) -> &'static str {
        match self {
            Self::Conflict => "name the commit that the series was made for, or rebase the series",
            Self::Damaged => "send the mail as git format-patch writes it",
            Self::NoChange => "leave the patch out, or take an older base",
            Self::Unsafe => "it reaches out of the tree: do not use it",
            Self::TooLarge => "split the patch",
            Self::Other => "see the message of git",
        }
    }
}

impl Refusal {
    /// Reads what `git am` said, and what plain `git apply` said about the same patch.
    pub(crate) fn read(patch: usize, subject: String, said: &str, why: &str) -> Self {
        let (file, line) = place(why).or_else(|| place(said)).unzip();
        let best = if why.trim().is_empty() { said } else { why };
        Self {
            patch,
            subject,
            kind: RefusalKind::of(&format!("{said}\n{why}")),
            file,
            line: line.flatten(),
            message: last_lines(&worth_reading(best), 6),
        }
    }

    pub(crate) fn of_size(patch: usize, message: String) -> Self {
        Self {
            patch,
            subject: String::new(),
            kind: RefusalKind::TooLarge,
            file: None,
            line: None,
            message,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "patch {}", self.patch)?;
        if !self.subject.is_empty() {
            write!(f, " ({})", self.subject)?;
        }
        f.write_str(" does not apply")?;
        if let Some(file) = &self.file {
            write!(f, ", at {file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        let message = self.message.trim();
        if !message.is_empty() {
            write!(f, ": {}", message.replace('\n', "; "))?;
        }
        write!(f, "; {}", self.kind.mend())
    }
}

/// The lines that say what is wrong; hints on how to go on by hand are for others.
fn worth_reading(text: &str) -> String {
    let keep = |line: &&str| {
        let line = line.trim();
        !(line.is_empty()
            || line.starts_with("hint:")
            || line.starts_with("When you have resolved")
            || line.starts_with("If you prefer to skip")
            || line.starts_with("To restore the original"))
    };
    let lines: Vec<&str> = text.lines().filter(keep).collect();
    lines.join("\n")
}

/// The file, and the line if there is one, in the first message that names a file.
fn place(text: &str) -> Option<(String, Option<u32>)> {
    text.lines().find_map(|line| {
        if let Some(rest) = line.strip_prefix("error: patch failed: ") {
            return Some(match rest.rsplit_once(':') {
                Some((file, line)) => (file.to_owned(), line.parse().ok()),
                None => (rest.to_owned(), None),
            });
        }
        let inside = |before: &str, after: &str| {
            let rest = line.strip_prefix(before)?;
            Some((rest[..rest.find(after)?].to_owned(), None))
        };
        inside("error: ", ": patch does not apply")
            .or_else(|| inside("error: ", ": does not exist in index"))
            .or_else(|| inside("error: ", ": already exists in"))
            .or_else(|| inside("error: ", ": No such file or directory"))
            .or_else(|| inside("error: affected file '", "' is beyond a symbolic link"))
            .or_else(|| inside("error: invalid path '", "'"))
            .or_else(|| {
                let (_, file) = line
                    .strip_prefix("CONFLICT (")?
                    .split_once("Merge conflict in ")?;
                Some((file.to_owned(), None))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_found_in_what_git_says() {
        let found = |text| place(text).unwrap_or_default();
        assert_eq!(
            found(
                "x\nerror: patch failed: mm/madvise.c:395\nerror: mm/madvise.c: patch does not apply"
            ),
            ("mm/madvise.c".to_owned(), Some(395))
        );
        assert_eq!(
            found("error: mm/new.c: does not exist in index"),
            ("mm/new.c".to_owned(), None)
        );
        assert_eq!(
            found("CONFLICT (content): Merge conflict in mm/a b.c"),
            ("mm/a b.c".to_owned(), None)
        );
        assert_eq!(place("fatal: something else"), None);
    }

    #[test]
    fn the_text_names_patch_place_reason_and_mend() {
        let said = "error: patch failed: a.c:3\nerror: a.c: patch does not apply\n\
                    Patch failed at 0001 mm: x\nhint: Use 'git am --show-current-patch=diff'\n";
        let refusal = Refusal::read(2, "mm: x".to_owned(), said, "");
        assert_eq!(refusal.kind, RefusalKind::Conflict);
        assert_eq!(
            refusal.to_string(),
            "patch 2 (mm: x) does not apply, at a.c:3: error: patch failed: a.c:3; error: a.c: \
             patch does not apply; Patch failed at 0001 mm: x; name the commit that the series \
             was made for, or rebase the series"
        );
    }
}
