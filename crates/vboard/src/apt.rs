//! Debian packages through the host's own apt configuration.
//!
//! The package sources are those of the host, read from its apt files; no server is named here.
//! The system's installed set and its lists are never changed: where they do not serve, a private
//! apt state in the work folder is used.

mod kernel;
mod sources;

pub use kernel::fetch_debian_kernel;
pub use sources::{AptSource, parse_deb822, parse_one_line, render, retarget};

pub(crate) use sources::{host_sources, sources_file};
