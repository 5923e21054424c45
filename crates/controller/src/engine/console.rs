//! Serial consoles: one rolling log per board, and a file per attempt that becomes an
//! artifact when the attempt ends.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use klab_model::{Artifact, ArtifactKind, ArtifactName, BoardName, RunId, Timestamp};
use klab_store::StoreError;
use tokio::sync::Notify;
use tracing::{error, warn};

use super::{AttemptKey, Engine, EngineError};

/// Size at which a log is rotated and an attempt's file ends.
const LIMIT: u64 = 16 << 20;
const CUT: &[u8] = b"\n[klab: the console log of this attempt ends here, at 16 MiB]\n";
const FOLDER: &str = "consoles";
const ATTEMPTS: &str = "attempts";
/// How long a console that could not be kept waits for the next try.
const RETRY: Duration = Duration::from_secs(60);

/// The files of the consoles, and which attempt each board is busy with.
#[derive(Debug)]
pub(super) struct Consoles {
    folder: PathBuf,
    active: Mutex<HashMap<BoardName, AttemptKey>>,
    /// A console could not be kept when its attempt ended.
    left: Notify,
}

impl Consoles {
    pub(super) async fn open(folder: &Path) -> Result<Self, EngineError> {
        let folder = folder.join(FOLDER);
        let attempts = folder.join(ATTEMPTS);
        tokio::fs::create_dir_all(&attempts)
            .await
            .map_err(|source| StoreError::File {
                context: "make the folder",
                path: attempts,
                source,
            })?;
        Ok(Self {
            folder,
            active: Mutex::default(),
            left: Notify::new(),
        })
    }

    fn active(&self) -> MutexGuard<'_, HashMap<BoardName, AttemptKey>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a board's console belongs to this attempt as well.
    pub(super) fn begin(&self, board: &BoardName, key: AttemptKey) {
        self.active().insert(board.clone(), key);
    }

    fn is_active(&self, run: RunId, attempt: u32) -> bool {
        let active = self.active();
        let mut keys = active.values();
        keys.any(|key| key.run == run && key.attempt == attempt)
    }

    fn attempt_file(&self, run: RunId, attempt: u32) -> PathBuf {
        let name = format!("{run}.{attempt}.log");
        self.folder.join(ATTEMPTS).join(name)
    }

    /// The attempts that have a file.
    async fn files(&self) -> io::Result<Vec<(RunId, u32)>> {
        let folder = self.folder.join(ATTEMPTS);
        blocking(move || {
            let mut found = Vec::new();
            for entry in fs::read_dir(folder)? {
                found.extend(entry?.file_name().to_str().and_then(attempt_in));
            }
            Ok(found)
        })
        .await
    }

    async fn append(&self, board: &BoardName, bytes: Bytes) -> io::Result<()> {
        let rolling = self.folder.join(format!("{board}.log"));
        let attempt = self
            .active()
            .get(board)
            .map(|key| self.attempt_file(key.run, key.attempt));
        blocking(move || {
            append_rolling(&rolling, &bytes)?;
            attempt.map_or(Ok(()), |path| append_limited(&path, &bytes))
        })
        .await
    }
}

/// The attempt in the name of a file.
fn attempt_in(name: &str) -> Option<(RunId, u32)> {
    let (run, attempt) = name.strip_suffix(".log")?.split_once('.')?;
    Some((run.parse().ok()?, attempt.parse().ok()?))
}

fn append_rolling(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = append_to(path)?;
    if file.metadata()?.len() + bytes.len() as u64 > LIMIT {
        fs::rename(path, path.with_extension("log.1"))?;
        file = append_to(path)?;
    }
    file.write_all(bytes)
}

fn append_limited(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = append_to(path)?;
    let length = file.metadata()?.len();
    if length >= LIMIT {
        return Ok(());
    }
    let room = usize::try_from(LIMIT - length).unwrap_or(usize::MAX);
    if bytes.len() < room {
        file.write_all(bytes)
    } else {
        file.write_all(&bytes[..room])?;
        file.write_all(CUT)
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

impl Engine {
    /// Bytes of a board's console arrived.
    pub(crate) async fn console(&self, board: &BoardName, bytes: Bytes) -> Result<(), EngineError> {
        let need = bytes.len() as u64;
        let path = &self.consoles.folder;
        self.consoles
            .append(board, bytes)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull {
                    path: path.clone(),
                    need,
                },
                _ => StoreError::File {
                    context: "append to a console log in",
                    path: path.clone(),
                    source,
                },
            })?;
        Ok(())
    }

    /// Makes the console of an attempt on `board` an artifact, if the board is at it. A
    /// console that cannot be kept is no reason to lose the end of the attempt, except that
    /// a full disk has to be waited for: the agent reports the end once more.
    pub(super) async fn keep_console_of(
        &self,
        board: &BoardName,
        key: AttemptKey,
    ) -> Result<(), EngineError> {
        if self.consoles.active().get(board) != Some(&key) {
            return Ok(());
        }
        match self.keep_console(key).await {
            Err(error) if error.is_disk_full() => {
                self.consoles.begin(board, key);
                Err(error)
            }
            Err(error) => {
                self.keep_later(key, &error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Makes the console of an attempt that ended an artifact, now or as soon as that can be
    /// done.
    pub(super) async fn keep_console_or_later(&self, key: AttemptKey) {
        if let Err(error) = self.keep_console(key).await {
            self.keep_later(key, &error);
        }
    }

    fn keep_later(&self, key: AttemptKey, error: &EngineError) {
        warn!(run = %key.run, %error, "failed to keep a console log, it is tried again");
        self.consoles.left.notify_one();
    }

    /// Makes the console of an attempt an artifact, if there is one.
    async fn keep_console(&self, key: AttemptKey) -> Result<(), EngineError> {
        self.consoles.active().retain(|_, active| *active != key);
        self.hand_over(key.run, key.attempt).await
    }

    /// Keeps the consoles that were left when their attempts ended, because the disk was full
    /// or the controller was killed.
    pub(super) async fn console_loop(self: Arc<Self>) {
        loop {
            let next = match self.hand_over_left().await {
                true => Timestamp::MAX,
                false => self.in_future(RETRY),
            };
            tokio::select! {
                () = self.consoles.left.notified() => {}
                () = self.clock.sleep_until(next) => {}
            }
        }
    }

    /// Whether nothing is left that may be kept later.
    async fn hand_over_left(&self) -> bool {
        let files = match self.consoles.files().await {
            Ok(files) => files,
            Err(error) => {
                error!(%error, "failed to list the console logs of attempts");
                return false;
            }
        };
        let mut all = true;
        for (run, attempt) in files {
            // What ends an attempt has the turn as well.
            let _turn = self.turn().await;
            if self.consoles.is_active(run, attempt) {
                continue;
            }
            if let Err(error) = self.hand_over(run, attempt).await {
                warn!(%run, attempt, %error, "failed to keep a console log");
                // Rows that are not there do not come by waiting.
                all &= matches!(error, EngineError::Store(StoreError::NotFound { .. }));
            }
        }
        all
    }

    /// Makes an artifact of the file of an attempt, if there is one.
    async fn hand_over(&self, run: RunId, attempt: u32) -> Result<(), EngineError> {
        let path = self.consoles.attempt_file(run, attempt);
        let failed = |context| {
            let path = path.clone();
            move |source| StoreError::File {
                context,
                path,
                source,
            }
        };
        let bytes = match tokio::fs::read(&path).await {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("read")(error).into()),
        };
        match self.store_console(run, attempt, bytes).await {
            Err(EngineError::Store(StoreError::AlreadyExists { .. })) => {
                // Written while the file was handed over; the log of the board has it too.
                warn!(%run, attempt, "bytes after the end of a console log are dropped");
            }
            result => result?,
        }
        tokio::fs::remove_file(&path)
            .await
            .map_err(failed("remove"))?;
        Ok(())
    }

    async fn store_console(
        &self,
        run: RunId,
        attempt: u32,
        bytes: Bytes,
    ) -> Result<(), EngineError> {
        let size = bytes.len() as u64;
        let digest = self.store.objects().put(bytes).await?;
        let artifact = Artifact {
            id: self.new_id(),
            run,
            attempt,
            trial: None,
            name: ArtifactName::parse("console.log").expect("this is a plain file name"),
            kind: ArtifactKind::Console,
            digest,
            size,
            created_at: self.now(),
        };
        let added = self.store.add_artifact(&artifact).await?;
        self.feed_changed();
        // The log is safe; what was not read of it is read when the controller starts again.
        if let Err(error) = self.derive(&added.artifact).await {
            error!(artifact = %added.artifact.id, %error, "failed to read a console log");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_file_ends_with_a_remark_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let piece = vec![b'x'; (LIMIT / 4 + 1) as usize];
        for _ in 0..6 {
            append_limited(&path, &piece).unwrap();
        }
        let text = fs::read(&path).unwrap();
        assert_eq!(text.len() as u64, LIMIT + CUT.len() as u64);
        assert!(text.ends_with(CUT));
    }

    #[test]
    fn a_rolling_log_keeps_what_came_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b1.log");
        append_rolling(&path, &vec![b'x'; LIMIT as usize]).unwrap();
        append_rolling(&path, b"later").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"later");
        let old = fs::metadata(folder.path().join("b1.log.1")).unwrap();
        assert_eq!(old.len(), LIMIT);
    }
}
