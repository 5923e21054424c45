//! Uploads that can be resumed: append at an offset, then commit by digest.
//!
//! A staged upload is one file. Its length is what is committed of it: bytes are on the
//! disk before [`Objects::append`] returns. Nothing of it is an object before
//! [`Objects::commit`] has read it back and found the digest that was promised.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use klab_model::Digest;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task;

use crate::{Objects, StoreError, files};

/// The name of an upload, chosen by the caller: the same upload has the same key after a
/// restart, and no two uploads at a time share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadKey(String);

impl UploadKey {
    /// Reads a key.
    ///
    /// # Errors
    /// [`StoreError::BadUploadKey`] unless it is 1 to 200 characters of a-z, 0-9, `.`, `_`
    /// and `-`, not starting with `.`.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        if (1..=200).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('.') {
            Ok(Self(text.to_owned()))
        } else {
            Err(StoreError::BadUploadKey {
                found: text.chars().take(80).collect(),
            })
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An upload that has not been committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpload {
    /// Its key.
    pub key: UploadKey,
    /// How many bytes are stored: where to continue.
    pub length: u64,
}

/// What a commit found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// The object is new.
    New,
    /// The object was here already.
    Present,
}

/// One lock per upload, so that two senders of the same one cannot interleave.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyLocks(Arc<Mutex<HashMap<UploadKey, Arc<AsyncMutex<()>>>>>);

impl KeyLocks {
    async fn lock(&self, key: &UploadKey) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(key.clone()).or_default())
        };
        lock.lock_owned().await
    }
}

impl Objects {
    /// How many bytes of an upload are stored: where to continue. 0 if it is unknown.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub async fn upload_length(&self, key: &UploadKey) -> Result<u64, StoreError> {
        self.locked(key, |folder, key| {
            files::length(&files::staged(folder, key))
        })
        .await
    }

    /// Every upload that has begun and is not committed, by key.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub async fn uploads(&self) -> Result<Vec<PendingUpload>, StoreError> {
        let folder = Arc::clone(&self.folder);
        let found = blocking(move || files::list_staged(&folder)).await?;
        let pending = found.into_iter().filter_map(|(name, length)| {
            let key = UploadKey::parse(&name).ok()?;
            Some(PendingUpload { key, length })
        });
        Ok(pending.collect())
    }

    /// Appends to an upload and gives its new length. The bytes are on the disk then.
    ///
    /// # Errors
    /// [`StoreError::WrongOffset`] unless `offset` is the length so far;
    /// [`StoreError::DiskFull`] or [`StoreError::File`], and the upload is as long as before.
    pub async fn append(
        &self,
        key: &UploadKey,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, StoreError> {
        self.locked(key, move |folder, key| {
            let path = files::staged(folder, key);
            let committed = files::length(&path)?;
            if committed == offset {
                files::append(&path, offset, &bytes)
            } else {
                Err(StoreError::WrongOffset {
                    key: key.as_str().to_owned(),
                    offset,
                    committed,
                })
            }
        })
        .await
    }

    /// Makes an upload an object. Committing again what was committed before is no error.
    ///
    /// # Errors
    /// [`StoreError::Incomplete`] if bytes are missing: send them and commit again.
    /// [`StoreError::Mismatch`] if the bytes are not those of the digest: the upload is
    /// thrown away.
    pub async fn commit(
        &self,
        key: &UploadKey,
        digest: &Digest,
        size: u64,
    ) -> Result<Committed, StoreError> {
        let digest = *digest;
        self.locked(key, move |folder, key| {
            files::commit(folder, key, &digest, size)
        })
        .await
    }

    /// Throws an upload away; no error if it is unknown.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub async fn discard(&self, key: &UploadKey) -> Result<(), StoreError> {
        self.locked(key, |folder, key| {
            files::remove(&files::staged(folder, key))
        })
        .await
    }

    /// Works on the files of one upload. The lock is held by the work itself: a caller that
    /// goes away does not let another one in before it is finished.
    pub(crate) async fn locked<T, F>(&self, key: &UploadKey, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&std::path::Path, &UploadKey) -> Result<T, StoreError> + Send + 'static,
    {
        let guard = self.locks.lock(key).await;
        let (folder, key) = (Arc::clone(&self.folder), key.clone());
        blocking(move || {
            let result = work(&folder, &key);
            drop(guard);
            result
        })
        .await
    }
}

async fn blocking<T, F>(work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, StoreError> + Send + 'static,
{
    match task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only while the runtime shuts down, when nobody waits for the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
