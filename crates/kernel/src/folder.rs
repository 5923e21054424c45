//! Folders: listed without following links, so nothing outside gets in.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{ArchiveError, KernelError};
use crate::item::{Item, Place};
use crate::limits::Limits;

/// Lists the regular files below `top`, their paths starting with `prefix`.
///
/// Links are left out (`build` and `source` in a modules folder lead to the build tree);
/// at the top and in `boot/` a link to a file is taken as that file, because `bzImage` and
/// `vmlinuz` often are links.
pub(crate) fn items(top: &Path, prefix: &str, limits: &Limits) -> Result<Vec<Item>, KernelError> {
    let mut walk = Walk {
        top,
        limits,
        items: Vec::new(),
        bytes: 0,
    };
    let mut folders = vec![(top.to_owned(), prefix.to_owned())];
    while let Some((folder, prefix)) = folders.pop() {
        walk.folder(&folder, &prefix, &mut folders)?;
    }
    Ok(walk.items)
}

struct Walk<'a> {
    top: &'a Path,
    limits: &'a Limits,
    items: Vec<Item>,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &Path,
        prefix: &str,
        folders: &mut Vec<(PathBuf, String)>,
    ) -> Result<(), KernelError> {
        let open = |source| KernelError::Open {
            path: folder.to_owned(),
            source,
        };
        for entry in fs::read_dir(folder).map_err(open)? {
            let entry = entry.map_err(open)?;
            let place = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(KernelError::Member {
                    path: self.top.to_owned(),
                    member: place.to_string_lossy().into_owned(),
                    what: "has a name that is not UTF-8: rename it",
                });
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(open)?;
            if kind.is_dir() {
                folders.push((place, format!("{path}/")));
            } else if kind.is_file() || (kind.is_symlink() && links_count(prefix)) {
                self.file(path, place)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: String, place: PathBuf) -> Result<(), KernelError> {
        // A dangling link is no file of the package.
        let Ok(meta) = fs::metadata(&place) else {
            return Ok(());
        };
        if !meta.is_file() {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(meta.len());
        if self.items.len() >= self.limits.entries || self.bytes > self.limits.bytes {
            let Limits { bytes, entries } = *self.limits;
            let source = ArchiveError::TooBig { bytes, entries };
            return Err(KernelError::Archive {
                path: self.top.to_owned(),
                source,
            });
        }
        self.items.push(Item {
            path,
            size: meta.len(),
            place: Place::Path(place),
        });
        Ok(())
    }
}

fn links_count(prefix: &str) -> bool {
    prefix.is_empty() || prefix == "boot/"
}
