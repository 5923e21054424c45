//! From a variant to a kernel.
//!
//! ```text
//! Trees            bare mirrors by name, fetched from paths and URLs
//! Tree::apply      base commit + mails of patches -> a commit for every prefix of the series
//! ```
//!
//! git, make and the compilers are called as programs, without a shell, each in a process group
//! of its own. Calls block; a [`Watcher`] takes the events, and its [`Cancel`] token ends the
//! whole group from any thread.

mod apply;
mod cancel;
mod error;
mod event;
mod files;
mod git;
mod lock;
mod process;
mod refusal;
mod source;
mod trees;

pub use apply::{Applied, RawPatch};
pub use cancel::Cancel;
pub use error::BuildError;
pub use event::{BuildEvent, Progress, Stage, TotalFrom, Watcher};
pub use git::{Commit, ObjectId};
pub use refusal::{Refusal, RefusalKind};
pub use source::TreeSource;
pub use trees::{Tree, Trees};
