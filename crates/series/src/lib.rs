//! Patch series: mails, folders and git ranges become one ordered list of patches.
//!
//! ```text
//! mbox | .gz | maildir | folder | .patch | stdin | git range        source, mbox, range
//!      -> mails: headers, text in two readings, role                mail, body, classify
//!      -> one series: revision chosen, ordered by n/m, complete     candidate, builder
//!      -> its base: named, or guessed from blob ids in a tree       base, git
//!      -> its variants: base, +1, +1..2, v2                         variants
//! ```
//!
//! [`read`] does the first three steps; [`find_base`] and [`VariantsSpec`] the others, and
//! [`Summary`] is what people are shown. A patch is kept as the mail it came in, byte for
//! byte ([`Patch::raw`]): `git am` applies it, this crate never does. The diff is parsed
//! to refuse early what would not apply or must not: damaged hunks, missing patches, paths
//! that leave the tree.
//!
//! All input counts as hostile: sizes have limits ([`limits`]), nothing makes this crate
//! panic, and control characters never reach a terminal ([`defuse`]).

mod assemble;
mod base;
mod body;
mod builder;
mod candidate;
mod classify;
mod diff;
mod display;
mod error;
mod flowed;
mod git;
pub mod limits;
mod mail;
mod mbox;
mod message;
mod path;
mod place;
mod range;
mod series;
mod source;
mod subject;
mod summary;
mod symlink;
mod thread;
mod trailer;
mod variants;
mod warning;

pub use base::{Base, BaseFinding, find_base};
pub use diff::{BlobId, ChangeKind, FileChange, Mode, PatchProblem};
pub use display::{defuse, defuse_json, defuse_lines};
pub use error::{SeriesChoice, SeriesError};
pub use git::GitError;
pub use mail::Person;
pub use mbox::write_mbox;
pub use path::{PatchPath, PathProblem};
pub use place::Place;
pub use series::{Cover, Dependencies, Patch, Series};
pub use source::{GitRange, Options, Source, read, read_bytes};
pub use subject::{Lead, Position, Subject};
pub use summary::{BaseSummary, FileSummary, PatchSummary, Summary, TrailerSummary};
pub use trailer::Trailer;
pub use variants::{Side, Variant, VariantKernel, VariantsError, VariantsSpec};
pub use warning::Warning;
