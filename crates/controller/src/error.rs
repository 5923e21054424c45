//! Why a controller does not start or stops.

use std::io;
use std::net::SocketAddr;

use klab_store::StoreError;
use thiserror::Error;

/// An error of the controller as a whole; errors of single calls are gRPC statuses.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// The address can be reached from other machines.
    #[error(
        "refusing to listen on {address}: there is no mutual TLS yet, so anybody who could \
         connect could boot kernels on the boards; listen on 127.0.0.1 or [::1], and bring \
         boards and users of other machines in through an SSH tunnel \
         (ssh -L 7700:127.0.0.1:7700 HOST)"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("failed to listen on {address}; is another controller running there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened or used.
    #[error("failed to use the store of the controller")]
    Store(#[from] StoreError),
    /// What is in the store does not fit together.
    #[error("failed to take the runs of the store over: {0}")]
    Start(String),
    /// The server failed.
    #[error("failed to serve")]
    Serve(#[from] tonic::transport::Error),
    /// The descriptors for reflection are broken.
    #[error("failed to offer reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}
