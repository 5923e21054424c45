//! Text of a latency tracer: its one number, and who held the CPU.

use klab_ftrace::{LatencyTrace, Note, Problem, ReadError, Reading};
use klab_model::{Direction, Metric, ResultFormat, Sample, Unit};

use crate::error::Trouble;
use crate::lines::Lines;
use crate::{ErrorKind, ParseError, Parsed, Remark};

const FORMAT: ResultFormat = ResultFormat::LatencyTrace;

pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let lines = Lines::new(bytes);
    match klab_ftrace::read(bytes).map_err(|error| unreadable(&error, &lines))? {
        Reading::Latency(trace) => whole(&trace, &lines),
        Reading::Empty { tracer, .. } => Err(Trouble::new(
            FORMAT,
            ErrorKind::NothingMeasured,
            lines.last().0,
        )
        .found(format!("tracer {tracer} without events"))
        .mend(
            "switch tracing_on on before the workload starts, and read the trace before \
                     the tracer is reset",
        )
        .expected("the trace of at least one latency")),
        Reading::NotLatency { tracer } => Err(Trouble::new(FORMAT, ErrorKind::Foreign, 1)
            .found(format!("tracer {tracer}"))
            .mend("choose a latency tracer in the plan, or do not read samples from this file")
            .expected("a latency tracer such as wakeup_rt or irqsoff")),
    }
}

fn whole(trace: &LatencyTrace, lines: &Lines<'_>) -> Result<Parsed, ParseError> {
    if trace.is_cut() {
        let expected = format!(
            "{} whole events, as the header announces",
            trace.header.entries
        );
        return Err(lines.cut(FORMAT, expected));
    }
    let tracer = &trace.header.tracer;
    let metric = Metric::parse(&format!("{tracer}.latency.max")).map_err(|_| {
        Trouble::new(FORMAT, ErrorKind::Malformed, 1)
            .found(tracer)
            .expected("a tracer name of a-z, 0-9 and `_`")
    })?;
    let mut parsed = Parsed::new(FORMAT);
    parsed.samples.push(Sample {
        metric,
        value: trace.latency_us() as f64,
        unit: Unit::Microseconds,
        direction: Direction::LowerIsBetter,
    });
    if let Some(function) = trace.culprit() {
        parsed.remarks.push(Remark::Culprit {
            function: function.to_owned(),
        });
    }
    for note in &trace.notes {
        if let Note::Overrun { entries, written } = note {
            parsed.remarks.push(Remark::TraceOverrun {
                lost: written - entries,
            });
        }
    }
    Ok(parsed)
}

fn unreadable(error: &ReadError, lines: &Lines<'_>) -> ParseError {
    let last = !lines.ended() && error.line == lines.last().0;
    let kind = match error.problem {
        Problem::NotATrace => ErrorKind::Foreign,
        _ if last => ErrorKind::Cut,
        Problem::NoLatency | Problem::NoTask | Problem::NoLegend if error.found.is_empty() => {
            ErrorKind::Cut
        }
        _ => ErrorKind::Malformed,
    };
    Trouble::new(FORMAT, kind, error.line)
        .found(&error.found)
        .mend(error.problem.mend())
        .expected(error.problem.expected())
}
