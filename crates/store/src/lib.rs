//! Rows in SQLite or PostgreSQL through one SQL text, objects by digest.
//!
//! The store keeps what the lab knows and decides nothing: transitions are made by the
//! state machines of `klab-model`, and [`Store::transition`] saves what they returned, all
//! of it or nothing. Whoever read a run or a board gets its [`Version`] along; a change
//! names that version and is refused as [`StoreError::Conflict`] when somebody was faster.
//! The caller then reads again and decides again.
//!
//! * [`Store`] — rows: kernels, boards and their configurations, jobs and runs, attempts, agent events, the feed of
//!   a job, trials, artifacts, samples, reports of kernels, trees and builds.
//! * [`Objects`] — bytes named by their BLAKE3 digest, and the uploads on their way there.
//! * [`sql::ALL`] — every statement; the same text runs on both engines.
//!
//! Events of agents arrive at least once and are recorded exactly once: the event, what it
//! changed and what it adds to the feed are one transaction ([`Store::record_agent_event`]).
//!
//! The clock and new ids always come from the caller. This crate knows nothing of gRPC,
//! the scheduler, or the formats inside artifacts.

mod artifacts;
mod attempts;
mod board_configs;
mod boards;
mod builds;
mod error;
mod feed;
mod files;
mod jobs;
mod kernel_reports;
mod kernels;
mod objects;
mod open;
mod page;
mod row;
mod samples;
pub mod sql;
mod transition;
mod trees;
mod upload;

pub use artifacts::AddedArtifact;
pub use attempts::{Attempt, TrialRecord};
pub use board_configs::BoardConfig;
pub use builds::{BuildRecord, BuildTransition};
pub use error::StoreError;
pub use feed::NewEvent;
pub use jobs::JobRecord;
pub use kernel_reports::{KernelReport, KernelReportRecord};
pub use objects::{ObjectRead, Objects};
pub use open::{Database, Store, StoreLocation};
pub use page::{Page, PageRequest};
pub use row::{Version, Versioned};
pub use samples::{ParseProblem, ParserId, SampleRecord};
pub use transition::{Applied, Recorded, Transition};
pub use upload::{Committed, PendingUpload, UploadKey};
