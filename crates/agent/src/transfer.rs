//! Kernels down, artifacts up: both continue where they were cut off.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use klab_model::{Digest, Order, OrderKernel};
use klab_proto::v1::upload_artifact_request::Part;
use klab_proto::{attempt_ref, chunks, v1};
use thiserror::Error;

use crate::link::{Link, LinkError};
use crate::spool::{Spool, SpoolFile};

/// A transfer that did not come to its end.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The network or the controller; trying again continues.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The board's disk.
    #[error("{0}")]
    Disk(#[from] std::io::Error),
    /// What arrived is not what was announced.
    #[error("the kernel package arrived damaged (digest differs); it will be fetched anew")]
    Damaged,
}

impl From<tonic::Status> for TransferError {
    fn from(status: tonic::Status) -> Self {
        TransferError::Link(status.into())
    }
}

/// Fetches a kernel package to `path`. A part that is there already is kept.
///
/// # Errors
/// [`TransferError`]; after [`TransferError::Damaged`] the file is gone.
pub async fn fetch_kernel(
    link: &mut Link,
    kernel: &OrderKernel,
    path: &Path,
) -> Result<(), TransferError> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let have = file.metadata()?.len();
    if have < kernel.size {
        let digest = kernel.digest.as_bytes().to_vec().into();
        let request = v1::FetchKernelRequest {
            digest,
            offset: have,
        };
        let mut stream = link.client().fetch_kernel(request).await?.into_inner();
        while let Some(chunk) = stream.message().await? {
            file.write_all(&chunk.data)?;
        }
        file.sync_all()?;
    }
    let (digest, size) = Digest::of_reader(std::fs::File::open(path)?)?;
    if (digest, size) == (kernel.digest, kernel.size) {
        return Ok(());
    }
    if size < kernel.size {
        return Err(LinkError::Closed.into());
    }
    std::fs::remove_file(path)?;
    Err(TransferError::Damaged)
}

/// Sends one file of the spool; what the controller has already is not sent again.
///
/// # Errors
/// [`TransferError`]; trying again continues.
pub async fn upload(
    link: &mut Link,
    order: &Order,
    spool: &Spool,
    file: &SpoolFile,
) -> Result<(), TransferError> {
    let key = v1::UploadKey {
        attempt: Some(attempt_ref(order.run, order.attempt, order.fence)),
        trial: file.trial.map(|trial| trial.0),
        name: file.name.to_string(),
        kind: file.kind.to_string(),
        digest: file.digest.as_bytes().to_vec().into(),
        size: file.size,
    };
    let stat = v1::StatUploadRequest {
        key: Some(key.clone()),
    };
    let stat = link.client().stat_upload(stat).await?.into_inner();
    if stat.complete {
        return Ok(());
    }
    let mut bytes = std::fs::File::open(spool.path(file))?;
    bytes.seek(SeekFrom::Start(stat.committed))?;
    let start = v1::UploadStart {
        key: Some(key),
        offset: stat.committed,
    };
    let parts = std::iter::once(Part::Start(start)).chain(chunks(bytes).map(Part::Data));
    let requests = parts.map(|part| v1::UploadArtifactRequest { part: Some(part) });
    let response = link
        .client()
        .upload_artifact(tokio_stream::iter(requests))
        .await?;
    if response.into_inner().complete {
        Ok(())
    } else {
        Err(LinkError::Closed.into())
    }
}
