//! The files below an object store, on a blocking thread: append, check, move.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use klab_model::{Digest, Digester};

use crate::{Committed, StoreError, UploadKey};

/// The sub-folder of objects.
pub(crate) const OBJECTS: &str = "objects";
/// The sub-folder of staged uploads.
pub(crate) const UPLOADS: &str = "uploads";

/// The path of an object below the folder.
pub(crate) fn object_name(digest: &Digest) -> String {
    let digits = digest.to_string();
    let (first, rest) = digits.split_at(2);
    format!("{OBJECTS}/{first}/{rest}")
}

/// The file of a staged upload.
pub(crate) fn staged(folder: &Path, key: &UploadKey) -> PathBuf {
    folder.join(UPLOADS).join(key.as_str())
}

/// The length of a file; 0 if it is not there.
pub(crate) fn length(path: &Path) -> Result<u64, StoreError> {
    match fs::metadata(path) {
        Ok(meta) => Ok(meta.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::file("look at", path, 0)(error)),
    }
}

/// Name and length of every staged upload, by name.
pub(crate) fn list_staged(folder: &Path) -> Result<Vec<(String, u64)>, StoreError> {
    let folder = folder.join(UPLOADS);
    let list = || -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // It may be committed or discarded between the listing and the look at it.
            if let Ok(meta) = entry.metadata() {
                found.push((name, meta.len()));
            }
        }
        found.sort();
        Ok(found)
    };
    list().map_err(StoreError::file("list", &folder, 0))
}

/// Writes `bytes` at the end of a file that is `offset` long, and waits for the disk.
pub(crate) fn append(path: &Path, offset: u64, bytes: &[u8]) -> Result<u64, StoreError> {
    let need = bytes.len() as u64;
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(StoreError::file("open", path, need))?;
    let written = write_at(&mut file, offset, bytes).and_then(|()| match offset {
        // The name must be on the disk as well.
        0 => sync_parent(path),
        _ => Ok(()),
    });
    if let Err(error) = written {
        undo(&file, path, offset)?;
        return Err(StoreError::file("append to", path, need)(error));
    }
    Ok(offset + need)
}

fn write_at(file: &mut File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// A half-written piece must not look as if it were committed.
fn undo(file: &File, path: &Path, offset: u64) -> Result<(), StoreError> {
    if offset == 0 {
        return remove(path);
    }
    file.set_len(offset)
        .map_err(StoreError::file("shorten", path, 0))
}

/// Checks a staged upload and moves it among the objects.
pub(crate) fn commit(
    folder: &Path,
    key: &UploadKey,
    digest: &Digest,
    size: u64,
) -> Result<Committed, StoreError> {
    let from = staged(folder, key);
    let to = folder.join(object_name(digest));
    if length(&to)? == size && to.exists() {
        remove(&from)?;
        return Ok(Committed::Present);
    }
    let committed = length(&from)?;
    if committed < size {
        return Err(StoreError::Incomplete {
            key: key.as_str().to_owned(),
            committed,
            size,
        });
    }
    if size == 0 && committed == 0 {
        append(&from, 0, &[])?;
    }
    let found = digest_of(&from).map_err(StoreError::file("read", &from, 0))?;
    if found != *digest || committed != size {
        remove(&from)?;
        return Err(StoreError::Mismatch {
            key: key.as_str().to_owned(),
            expected: *digest,
            expected_size: size,
            found,
            found_size: committed,
        });
    }
    publish(&from, &to).map_err(StoreError::file("move to", &to, size))?;
    Ok(Committed::New)
}

/// A rename, not a link and a removal: after a crash between those two, the object would
/// still have the name of an upload, and an append would change it.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent()
        && !folder.exists()
    {
        fs::create_dir_all(folder)?;
        sync_parent(folder)?;
    }
    fs::rename(from, to)?;
    sync_parent(to)?;
    sync_parent(from)
}

fn digest_of(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut digester = Digester::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digester.finish()),
            count => digester.update(&buffer[..count]),
        }
    }
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::file("remove", path, 0)(error)),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
