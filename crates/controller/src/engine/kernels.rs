//! New kernels: staged, checked, read, added; or nothing of it.

use std::fs::File;
use std::path::PathBuf;

use bytes::Bytes;
use klab_kernel::Manifest;
use klab_model::{Digest, Digester, Kernel, KernelName, KernelOffer};
use klab_proto::status::Reason;
use klab_store::{StoreError, UploadKey};

use super::error::with_causes;
use super::{Engine, EngineError, found};

/// The largest kernel package that is taken, in bytes.
const MAX_PACKAGE: u64 = 4 << 30;

/// A kernel package on its way.
#[derive(Debug)]
pub(crate) struct KernelUpload {
    name: KernelName,
    digest: Digest,
    size: u64,
    key: UploadKey,
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
        Ok(KernelUpload {
            name,
            digest,
            size,
            key,
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
            .append(&upload.key, upload.length, bytes)
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
        let manifest = self.read_staged(&upload.key).await?;
        let objects = self.store.objects();
        objects
            .commit(&upload.key, &upload.digest, upload.size)
            .await?;
        let kernel = Kernel {
            name: upload.name.clone(),
            offer: KernelOffer {
                digest: upload.digest,
                size: upload.size,
                arch: manifest.arch,
                release: manifest.release.to_string(),
                build_id: manifest.build_id,
                image_digest: manifest.image_digest,
            },
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

    /// Nothing of a refused package is kept.
    pub(crate) async fn discard_kernel(&self, upload: &KernelUpload) {
        if let Err(error) = self.store.objects().discard(&upload.key).await {
            tracing::warn!(%error, "failed to throw a refused kernel away");
        }
    }

    async fn read_staged(&self, key: &UploadKey) -> Result<Manifest, EngineError> {
        let path: PathBuf = self.folder.join("uploads").join(key.as_str());
        let read = tokio::task::spawn_blocking(move || {
            let file = File::open(&path).map_err(|error| error.to_string())?;
            klab_kernel::read_canonical(file).map_err(|error| with_causes(&error))
        });
        match read.await {
            Ok(Ok(manifest)) => Ok(manifest),
            Ok(Err(problem)) => Err(EngineError::field(
                "data",
                format!("{problem}; `klab kernel add NAME PATH` makes packages as they are taken"),
            )),
            Err(error) => Err(EngineError::refused(
                Reason::Internal,
                format!("reading the kernel package failed: {error}"),
            )),
        }
    }
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
