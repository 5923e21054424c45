//! A whole latency trace and what can be concluded from it.

use crate::{Event, EventKind, FlagColumn, Frame, Header, Role, Task};

/// What a trace file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A latency was recorded.
    Latency(Box<LatencyTrace>),
    /// The file is well formed, but nothing was recorded.
    Empty {
        /// Name of the tracer.
        tracer: String,
        /// Why there is nothing.
        reason: EmptyReason,
    },
    /// The file has events, but no latency: it comes from another kind of tracer.
    NotLatency {
        /// Name of the tracer.
        tracer: String,
    },
}

/// Why a trace holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmptyReason {
    /// The tracer was `nop`: none was chosen, or it was reset before the file was read.
    NoTracer,
    /// The tracer never saw what it waits for.
    NothingRecorded,
    /// The header says `latency: 0 us` and no event follows.
    ZeroLatency,
}

/// What a reader of the trace should know about its completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Note {
    /// The ring buffer ran over: the oldest `written - entries` events are gone.
    Overrun {
        /// Events that were kept.
        entries: u64,
        /// Events written in all.
        written: u64,
    },
    /// The text has fewer events than its header announces: it was cut.
    CutShort {
        /// Events that the header announces.
        announced: u64,
        /// Events found.
        found: u64,
    },
    /// The last line has no end: the text was cut.
    OpenLine,
    /// The kernel lost events of this CPU here; the number is not always known.
    Lost {
        /// The CPU.
        cpu: u32,
        /// How many.
        count: Option<u64>,
    },
    /// Events of this CPU begin here, later than those of others.
    BufferStarted {
        /// The CPU.
        cpu: u32,
    },
}

/// The trace of the largest latency that a tracer saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyTrace {
    /// The header block.
    pub header: Header,
    /// Meaning of the flag columns, in order.
    pub columns: Vec<FlagColumn>,
    /// The events, in the order of the text.
    pub events: Vec<Event>,
    /// What is known about missing parts.
    pub notes: Vec<Note>,
}

impl LatencyTrace {
    /// The latency in microseconds, from the header.
    #[must_use]
    pub fn latency_us(&self) -> u64 {
        self.header.latency_us
    }

    /// The task that waited (wakeup tracers) or ran (the others).
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.header.task
    }

    /// Whether the text itself was cut. Events that the ring buffer dropped do not
    /// count: the file is still all that the kernel had.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.notes
            .iter()
            .any(|note| matches!(note, Note::CutShort { .. } | Note::OpenLine))
    }

    /// The character of `event` in `column`, if the header has that column.
    #[must_use]
    pub fn flag(&self, event: &Event, column: &FlagColumn) -> Option<char> {
        let index = self.columns.iter().position(|c| c == column)?;
        event.flags.at(index)
    }

    /// The stack that shows who held the CPU at the end: the one recorded at the
    /// switch for wakeup tracers, the last one for the others.
    #[must_use]
    pub fn final_stack(&self) -> Option<&[Frame]> {
        let from = if self.header.tracer.starts_with("wakeup") {
            self.events
                .iter()
                .rposition(|e| matches!(e.kind, EventKind::Switch(_)))?
        } else {
            0
        };
        self.events[from..]
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                EventKind::Stack(frames) if !frames.is_empty() => Some(frames.as_slice()),
                _ => None,
            })
    }

    /// The function that kept the CPU: the innermost one of the final stack that does
    /// not belong to tracing, scheduling, unlocking, or the way into and out of the
    /// kernel. `None` without a stack, or if user space ran to the end.
    #[must_use]
    pub fn culprit(&self) -> Option<&str> {
        let frames = self.final_stack()?;
        let holder = frames.iter().find(|frame| frame.role() == Role::Work)?;
        Some(&holder.function)
    }
}
