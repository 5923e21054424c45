//! Symbolic links that a series makes: they must not lead out of the tree, and nothing may
//! be written through them.

use std::collections::BTreeSet;

use crate::diff::{ChangeKind, FileChange, Mode, PatchProblem};
use crate::display::defuse;

/// Whether a link's target stays in the tree: relative, and `..` only in front and no more
/// often than the link is deep. A `..` after a name could lead anywhere through other links.
fn stays(path: &str, target: &str) -> bool {
    let depth = path.split('/').count() - 1;
    let parts: Vec<&str> = target
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let up = parts.iter().take_while(|part| **part == "..").count();
    let inside = |name: &&str| *name != ".." && !name.eq_ignore_ascii_case(".git");
    !target.is_empty() && !target.starts_with('/') && up <= depth && parts[up..].iter().all(inside)
}

/// The links of a series so far.
#[derive(Default)]
pub(crate) struct Links(BTreeSet<String>);

impl Links {
    /// Takes the changes of the next patch.
    pub(crate) fn take(&mut self, files: &[FileChange]) -> Result<(), PatchProblem> {
        for file in files {
            self.take_file(file)?;
        }
        Ok(())
    }

    fn take_file(&mut self, file: &FileChange) -> Result<(), PatchProblem> {
        let path = file.path.as_str();
        for (at, _) in path.match_indices('/') {
            if self.0.contains(&path[..at]) {
                return Err(PatchProblem::ThroughLink {
                    path: path.to_owned(),
                    link: path[..at].to_owned(),
                });
            }
        }
        if let Some(target) = &file.link_target
            && !stays(path, target)
        {
            return Err(PatchProblem::LinkOutside {
                path: path.to_owned(),
                target: defuse(target),
            });
        }
        if file.new_mode == Some(Mode::Symlink) && file.binary {
            return Err(PatchProblem::LinkBinary {
                path: path.to_owned(),
            });
        }
        if let Some(old) = &file.old_path {
            let moved = match file.kind {
                ChangeKind::Renamed => self.0.remove(old.as_str()),
                _ => self.0.contains(old.as_str()),
            };
            if moved {
                self.0.insert(path.to_owned());
            }
        }
        match (file.kind, file.new_mode) {
            (ChangeKind::Deleted, _) => self.0.remove(path),
            (_, Some(Mode::Symlink)) => self.0.insert(path.to_owned()),
            (_, Some(_)) => self.0.remove(path),
            (_, None) => false,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        for (path, target) in [
            ("a/b/l", "../c"),
            ("l", "mm/x"),
            ("a/l", "../b"),
            ("l", "./x"),
        ] {
            assert!(stays(path, target), "{path} -> {target}");
        }
        for (path, target) in [
            ("l", "/etc/passwd"),
            ("l", ".."),
            ("a/l", "../../x"),
            ("a/l", "b/../../../x"),
            ("l", ""),
            ("l", ".git/config"),
        ] {
            assert!(!stays(path, target), "{path} -> {target}");
        }
    }
}
