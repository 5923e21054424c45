//! Runs one trial and disturbs it as little as possible.
//!
//! ```text
//! Trial::prepare   folder, cgroups, facts, tracer set up and off          the agent may talk
//! Prepared::run    loads, lead, tracer on, workload, poll() on pidfds     silence
//!                  tracer off, loads ended, trace read, tracer undone
//! Finished         failure, duration, perturbation, facts, files          the agent may talk
//! ```
//!
//! While the workload runs, the calling thread sleeps in one `poll()` over pidfds with the
//! time limit as its timeout: no timer, no other wake-up. What the agent cost meanwhile is
//! measured and part of the result. The caller keeps its other threads asleep.
//!
//! Children run in process groups of their own and, where cgroups v2 can be written, in
//! cgroups of their own, so that nothing outlives its trial: [`clean_up`] removes what an agent
//! that died left behind. [`exec_child`] is the other end of the wrapper that puts a child into
//! its cgroup and takes the agent's protection off it before the workload is executed.
//!
//! Nothing here reads results: files go on as they are.

mod cgroup;
mod child;
mod clean;
mod collect;
mod error;
mod facts;
mod finished;
mod group;
mod host;
mod judge;
mod kernel_log;
mod perturb;
mod preflight;
mod protect;
mod run;
mod sysfs;
mod tracer;
mod trial;

pub use cgroup::Cgroups;
pub use child::{WRAPPER_FAILED, exec_child};
pub use clean::{CleanedUp, clean_up};
pub use collect::ProducedFile;
pub use error::MeasureError;
pub use facts::{board_facts, kernel_config, trial_facts};
pub use finished::{CommandEnd, Finished};
pub use host::Host;
pub use kernel_log::kernel_log;
pub use preflight::{MissingTool, TracerState, find_program, preflight, tracer_state};
pub use protect::protect_self;
pub use run::Prepared;
pub use tracer::TraceCapture;
pub use trial::Trial;
