//! Comparisons to text, JSON and Markdown; renders only.
//!
//! A [`Report`] holds everything that is said about a job: the comparison, the kernels
//! and how they were recognised, the boards, what else differed between the variants,
//! what the agent cost, and the worst trials with their traces. Whoever holds the data
//! fills it in; nothing is computed here.
//!
//! - [`text`]: the layout of `compare-mmtests.pl`, to be pasted into a cover letter;
//! - [`markdown`]: the same for web pages;
//! - [`json`]: the report itself under the stable schema `klab.report/v1`.
//!
//! All of them count rounds and trials from 1, as the command line does.
//!
//! [`Table`] writes plain aligned columns for lists of any kind.

mod counting;
mod footer;
mod grid;
mod header;
mod json;
mod markdown;
mod number;
mod report;
mod table;
mod text;

pub use json::json;
pub use markdown::markdown;
pub use report::{BoardLine, KernelLine, ParserVersion, Report, Schema, TraceEvidence, WorstTrace};
pub use table::Table;
pub use text::text;
