//! New kernels: staged, checked, read, added; or nothing of it.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use klab_kernel::{Limits, VerifyError, verify_canonical};
use klab_model::{Digest, Digester, Kernel, KernelName, KernelOffer};
use klab_proto::status::Reason;
use klab_store::{StoreError, UploadKey};

use super::error::with_causes;
use super::staged::Staged;
use super::{Engine, EngineError, found};

/// The largest kernel package that is taken, in bytes.
const MAX_PACKAGE: u64 = 4 << 30;

/// A kernel package on its way. Nothing of it is kept once it is dropped.
#[derive(Debug)]
pub(crate) struct KernelUpload {
    name: KernelName,
    digest: Digest,
    size: u64,
    staged: Staged,
    digester: Digester,
    length: u64,
}

impl Engine {
    /// A package is announced.
    pub(crate) async fn begin_kernel(
        &self,
        name: KernelName,
        digest: Digest,
        size: u64,
    ) -> Result<KernelUpload, EngineError> {
        if size > MAX_PACKAGE {
            let problem = format!("the package has {size} bytes, at most {MAX_PACKAGE} are taken");
            return Err(EngineError::field("start.size", problem));
        }
        if let Some(known) = found(self.store.kernel(&name).await)?
            && known.offer.digest != digest
        {
            return Err(taken(&name, &known.offer.digest));
        }
        let key = UploadKey::parse(&format!("kernel.{}", self.ids.next()))?;
        let staged = Staged::new(self.store.objects(), key, self.shutdown());
        Ok(KernelUpload {
            name,
            digest,
            size,
            staged,
            digester: Digester::new(),
            length: 0,
        })
    }

    /// Bytes of a package arrived.
    pub(crate) async fn append_kernel(
        &self,
        upload: &mut KernelUpload,
        bytes: Bytes,
    ) -> Result<(), EngineError> {
        if upload.length + bytes.len() as u64 > upload.size {
            return Err(mismatch(upload, "more bytes arrived"));
        }
        upload.digester.update(&bytes);
        upload.length = self
            .store
            .objects()
            .append(upload.staged.key(), upload.length, bytes)
            .await?;
        Ok(())
    }

    /// The whole package arrived.
    pub(crate) async fn finish_kernel(&self, upload: &KernelUpload) -> Result<Kernel, EngineError> {
        if upload.length < upload.size {
            let what = format!("only {} bytes arrived", upload.length);
            return Err(mismatch(upload, &what));
        }
        if upload.digester.finish() != upload.digest {
            return Err(mismatch(upload, "other bytes arrived"));
        }
        // Read while it is still staged: what is no kernel never becomes an object.
        let key = upload.staged.key();
        let offer = self.verify_staged(key).await?;
        let objects = self.store.objects();
        objects.commit(key, &upload.digest, upload.size).await?;
        let kernel = Kernel {
            name: upload.name.clone(),
            offer,
            added_at: self.now(),
        };
        match self.store.add_kernel(&kernel).await {
            Err(StoreError::AlreadyExists {
                existing: Some(existing),
                ..
            }) => Err(taken(&upload.name, &existing)),
            result => Ok(result?),
        }
    }

    /// What a staged package is, by its content. One at a time: each takes memory for a
    /// boot image and the kernel inside.
    async fn verify_staged(&self, key: &UploadKey) -> Result<KernelOffer, EngineError> {
        let path = self.folder.join("uploads").join(key.as_str());
        let alone = Arc::clone(&self.verifying).lock_owned().await;
        let verified = tokio::task::spawn_blocking(move || {
            // Held by the work itself, which goes on when its caller goes away.
            let _alone = alone;
            let file = File::open(&path).map_err(|error| unread(&error))?;
            verify_canonical(file, &Limits::default()).map_err(not_believed)
        });
        verified.await.unwrap_or_else(|error| Err(unread(&error)))
    }
}

impl KernelUpload {
    /// Throws away what is staged; no error if it is an object by now.
    pub(crate) async fn discard(self) {
        self.staged.discard().await;
    }
}

const MEND: &str = "`klab kernel add NAME PATH` makes packages as they are taken";

/// One violation for each claim that is wrong.
fn not_believed(error: VerifyError) -> EngineError {
    match error {
        VerifyError::Manifest { differences } => EngineError::BadRequest(
            differences
                .into_iter()
                .map(|wrong| {
                    let field = format!("manifest.{}", wrong.field);
                    (field, format!("{wrong}; {MEND}"))
                })
                .collect(),
        ),
        other => EngineError::field("data", format!("{}; {MEND}", with_causes(&other))),
    }
}

fn unread(error: &dyn std::error::Error) -> EngineError {
    EngineError::refused(
        Reason::Internal,
        format!("reading the kernel package failed: {}", with_causes(error)),
    )
}

fn taken(name: &KernelName, existing: &Digest) -> EngineError {
    EngineError::refused(
        Reason::AlreadyExists,
        format!(
            "kernel {name} exists already with digest {existing}: a kernel never changes, add \
             this one under another name"
        ),
    )
}

fn mismatch(upload: &KernelUpload, what: &str) -> EngineError {
    EngineError::refused(
        Reason::DigestMismatch,
        format!(
            "kernel {} was announced with digest {} and {} bytes, but {what}: it was thrown \
             away, send it again from the start",
            upload.name, upload.digest, upload.size
        ),
    )
}
