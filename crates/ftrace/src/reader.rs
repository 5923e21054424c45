//! Reads the text line by line: first the header block, then the events.

use crate::header::{LatencyLine, parse_title};
use crate::{
    EmptyReason, Event, FlagColumn, Frame, Header, LatencyTrace, Note, Problem, ReadError, Reading,
    Task,
};

/// Reads the bytes of a `trace` file.
///
/// Bytes that are not UTF-8 (task names may hold any) are replaced.
///
/// # Errors
/// The text is not a trace, or a line of it cannot be understood; the error names the
/// line, what stood there, what was expected and what to do.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reader = Reader::default();
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', ' ', '\0']);
        reader.line(index + 1, line)?;
        if reader.foreign {
            break;
        }
    }
    reader.finish(bytes)
}

#[derive(Default)]
struct Reader {
    tracer: Option<String>,
    title: Option<(String, String)>,
    latency: Option<LatencyLine>,
    task: Option<Task>,
    started_at: Option<String>,
    ended_at: Option<String>,
    /// `Some` once the legend has named the CPU.
    columns: Option<Vec<FlagColumn>>,
    events: Vec<Event>,
    notes: Vec<Note>,
    /// Events without a latency header: another kind of tracer.
    foreign: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if self.tracer.is_none() {
            let name = line
                .strip_prefix("# tracer:")
                .map(str::trim)
                .filter(|n| !n.is_empty());
            let name = name.ok_or_else(|| ReadError::new(number, line, Problem::NotATrace))?;
            self.tracer = Some(name.to_owned());
            return Ok(());
        }
        if let Some(note) = note(line) {
            self.notes.push(note);
            return Ok(());
        }
        match line.strip_prefix('#') {
            Some(text) => self.header_line(number, line, text.trim_start()),
            None => self.body_line(number, line),
        }
    }

    fn header_line(&mut self, number: usize, line: &str, text: &str) -> Result<(), ReadError> {
        let fail = |problem| ReadError::new(number, line, problem);
        if let Some(rest) = text.strip_prefix("latency:") {
            self.latency =
                Some(LatencyLine::parse(rest).ok_or_else(|| fail(Problem::LatencyLine))?);
        } else if let Some(rest) = text.strip_prefix("| task:") {
            self.task = Some(Task::parse(rest).ok_or_else(|| fail(Problem::TaskLine))?);
        } else if let Some(rest) = text.strip_prefix("=> started at:") {
            self.started_at = Some(rest.trim().to_owned());
        } else if let Some(rest) = text.strip_prefix("=> ended at:") {
            self.ended_at = Some(rest.trim().to_owned());
        } else if text.contains(" latency trace v") {
            self.title = Some(parse_title(text).ok_or_else(|| fail(Problem::TitleLine))?);
        } else if let Some((_, label)) = text.split_once("-=> ") {
            match (label.trim(), &mut self.columns) {
                ("CPU#", columns) => *columns = Some(Vec::new()),
                (label, Some(columns)) => columns.push(FlagColumn::from_label(label)),
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn body_line(&mut self, number: usize, line: &str) -> Result<(), ReadError> {
        if self.title.is_none() && self.latency.is_none() {
            self.foreign = true;
            return Ok(());
        }
        let fail = |problem| ReadError::new(number, line, problem);
        if self.latency.is_none() || self.title.is_none() {
            return Err(fail(Problem::NoLatency));
        }
        if self.task.is_none() {
            return Err(fail(Problem::NoTask));
        }
        let columns = match &self.columns {
            Some(columns) if !columns.is_empty() => columns.len(),
            _ => return Err(fail(Problem::NoLegend)),
        };
        if let Some(frame) = line.trim_start().strip_prefix("=> ") {
            let last = self
                .events
                .last_mut()
                .ok_or_else(|| fail(Problem::StrayFrame))?;
            let taken = frame
                .split(" => ")
                .all(|f| last.kind.push_frame(Frame::parse(f)));
            return if taken {
                Ok(())
            } else {
                Err(fail(Problem::StrayFrame))
            };
        }
        let event = Event::parse(number, line, columns).ok_or_else(|| fail(Problem::EventLine))?;
        self.events.push(event);
        Ok(())
    }

    fn finish(self, bytes: &[u8]) -> Result<Reading, ReadError> {
        let lines = bytes.split(|b| *b == b'\n').count();
        let tracer = self
            .tracer
            .ok_or_else(|| ReadError::new(1, "", Problem::NotATrace))?;
        if self.foreign {
            return Ok(Reading::NotLatency { tracer });
        }
        let Some((format, release)) = self.title else {
            let reason = match tracer.as_str() {
                "nop" => EmptyReason::NoTracer,
                _ => EmptyReason::NothingRecorded,
            };
            return Ok(Reading::Empty { tracer, reason });
        };
        let missing = |problem| ReadError::new(lines, "end of the text", problem);
        let latency = self.latency.ok_or_else(|| missing(Problem::NoLatency))?;
        if latency.latency_us == 0 && self.events.is_empty() {
            return Ok(Reading::Empty {
                tracer,
                reason: EmptyReason::ZeroLatency,
            });
        }
        let task = self.task.ok_or_else(|| missing(Problem::NoTask))?;
        let columns = self.columns.unwrap_or_default();
        let found = self.events.len() as u64;
        let mut notes = self.notes;
        notes.extend(completeness(&latency, found, bytes));
        let header = Header {
            tracer,
            format,
            release,
            latency_us: latency.latency_us,
            entries: latency.entries,
            written: latency.written,
            cpu: latency.cpu,
            model: latency.model,
            online_cpus: latency.online_cpus,
            task,
            started_at: self.started_at,
            ended_at: self.ended_at,
        };
        Ok(Reading::Latency(Box::new(LatencyTrace {
            header,
            columns,
            events: self.events,
            notes,
        })))
    }
}

fn completeness(latency: &LatencyLine, found: u64, bytes: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    if latency.entries < latency.written {
        notes.push(Note::Overrun {
            entries: latency.entries,
            written: latency.written,
        });
    }
    if found < latency.entries {
        notes.push(Note::CutShort {
            announced: latency.entries,
            found,
        });
    }
    if !bytes.ends_with(b"\n") {
        notes.push(Note::OpenLine);
    }
    notes
}

/// `##### CPU 2 buffer started ####`, `CPU:2 [LOST 17 EVENTS]`, `CPU:2 [LOST EVENTS]`.
fn note(line: &str) -> Option<Note> {
    if let Some(rest) = line.strip_prefix("##### CPU ") {
        let cpu = rest.split_once(" buffer started")?.0.trim().parse().ok()?;
        return Some(Note::BufferStarted { cpu });
    }
    let (cpu, rest) = line
        .trim_start()
        .strip_prefix("CPU:")?
        .split_once(" [LOST ")?;
    let count = rest.strip_suffix("EVENTS]")?.trim();
    let count = if count.is_empty() {
        None
    } else {
        Some(count.parse().ok()?)
    };
    Some(Note::Lost {
        cpu: cpu.trim().parse().ok()?,
        count,
    })
}
