//! Kernel logs: what happened in each boot.
//!
//! ```text
//! bytes -> lines (bounded) -> messages (no colours, no prefixes) -> boots -> reports, verdict
//! ```
//!
//! [`read`] takes a serial console, the output of dmesg, a journal or a pstore dump and tells
//! which boots are in it, how each of them ended ([`Verdict`]) and what the kernel reported
//! ([`Report`]: panics, oopses, warnings, lockups, stalls, lockdep, sanitizers, file systems).
//! Colour codes, missing time stamps, lines that were cut or run together and bytes that are no
//! text are expected. Memory does not grow with the input beyond [`MOST_BOOTS`] boots and
//! [`MOST_REPORTS`] reports; time grows with its length.
//!
//! ```
//! let log = b"[    0.000000] Linux version 6.12.0 (me@here) #1\n\
//!             [    1.000000] Kernel panic - not syncing: VFS: Unable to mount root fs\n";
//! let log = klab_klog::read(&log[..]).expect("memory can be read");
//! assert_eq!(log.verdict, klab_klog::Verdict::Panicked);
//! assert_eq!(log.boots[0].reports[0].first_line, 2);
//! ```

/// Goes up whenever the same log gives other reports.
pub const VERSION: u32 = 1;

mod boot;
mod kind;
mod lines;
mod message;
mod recogniser;
mod report;
mod rules;
mod title;

pub use boot::{Boot, LogReport, Verdict};
pub use kind::{Blame, Kind, UnknownKind};
pub use lines::read;
pub use recogniser::{MOST_BOOTS, MOST_REPORTS, Recogniser};
pub use report::Report;
