//! Files that survive a power cut: write, sync, rename, sync the folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use klab_model::Digest;

use crate::BootError;

/// Replaces `path` by `bytes` in one step.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), BootError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(BootError::io("write", path))?;
    sync_folder(path.parent().unwrap_or(Path::new("/")))
}

/// Puts the entries of a folder on the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), BootError> {
    match File::open(folder).and_then(|f| f.sync_all()) {
        // FAT has no folders to sync on some kernels; `sync_fs` follows anyway.
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => Ok(()),
        other => other.map_err(BootError::io("sync", folder)),
    }
}

/// Puts everything on the file system of `path` on the disk.
pub(crate) fn sync_fs(path: &Path) -> Result<(), BootError> {
    let file = File::open(path).map_err(BootError::io("open", path))?;
    rustix::fs::syncfs(&file).map_err(|e| BootError::io("sync", path)(e.into()))
}

/// Moves a file or folder in one step and puts the move on the disk.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), BootError> {
    fs::rename(from, to).map_err(BootError::io("move into place", to))?;
    sync_folder(to.parent().unwrap_or(Path::new("/")))
}

/// Copies a file and puts the copy on the disk.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), BootError> {
    let mut source = File::open(from).map_err(BootError::io("read", from))?;
    let mut copy = || -> io::Result<()> {
        let mut target = File::create(to)?;
        io::copy(&mut source, &mut target)?;
        target.sync_all()
    };
    copy().map_err(BootError::io("write", to))
}

/// Removes a file, a link or a whole folder; nothing there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), BootError> {
    let Ok(meta) = path.symlink_metadata() else {
        return Ok(());
    };
    let done = if meta.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    done.map_err(BootError::io("remove", path))
}

/// Digest and size of a file.
pub(crate) fn digest(path: &Path) -> Result<(Digest, u64), BootError> {
    File::open(path)
        .and_then(Digest::of_reader)
        .map_err(BootError::io("read", path))
}

/// The first bytes of a file, at most `len`.
pub(crate) fn head(path: &Path, len: usize) -> Result<Vec<u8>, BootError> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(len as u64).read_to_end(&mut head))
        .map_err(BootError::io("read", path))?;
    Ok(head)
}

/// Bytes that are free for the agent on the file system of `path` or of the nearest folder
/// above it that exists.
pub(crate) fn free(path: &Path) -> Result<u64, BootError> {
    let existing = path
        .ancestors()
        .find(|p| p.exists())
        .unwrap_or(Path::new("/"));
    let stat = rustix::fs::statvfs(existing)
        .map_err(|e| BootError::io("look at the file system of", existing)(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Fails unless `needed` bytes are free at `path`.
pub(crate) fn require_free(path: &Path, needed: u64) -> Result<(), BootError> {
    let free = free(path)?;
    if free < needed {
        return Err(BootError::DiskFull {
            path: path.to_owned(),
            needed,
            free,
        });
    }
    Ok(())
}

/// Whether the file system of `path` is mounted read-only.
pub(crate) fn read_only(path: &Path) -> bool {
    use rustix::fs::StatVfsMountFlags;
    rustix::fs::statvfs(path).is_ok_and(|s| s.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether the file system of `path` is FAT, by its number in statfs(2).
pub(crate) fn is_fat(path: &Path) -> bool {
    const MSDOS_SUPER_MAGIC: i64 = 0x4d44;
    rustix::fs::statfs(path).is_ok_and(|s| s.f_type == MSDOS_SUPER_MAGIC)
}

/// Every regular file below `folder`, as paths relative to it, sorted.
pub(crate) fn tree(folder: &Path) -> Result<Vec<PathBuf>, BootError> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).map_err(BootError::io("read", &next))? {
            let entry = entry.map_err(BootError::io("read", &next))?;
            let kind = entry
                .file_type()
                .map_err(BootError::io("read", entry.path()))?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.extend(entry.path().strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether two regular files have the same bytes.
pub(crate) fn same(a: &Path, b: &Path) -> Result<bool, BootError> {
    let size = |path: &Path| {
        fs::metadata(path)
            .map(|m| m.size())
            .map_err(BootError::io("read", path))
    };
    Ok(size(a)? == size(b)? && digest(a)? == digest(b)?)
}
