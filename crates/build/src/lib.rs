//! From a variant to a kernel.
//!
//! ```text
//! Trees            bare mirrors by name, fetched from paths and URLs
//! Tree::apply      base commit + mails of patches -> a commit for every prefix of the series
//! ConfigRequest    a base and fragments over it
//! Builder::build   commit + configuration -> key -> the canonical package, built or kept
//! ```
//!
//! git, make and the compilers are called as programs, without a shell, each in a process group
//! of its own. Calls block; a [`Watcher`] takes the events, and its [`Cancel`] token ends the
//! whole group from any thread.

mod apply;
mod builder;
mod cache;
mod cancel;
pub mod config;
mod diagnosis;
mod error;
mod event;
mod files;
mod folder;
mod git;
mod key;
mod lane;
mod lock;
mod make;
mod orphans;
mod pack;
mod process;
mod progress;
mod refusal;
mod source;
mod target;
mod toolchain;
mod tools;
mod trees;

pub use apply::{Applied, RawPatch};
pub use builder::{BuildOptions, BuildRequest, Builder, Built};
pub use cache::{CachedKernel, KernelCache};
pub use cancel::Cancel;
pub use config::{BaseConfig, ConfigRequest, Fragment, Untaken};
pub use diagnosis::{Complaint, FirstError};
pub use error::BuildError;
pub use event::{BuildEvent, Progress, Stage, TotalFrom, Watcher};
pub use git::Commit;
pub use key::BuildKey;
pub use klab_model::ObjectId;
pub use lane::LaneName;
pub use make::Priority;
pub use refusal::{Refusal, RefusalKind};
pub use source::TreeSource;
pub use toolchain::{ToolVersions, Toolchain};
pub use tools::MissingTool;
pub use trees::{Tree, Trees};
