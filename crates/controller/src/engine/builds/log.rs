//! The logs of builds: files while they grow, objects afterwards.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use klab_model::{BuildTaskId, Digest};
use klab_store::StoreError;
use tracing::warn;

use super::super::{Engine, EngineError};

/// The largest log that is kept, in bytes.
const LIMIT: u64 = 64 << 20;
const CUT: &[u8] = b"\n[klab: the log of this build ends here, at 64 MiB]\n";
/// Bytes that are read at once.
const PIECE: u64 = 256 << 10;

/// The folder of the logs.
#[derive(Debug)]
pub(super) struct Logs(PathBuf);

impl Logs {
    pub(super) async fn open(folder: &Path) -> Result<Self, EngineError> {
        let folder = folder.join("builds");
        let made = folder.clone();
        blocking(move || std::fs::create_dir_all(made))
            .await
            .map_err(failed(&folder, "make the folder of build logs"))?;
        Ok(Self(folder))
    }

    fn file(&self, build: BuildTaskId) -> PathBuf {
        self.0.join(format!("{build}.log"))
    }

    /// Appends to a log.
    pub(super) async fn append(
        &self,
        build: BuildTaskId,
        bytes: Vec<u8>,
    ) -> Result<(), EngineError> {
        let path = self.file(build);
        let file = path.clone();
        blocking(move || {
            let mut file = File::options().create(true).append(true).open(file)?;
            let length = file.metadata()?.len();
            let room = usize::try_from(LIMIT.saturating_sub(length)).unwrap_or(usize::MAX);
            match bytes.get(..room) {
                Some(_) if room == 0 => Ok(()),
                Some(fits) => {
                    file.write_all(fits)?;
                    file.write_all(CUT)
                }
                None => file.write_all(&bytes),
            }
        })
        .await
        .map_err(failed(&path, "write a build log"))
    }

    /// A piece of a log from an offset on; empty at its end.
    pub(super) async fn read(&self, build: BuildTaskId, offset: u64) -> Result<Bytes, EngineError> {
        let path = self.file(build);
        let file = path.clone();
        blocking(move || {
            let mut bytes = Vec::new();
            match File::open(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    let mut file = opened?;
                    file.seek(SeekFrom::Start(offset))?;
                    file.take(PIECE).read_to_end(&mut bytes)?;
                }
            }
            Ok(bytes.into())
        })
        .await
        .map_err(failed(&path, "read a build log"))
    }

    async fn take(&self, build: BuildTaskId) -> Result<Option<Bytes>, EngineError> {
        let path = self.file(build);
        let file = path.clone();
        blocking(move || match std::fs::read(file) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
        .map_err(failed(&path, "read a build log"))
    }

    async fn remove(&self, build: BuildTaskId) {
        let path = self.file(build);
        if let Err(error) = blocking(move || std::fs::remove_file(path)).await {
            warn!(%build, %error, "failed to remove the log of a build");
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn failed(path: &Path, context: &'static str) -> impl FnOnce(io::Error) -> EngineError + use<> {
    let path = path.to_owned();
    move |source| {
        StoreError::File {
            context,
            path,
            source,
        }
        .into()
    }
}

impl Engine {
    /// Makes the log of a build that has ended an object.
    pub(super) async fn keep_build_log(&self, build: BuildTaskId) -> Result<(), EngineError> {
        let logs = &self.builds.logs;
        let Some(bytes) = logs.take(build).await? else {
            return Ok(());
        };
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        self.store.objects().put(bytes).await?;
        self.store.set_build_log(build, &digest, size).await?;
        logs.remove(build).await;
        Ok(())
    }

    /// A piece of the log of a build from an offset on; empty where it ends for now.
    pub(crate) async fn build_log(
        &self,
        build: BuildTaskId,
        offset: u64,
    ) -> Result<Bytes, EngineError> {
        let record = self.store.build(build).await?;
        match record.log {
            Some((_, size)) if offset >= size => Ok(Bytes::new()),
            Some((digest, _)) => {
                let bytes = self.store.objects().bytes(&digest).await?;
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                Ok(bytes.slice(from.min(bytes.len())..))
            }
            None => self.builds.logs.read(build, offset).await,
        }
    }
}
