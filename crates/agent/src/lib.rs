//! The agent of a board.
//!
//! ```text
//! order -> fetch -> install -> boot once -> prove -> trials (quiet) -> collect -> restore
//! ```
//!
//! [`journal`] is the memory: every fact is on disk before it is acted on. [`attempt`] folds
//! it and answers, with one pure function, what comes next; [`driver`] does that. [`link`] is
//! the session with the controller, [`transfer`] moves kernels and artifacts, [`spool`] holds
//! what was measured until the controller has it, [`trial`] runs one workload.
//!
//! [`builder`] is the agent's other role, on another machine: it builds kernels.
//!
//! The agent never reads a result and never measures a kernel that was not proved to run.

pub mod attempt;
pub mod builder;
pub mod config;
pub mod driver;
pub mod error;
pub mod hello;
pub mod journal;
pub mod link;
pub mod outside;
pub mod packages;
mod socket;
pub mod spool;
pub mod transfer;
pub mod trial;

pub use builder::{Builder, BuilderConfig};
pub use config::Config;
pub use driver::Agent;
pub use error::AgentError;
pub use outside::Outside;
