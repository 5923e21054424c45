//! The controller: gRPC services over the store, leases, ingest.
//!
//! A [`Controller`] opens its store and serves `klab.v1` to users and agents on one
//! address. Inside, `services` turn messages into model values and back, and `engine`
//! reads state, lets the state machines of `klab-model` decide, saves what they said in one
//! transaction, and asks the scheduler after every change.
//!
//! ```text
//! users  --JobService, BoardService, KernelService, ArtifactService, ReportService--+
//! agents --AgentService (one stream per board)--------------------------------------+-> engine
//!                                                          store <-- transitions <--+
//! ```
//!
//! Clock and ids are handed in ([`Seams`]). Until connections prove who they are, the
//! controller listens on loopback only. It never runs a workload, boots a kernel or talks
//! to a terminal.

mod engine;
mod error;
mod server;
mod services;

pub use error::ControllerError;
pub use server::{Controller, ControllerConfig, Seams};
