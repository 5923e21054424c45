//! Objects: bytes named by their BLAKE3 digest, never changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use klab_model::Digest;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt};

use crate::upload::KeyLocks;
use crate::{StoreError, UploadKey, files};

/// Objects in a folder, at `objects/<first two digits>/<other digits>` of their digest, and
/// the uploads on their way there, at `uploads/<key>`. Clones share it.
#[derive(Clone)]
pub struct Objects {
    pub(crate) folder: Arc<PathBuf>,
    pub(crate) locks: KeyLocks,
    backend: Arc<dyn ObjectStore>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.folder).finish()
    }
}

/// An object that is being read.
pub struct ObjectRead {
    /// The size of the whole object in bytes.
    pub size: u64,
    /// Its bytes from the offset that was asked for to the end, in pieces of at most
    /// 256 KiB.
    pub stream: BoxStream<'static, Result<Bytes, StoreError>>,
}

impl fmt::Debug for ObjectRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRead")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

const PIECE: u64 = 256 * 1024;

impl Objects {
    /// Opens the objects in `folder` and makes its sub-folders.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub async fn open(folder: &Path) -> Result<Objects, StoreError> {
        let folder = std::path::absolute(folder).map_err(StoreError::file("find", folder, 0))?;
        for name in [files::OBJECTS, files::UPLOADS] {
            let path = folder.join(name);
            tokio::fs::create_dir_all(&path)
                .await
                .map_err(StoreError::file("make the folder", &path, 0))?;
        }
        let backend =
            LocalFileSystem::new_with_prefix(&folder).map_err(|source| StoreError::File {
                context: "open the folder",
                path: folder.clone(),
                source: source.into(),
            })?;
        Ok(Objects {
            folder: Arc::new(folder),
            locks: KeyLocks::default(),
            backend: Arc::new(backend),
        })
    }

    /// The size of an object in bytes; `None` if it is not here.
    ///
    /// # Errors
    /// [`StoreError::Object`].
    pub async fn size(&self, digest: &Digest) -> Result<Option<u64>, StoreError> {
        match self.backend.head(&object_path(digest)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(source) => Err(StoreError::Object {
                digest: *digest,
                source,
            }),
        }
    }

    /// Reads an object from byte `offset` on.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::BeyondEnd`].
    pub async fn read(&self, digest: &Digest, offset: u64) -> Result<ObjectRead, StoreError> {
        let size = self
            .size(digest)
            .await?
            .ok_or_else(|| StoreError::not_found("object", digest))?;
        if offset > size {
            return Err(StoreError::BeyondEnd {
                digest: *digest,
                size,
                offset,
            });
        }
        let (backend, digest) = (Arc::clone(&self.backend), *digest);
        let stream = stream::try_unfold(offset, move |from| {
            let backend = Arc::clone(&backend);
            async move {
                let to = size.min(from + PIECE);
                if from == to {
                    return Ok(None);
                }
                let piece = backend
                    .get_range(&object_path(&digest), from..to)
                    .await
                    .map_err(|source| StoreError::Object { digest, source })?;
                Ok(Some((piece, to)))
            }
        });
        Ok(ObjectRead {
            size,
            stream: stream.boxed(),
        })
    }

    /// A whole object in memory.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub async fn bytes(&self, digest: &Digest) -> Result<Bytes, StoreError> {
        let read = self.read(digest, 0).await?;
        let pieces = read.stream.try_fold(BytesMut::new(), |mut all, piece| {
            all.extend_from_slice(&piece);
            futures::future::ok(all)
        });
        pieces.await.map(BytesMut::freeze)
    }

    /// Stores bytes that are in memory already.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`], [`StoreError::File`].
    pub async fn put(&self, bytes: Bytes) -> Result<Digest, StoreError> {
        let digest = Digest::of(&bytes);
        let size = bytes.len() as u64;
        if self.size(&digest).await? == Some(size) {
            return Ok(digest);
        }
        let key = UploadKey::parse(&format!("put-{digest}"))?;
        self.locked(&key, move |folder, key| {
            // What an earlier call left behind may end anywhere.
            let path = files::staged(folder, key);
            files::remove(&path)?;
            files::append(&path, 0, &bytes)?;
            files::commit(folder, key, &digest, size)
        })
        .await?;
        Ok(digest)
    }

    /// # Errors
    /// [`StoreError::NotFound`] unless the object is here and has that size.
    pub(crate) async fn require(&self, digest: &Digest, size: u64) -> Result<(), StoreError> {
        if self.size(digest).await? == Some(size) {
            Ok(())
        } else {
            Err(StoreError::NotFound {
                what: "object",
                name: format!("{digest} of {size} bytes"),
            })
        }
    }
}

fn object_path(digest: &Digest) -> ObjectPath {
    ObjectPath::from(files::object_name(digest))
}
