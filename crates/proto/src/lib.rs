//! The gRPC API of klab, package `klab.v1`.
//!
//! [`v1`] holds the generated messages, clients (feature `client`) and servers (feature
//! `server`). The modules beside it turn messages into model values and back:
//! `v1::Order` from outside becomes a [`klab_model::Order`] with `TryFrom`, or a
//! [`ConvertError`] that names the field. Nothing behind this crate handles an unchecked
//! message.
//!
//! [`status`] is the one place that decides which gRPC status an error becomes.

mod convert;
mod error;
pub mod status;

/// Generated from `proto/klab/v1/*.proto`; the comments there are the documentation.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("klab.v1");
}

pub use convert::{
    arch_of, attempt_ref, board_slot, duration, duration_of, kernel_message, span_of, tags_of,
};
pub use error::ConvertError;

/// The encoded `FileDescriptorSet` of the API, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/klab_descriptor.bin"));

/// Bytes of one chunk of a kernel, an artifact or a console; far below the decode limit
/// of 4 MiB, so that no file delays a heartbeat for long.
pub const CHUNK: usize = 512 * 1024;

/// What is left of `reader`, in pieces of at most [`CHUNK`] bytes.
///
/// A read error ends it early: the receiver then has less than was announced, says so, and
/// the transfer is continued or refused there.
pub fn chunks(mut reader: impl std::io::Read + Send) -> impl Iterator<Item = bytes::Bytes> + Send {
    std::iter::from_fn(move || {
        let mut buffer = vec![0; CHUNK];
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(read) => {
                buffer.truncate(read);
                Some(buffer.into())
            }
        }
    })
}
