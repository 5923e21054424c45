//! Trace text of the kernel's latency tracers to values.
//!
//! [`read`] takes the bytes of a `trace` file written by `wakeup_rt`, `wakeup`,
//! `wakeup_dl`, `irqsoff`, `preemptoff` or `preemptirqsoff` and answers with a
//! [`Reading`]: a [`LatencyTrace`], or the statement that nothing was recorded, or
//! that the file comes from another kind of tracer.
//!
//! The layout is learned from the header block of the file, never from a kernel
//! version: the legend says which flag columns follow the CPU number, and that
//! differs between mainline, PREEMPT_RT and releases.
//!
//! ```
//! # let text = include_bytes!("../tests/data/madvise-riscv64-6.5-rt6-before.txt");
//! let klab_ftrace::Reading::Latency(trace) = klab_ftrace::read(text)? else { panic!() };
//! assert_eq!(trace.latency_us(), 2552);
//! assert_eq!(trace.culprit(), Some("madvise_cold_or_pageout_pte_range"));
//! # Ok::<(), klab_ftrace::ReadError>(())
//! ```

mod error;
mod event;
mod flags;
mod header;
mod latency;
mod reader;
mod stack;

pub use error::{Problem, ReadError};
pub use event::{Event, EventKind, Mark, TaskState, Transition};
pub use flags::{FlagColumn, Flags};
pub use header::{Header, PreemptModel, Task};
pub use latency::{EmptyReason, LatencyTrace, Note, Reading};
pub use reader::read;
pub use stack::{Frame, Role};
