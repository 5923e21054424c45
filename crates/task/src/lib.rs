//! Tasks, time, ids and randomness: what a program takes from its surroundings.
//!
//! Everything that a program would take from the air comes in through a trait here, so
//! that a test or a simulation can decide what it is:
//!
//! * [`Clock`] — what time it is, and waiting for a time. [`SystemClock`] is the real one,
//!   [`ManualClock`] stands still until it is moved.
//! * [`Ids`] — new version-7 UUIDs. [`SystemIds`] is the real source.
//! * [`Backoff`] — how long to wait before the next try; the random number is handed in.
//! * [`Shutdown`] — named tasks that are told to stop together and waited for.
//!
//! This crate knows no other klab crate.

mod backoff;
mod clock;
mod ids;
mod shutdown;

pub use backoff::{Backoff, system_random};
pub use clock::{Clock, ManualClock, SystemClock, Wait};
pub use ids::{Ids, SystemIds};
pub use shutdown::Shutdown;
pub use tokio_util::sync::CancellationToken;
