//! The gRPC services: messages to model values, a call to the engine, the answer back.

mod agent;
mod artifacts;
mod boards;
mod builders;
mod builds;
mod jobs;
mod kernels;
mod reports;
mod trees;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use klab_model::{Digest, JobId};
use klab_proto::status::bad_request;
use klab_proto::{CHUNK, ConvertError};
use klab_store::{PageRequest, StoreError};
use tonic::{Status, Streaming};

pub(crate) use agent::Agents;
pub(crate) use artifacts::Artifacts;
pub(crate) use boards::Boards;
pub(crate) use builders::Builders;
pub(crate) use builds::Builds;
pub(crate) use jobs::Jobs;
pub(crate) use kernels::Kernels;
pub(crate) use reports::Reports;
pub(crate) use trees::Trees;

use crate::engine::{Engine, store_status};

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

const DEFAULT_PAGE: u32 = 100;

/// The part of a list that a request asks for.
fn page(size: u32, token: String) -> PageRequest {
    PageRequest {
        after: (!token.is_empty()).then_some(token),
        size: if size == 0 { DEFAULT_PAGE } else { size },
    }
}

/// Cuts a page out of a whole list; the token is the number of items before it.
fn slice<T>(items: Vec<T>, page: &PageRequest) -> Result<(Vec<T>, String), Status> {
    let from = match &page.after {
        None => 0,
        Some(token) => token.parse::<usize>().map_err(|_| {
            let found = token.clone();
            store_status(&StoreError::BadPageToken { found })
        })?,
    };
    let size = page.size.clamp(1, PageRequest::MAX_SIZE) as usize;
    let all = items.len();
    let end = from.saturating_add(size);
    let items = items.into_iter().skip(from).take(size).collect();
    let next = if end < all {
        end.to_string()
    } else {
        String::new()
    };
    Ok((items, next))
}

fn job_id(field: &str, text: &str) -> Result<JobId, Status> {
    text.parse().map_err(|_| {
        wrong(
            field,
            format!("{text:?} is no job id; `klab jobs` lists them"),
        )
    })
}

fn wrong(field: impl Into<String>, problem: impl ToString) -> Status {
    bad_request(vec![(field.into(), problem.to_string())])
}

fn inside(field: &'static str) -> impl Fn(ConvertError) -> Status {
    move |error| error.inside(field).into()
}

/// The bytes of an object from an offset on, in pieces that delay nothing else for long.
async fn object(
    engine: &Arc<Engine>,
    digest: &Digest,
    offset: u64,
) -> Result<impl Stream<Item = Result<Bytes, Status>> + Send + use<>, Status> {
    let read = engine
        .store()
        .objects()
        .read(digest, offset)
        .await
        .map_err(|error| store_status(&error))?;
    Ok(read
        .stream
        .map_err(|error| store_status(&error))
        .map_ok(|piece| stream::iter(pieces(piece).map(Ok)))
        .try_flatten())
}

fn pieces(mut bytes: Bytes) -> impl Iterator<Item = Bytes> + Send {
    std::iter::from_fn(move || {
        let length = bytes.len().min(CHUNK);
        (length > 0).then(|| bytes.split_to(length))
    })
}

/// Reads a request stream to its end, so that the client sees our refusal and not a
/// broken connection.
async fn drain<T>(stream: &mut Streaming<T>) {
    while let Some(Ok(_)) = stream.next().await {}
}
