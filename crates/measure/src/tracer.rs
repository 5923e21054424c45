//! The tracer of one trial in tracefs: set up and off, on, off, read, undone.
//!
//! Files and their meaning: `Documentation/trace/ftrace.rst`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use klab_model::TracePlan;
use serde::{Deserialize, Serialize};

use crate::{MeasureError, sysfs};

/// What a tracer recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCapture {
    /// The tracer.
    pub tracer: String,
    /// `tracing_max_latency` in microseconds, for latency tracers.
    pub max_latency_us: Option<u64>,
    /// Events that were overwritten, over all CPUs.
    pub overrun: u64,
    /// Events that were dropped, over all CPUs.
    pub dropped: u64,
    /// Size of the kept trace in bytes.
    pub bytes: u64,
    /// Whether the trace was longer than the cap.
    pub cut: bool,
}

impl TraceCapture {
    /// What makes the trace less than whole, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.cut {
            notes.push(format!("the trace is cut after {} MiB", self.bytes >> 20));
        }
        if self.overrun + self.dropped > 0 {
            notes.push(format!(
                "the trace is partial: {} events overwritten, {} dropped; give it a larger buffer",
                self.overrun, self.dropped
            ));
        }
        notes
    }
}

/// A tracer that is set up. Dropping it puts everything back.
#[derive(Debug)]
pub(crate) struct Tracer {
    tracefs: PathBuf,
    name: String,
    /// Values to put back, last one first.
    undo: Vec<(PathBuf, String)>,
}

impl Tracer {
    /// Sets the tracer up with recording off.
    pub(crate) fn set_up(tracefs: &Path, plan: &TracePlan) -> Result<Self, MeasureError> {
        let mut tracer = Self {
            tracefs: tracefs.to_owned(),
            name: plan.tracer.clone(),
            undo: Vec::new(),
        };
        tracer.set("tracing_on", "0")?;
        // Options and sizes may be refused while a tracer runs.
        tracer.write("current_tracer", "nop")?;
        tracer.set("buffer_size_kb", &plan.buffer_kib.to_string())?;
        let function_trace = if plan.function_trace { "1" } else { "0" };
        // Absent in kernels without the function tracer.
        if tracer.has("options/function-trace") {
            tracer.set("options/function-trace", function_trace)?;
        }
        tracer.write("current_tracer", &plan.tracer)?;
        // Absent in kernels without latency tracers.
        if tracer.has("tracing_max_latency") {
            tracer.write("tracing_max_latency", "0")?;
        }
        tracer.write("trace", "")?;
        Ok(tracer)
    }

    /// Starts recording.
    pub(crate) fn on(&self) -> Result<(), MeasureError> {
        self.write("tracing_on", "1")
    }

    /// Stops recording.
    pub(crate) fn off(&self) -> Result<(), MeasureError> {
        self.write("tracing_on", "0")
    }

    /// Copies the trace into `out`, at most `cap` bytes of it.
    pub(crate) fn capture(&self, out: &Path, cap: u64) -> Result<TraceCapture, MeasureError> {
        let path = self.tracefs.join("trace");
        let source = File::open(&path).map_err(MeasureError::io("read", &path))?;
        let (bytes, cut) = copy_capped(source, out, cap).map_err(MeasureError::io("write", out))?;
        let (mut overrun, mut dropped) = (0, 0);
        for cpu in sysfs::entries(&self.tracefs.join("per_cpu")) {
            let stats = sysfs::read(&cpu.join("stats")).unwrap_or_default();
            overrun += stat(&stats, "overrun");
            dropped += stat(&stats, "dropped events");
        }
        let max_latency = sysfs::read(&self.tracefs.join("tracing_max_latency"));
        Ok(TraceCapture {
            tracer: self.name.clone(),
            max_latency_us: max_latency.and_then(|text| text.parse().ok()),
            overrun,
            dropped,
            bytes,
            cut,
        })
    }

    fn has(&self, file: &str) -> bool {
        self.tracefs.join(file).exists()
    }

    /// Writes a value that is put back at the end.
    fn set(&mut self, file: &str, value: &str) -> Result<(), MeasureError> {
        let path = self.tracefs.join(file);
        if let Some(old) = sysfs::read(&path) {
            // "7 (expanded: 1408)" is a buffer that no one has used yet.
            let old = old.split_whitespace().next().unwrap_or_default().to_owned();
            self.undo.push((path, old));
        }
        self.write(file, value)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), MeasureError> {
        let path = self.tracefs.join(file);
        sysfs::write(&path, value).map_err(MeasureError::io("write", path))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Nothing can be done about errors here; the next trial sets everything anew.
        let _ = reset(&self.tracefs);
        for (path, old) in self.undo.iter().rev() {
            let _ = sysfs::write(path, old);
        }
        let _ = self.write("trace", "");
    }
}

/// Switches every tracer off. `true` if one was on.
pub(crate) fn reset(tracefs: &Path) -> io::Result<bool> {
    let file = tracefs.join("current_tracer");
    match sysfs::read(&file) {
        Some(tracer) if tracer != "nop" => sysfs::write(&file, "nop").map(|()| true),
        _ => Ok(false),
    }
}

fn copy_capped(mut from: impl Read, to: &Path, cap: u64) -> io::Result<(u64, bool)> {
    let mut target = File::create(to)?;
    let bytes = io::copy(&mut from.by_ref().take(cap), &mut target)?;
    target.flush()?;
    let cut = bytes == cap && from.read(&mut [0])? > 0;
    Ok((bytes, cut))
}

/// A counter in `per_cpu/cpuN/stats`.
fn stat(stats: &str, name: &str) -> u64 {
    stats
        .lines()
        .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}
