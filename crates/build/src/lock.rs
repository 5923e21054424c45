//! Locks between processes, as files. A lock ends with the process that holds it, and with
//! those children that were given it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::{BuildError, BuildEvent, Watcher};

/// How often a lock that another process holds is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, waiting as long as it takes or until the watcher's token is cancelled.
    /// `what` is told to the watcher when it has to wait.
    pub(crate) fn take(
        path: &Path,
        what: &str,
        watcher: &mut Watcher<'_>,
    ) -> Result<Self, BuildError> {
        Self::take_calling(path, what, watcher, &mut |_| {})
    }

    /// Like [`Lock::take`]; `waiting` is called each time that the lock is held by another.
    pub(crate) fn take_calling(
        path: &Path,
        what: &str,
        watcher: &mut Watcher<'_>,
        waiting: &mut dyn FnMut(&mut Watcher<'_>),
    ) -> Result<Self, BuildError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(BuildError::io("open", path))?;
        let mut told = false;
        loop {
            watcher.check()?;
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        told = true;
                        watcher.tell(BuildEvent::Waiting(what.to_owned()));
                    }
                    waiting(watcher);
                    std::thread::sleep(AGAIN);
                }
                Err(TryLockError::Error(source)) => {
                    return Err(BuildError::io("lock", path)(source));
                }
            }
        }
    }

    /// The file, for a child that shall hold the lock as well.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cancel;

    #[test]
    fn a_second_taker_waits_is_told_and_can_be_cancelled() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("lock");
        let cancel = Cancel::new().expect("token");
        let mut ignore = |_| {};
        let first = Lock::take(&path, "x", &mut Watcher::new(&cancel, &mut ignore)).expect("lock");
        let stop = cancel.clone();
        let mut told = Vec::new();
        let mut events = |event| {
            told.push(event);
            stop.cancel();
        };
        let second = Lock::take(
            &path,
            "the work tree",
            &mut Watcher::new(&cancel, &mut events),
        );
        assert!(matches!(second, Err(BuildError::Cancelled)));
        assert_eq!(told, [BuildEvent::Waiting("the work tree".to_owned())]);
        drop(first);
        let cancel = Cancel::new().expect("token");
        Lock::take(&path, "x", &mut Watcher::new(&cancel, &mut |_| {})).expect("free again");
    }
}
