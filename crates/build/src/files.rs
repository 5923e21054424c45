//! Files that appear whole or not at all, and removing what was built.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::BuildError;

/// Makes the names of new files differ.
static NEW: AtomicU64 = AtomicU64::new(0);

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(path).map_err(BuildError::io("make the folder", path))
}

/// Writes a file beside its place and renames it, so that readers see the old or the new one.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let number = NEW.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".new-{}-{number}", std::process::id()));
    let new = path.with_file_name(name);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written
        .and_then(|()| fs::rename(&new, path))
        .map_err(BuildError::io("write", path))
}

/// Removes a file or a folder with everything in it; fine if it is not there. Links are removed
/// and never followed.
pub(crate) fn remove(path: &Path) -> Result<(), BuildError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    absent_is_fine(removed).map_err(BuildError::io("remove", path))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The bytes of a file, `None` if there is none.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, BuildError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BuildError::io("read", path)(source)),
    }
}

/// Calls `each` with every file and link below `folder`, links not followed.
pub(crate) fn walk(
    folder: &Path,
    each: &mut dyn FnMut(&fs::DirEntry) -> io::Result<()>,
) -> Result<(), BuildError> {
    walk_some(folder, &|_| true, each)
}

/// Like [`walk`], but only in folders that `enter` wants.
pub(crate) fn walk_some(
    folder: &Path,
    enter: &dyn Fn(&Path) -> bool,
    each: &mut dyn FnMut(&fs::DirEntry) -> io::Result<()>,
) -> Result<(), BuildError> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut visit = || -> io::Result<()> {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if !entry.file_type()?.is_dir() {
                    each(&entry)?;
                } else if enter(&entry.path()) {
                    folders.push(entry.path());
                }
            }
            Ok(())
        };
        visit().map_err(BuildError::io("read the folder", &folder))?;
    }
    Ok(())
}
