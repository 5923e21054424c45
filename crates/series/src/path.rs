//! Paths of patches: relative, inside of the tree, printable.

use std::fmt;

use serde::Serialize;

use crate::display::{acts, defuse};
use crate::limits::MAX_PATH;

/// A path inside of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PatchPath(String);

/// Why a path was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathProblem {
    /// Begins at the root.
    #[error("path \"{}\" is absolute: expected one inside of the tree", .0)]
    Absolute(String),
    /// Leaves the tree.
    #[error("path \"{}\" holds \"..\": expected one inside of the tree", .0)]
    Parent(String),
    /// Writes into git's own files.
    #[error("path \"{}\" is inside of .git: a patch must not touch git's own files", .0)]
    GitFolder(String),
    /// Unprintable.
    #[error("path \"{}\" holds control characters", .0)]
    Control(String),
    /// `a//b`, `a/./b`, `a/`, nothing at all.
    #[error("path \"{}\" has an empty or \".\" component", .0)]
    Component(String),
    /// Longer than Linux allows.
    #[error("path of {0} bytes: expected at most {MAX_PATH}")]
    TooLong(usize),
    /// Bytes that are no text.
    #[error("path \"{}\" is not UTF-8", .0)]
    NotText(String),
}

impl PatchPath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`PathProblem`], for every path that is not relative and below the tree's root.
    pub fn parse(text: &str) -> Result<Self, PathProblem> {
        let shown = || defuse(text);
        if text.len() > MAX_PATH {
            return Err(PathProblem::TooLong(text.len()));
        }
        if text.starts_with('/') {
            return Err(PathProblem::Absolute(shown()));
        }
        if text.chars().any(acts) {
            return Err(PathProblem::Control(shown()));
        }
        if text.contains('\u{fffd}') {
            return Err(PathProblem::NotText(shown()));
        }
        for component in text.split('/') {
            match component {
                ".." => return Err(PathProblem::Parent(shown())),
                "" | "." => return Err(PathProblem::Component(shown())),
                name if is_git_folder(name) => return Err(PathProblem::GitFolder(shown())),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `.git` and the names that some file systems take for it: case, trailing blanks and
/// dots, the short name.
fn is_git_folder(name: &str) -> bool {
    let name = name.trim_end_matches([' ', '.']).to_ascii_lowercase();
    name == ".git" || name == "git~1" || name.starts_with(".git:")
}

impl fmt::Display for PatchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree() {
        for good in [
            "mm/madvise.c",
            ".gitignore",
            "a b/ü.c",
            "..a/b..",
            "x/.github/y",
        ] {
            assert_eq!(PatchPath::parse(good).expect("good").as_str(), good);
        }
        let problem = |text: &str| PatchPath::parse(text).expect_err("bad");
        assert!(matches!(problem("/etc/passwd"), PathProblem::Absolute(_)));
        for bad in ["../../etc/x", "a/../../b", "a/..", ".."] {
            assert!(matches!(problem(bad), PathProblem::Parent(_)), "{bad}");
        }
        for bad in [
            ".git/hooks/x",
            "a/.GIT/config",
            ".git /x",
            "git~1/x",
            ".git",
        ] {
            assert!(matches!(problem(bad), PathProblem::GitFolder(_)), "{bad}");
        }
        for bad in ["", "a//b", "./a", "a/"] {
            assert!(matches!(problem(bad), PathProblem::Component(_)), "{bad}");
        }
        assert!(matches!(problem("a\u{1b}[2J"), PathProblem::Control(_)));
        assert!(matches!(problem("a\u{fffd}"), PathProblem::NotText(_)));
        assert!(matches!(
            problem(&"a".repeat(5000)),
            PathProblem::TooLong(5000)
        ));
    }
}
