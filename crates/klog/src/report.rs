//! One report of a kernel.

use serde::Serialize;

use crate::Kind;

/// Lines that are quoted of a report.
pub(crate) const QUOTED: usize = 4;

/// Something that a kernel reported about itself or its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Its kind.
    pub kind: Kind,
    /// The same for the same fault in any boot: without addresses, CPUs, pids and times.
    pub title: String,
    /// The kernel function it happened in, if it is told.
    pub function: Option<String>,
    /// The line it begins at, counted from 1.
    pub first_line: u64,
    /// The last line that belongs to it.
    pub last_line: u64,
    /// Its first messages, without prefixes.
    pub quote: Vec<String>,
    /// How often it came in this boot.
    pub count: u64,
}
