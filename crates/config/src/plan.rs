//! The shape of a plan file.

use klab_model::{IfMissing, Load, Plan, PlanName, Span, TimeLimits, TracePlan, Workload};

use crate::commands::{Used, artifacts, command, name};
use crate::diagnostic::{Diagnostics, Problem};
use crate::reader::{At, Fields, Reader, quoted};
use crate::yaml::{self, Place, Value};

/// A file for people is far smaller.
pub const MAX_FILE_BYTES: usize = 1 << 20;

const PLAN: [&str; 6] = ["name", "about", "load", "workloads", "trace", "time-limits"];
const NAME: &str =
    "a name of 1 to 63 characters of a-z, 0-9, '.', '_' and '-', starting with a letter or digit";
const WORKLOADS: &str = "a list of 1 to 100 workloads, each with name, command and time-limit";
const LOADS: &str = "a list of at most 20 loads, each with name and command";
const SPAN: &str = "a number and a unit of ms, s, m or h, from 1ms to 168h, such as 500ms or 30m";

/// Reads a plan file. `file` is the name that diagnostics show.
///
/// # Errors
/// [`Diagnostics`] with everything that is wrong; for text that is no YAML, with the place
/// where it stops to be.
pub fn parse_plan(file: &str, text: &str) -> Result<Plan, Diagnostics> {
    if text.len() > MAX_FILE_BYTES {
        return Err(whole_file(file, too_large(text.len())));
    }
    let mut reader = Reader::new(file, text);
    let root = match yaml::parse(text) {
        Ok(node) => node,
        Err(error) => {
            let found = format!("invalid YAML ({})", error.message);
            let mut problem = Problem::new(found, error.expected);
            if error.message.contains("flow") || error.message.contains("block mapping") {
                problem = problem.help("text with braces needs quotes, such as \"{out}/x.json\"");
            }
            return Err(Diagnostics::one(problem.at(file, text, error.place, "")));
        }
    };
    let at = At {
        node: &root,
        path: String::new(),
    };
    if root.value == Value::Null {
        let problem = Problem::new("an empty file", "a plan with the fields name and workloads");
        reader.report(&at, problem);
        return reader.finish(None);
    }
    let plan = plan(&mut reader, &at);
    reader.finish(plan)
}

/// Reads a plan file whose bytes need not be text.
///
/// # Errors
/// As [`parse_plan`], and for bytes that are not UTF-8, with the place of the first.
pub fn parse_plan_bytes(file: &str, bytes: &[u8]) -> Result<Plan, Diagnostics> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(whole_file(file, too_large(bytes.len())));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_plan(file, text),
        Err(error) => Err(not_utf8(file, bytes, error.valid_up_to())),
    }
}

fn whole_file(file: &str, problem: Problem) -> Diagnostics {
    Diagnostics::one(problem.at(file, "", Place::START, ""))
}

fn too_large(bytes: usize) -> Problem {
    Problem::new(format!("{bytes} bytes"), "a plan of at most 1 MiB")
}

fn not_utf8(file: &str, bytes: &[u8], valid: usize) -> Diagnostics {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let place = Place {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    };
    let mut problem = Problem::new(
        format!("the byte 0x{:02x}", bytes.get(valid).copied().unwrap_or(0)),
        "UTF-8 text",
    );
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        problem = problem.help("the file is UTF-16: save it as UTF-8");
    }
    let text = String::from_utf8_lossy(bytes);
    Diagnostics::one(problem.at(file, &text, place, ""))
}

fn plan(reader: &mut Reader<'_>, at: &At<'_>) -> Option<Plan> {
    let fields = reader.fields(at, &PLAN)?;
    let name = reader.required(&fields, "name", NAME);
    let name = name.and_then(|at| reader.parsed(&at, NAME, PlanName::parse));
    let about = reader.optional(&fields, "about", String::new(), about);
    let mut names = Used::default();
    let mut files = Used::default();
    let loads = reader.optional(&fields, "load", Vec::new(), |reader, at| {
        let items = reader.list(at, LOADS, 0..=20)?;
        let loads: Vec<_> = items
            .iter()
            .map(|at| load(reader, at, &mut names, &mut files))
            .collect();
        loads.into_iter().collect()
    });
    let workloads = reader.required(&fields, "workloads", WORKLOADS);
    let workloads = workloads.and_then(|at| {
        let items = reader.list(&at, WORKLOADS, 1..=100)?;
        let workloads: Vec<_> = items
            .iter()
            // Loads share the folder with every workload; workloads do not share it
            // with each other.
            .map(|at| workload(reader, at, &mut names, &mut files.clone()))
            .collect();
        workloads.into_iter().collect()
    });
    let trace = reader.optional(&fields, "trace", None, |reader, at| {
        trace(reader, at).map(Some)
    });
    let time_limits = match fields.get("time-limits") {
        Some(at) => time_limits(reader, &at),
        None => Some(default_time_limits()),
    };
    Some(Plan {
        name: name?,
        about: about?,
        loads: loads?,
        workloads: workloads?,
        trace: trace?,
        time_limits: time_limits?,
    })
}

fn about(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    const ABOUT: &str = "one sentence of at most 200 characters on one line";
    let text = reader.text(at, ABOUT)?.trim();
    if text.chars().count() > 200 || text.contains(char::is_control) {
        reader.report(at, Problem::new(quoted(text), ABOUT));
        return None;
    }
    Some(text.to_owned())
}

fn load(reader: &mut Reader<'_>, at: &At<'_>, names: &mut Used, files: &mut Used) -> Option<Load> {
    let fields = reader.fields(at, &["name", "command", "lead", "artifacts"])?;
    let name = name(reader, &fields, names);
    let command = command(reader, &fields);
    let lead = span(reader, &fields, "lead", Span::secs(1));
    let artifacts = artifacts(reader, &fields, name.as_ref(), files);
    Some(Load {
        name: name?,
        command: command?,
        lead: lead?,
        artifacts: artifacts?,
    })
}

fn workload(
    reader: &mut Reader<'_>,
    at: &At<'_>,
    names: &mut Used,
    files: &mut Used,
) -> Option<Workload> {
    let known = ["name", "command", "trials", "time-limit", "artifacts"];
    let fields = reader.fields(at, &known)?;
    let name = name(reader, &fields, names);
    let command = command(reader, &fields);
    let trials = reader.optional(&fields, "trials", 1, |reader, at| {
        reader.number(at, 1..=1000)
    });
    let time_limit = reader.required(&fields, "time-limit", SPAN);
    let time_limit = time_limit.and_then(|at| read_span(reader, &at));
    let artifacts = artifacts(reader, &fields, name.as_ref(), files);
    Some(Workload {
        name: name?,
        command: command?,
        trials: trials?,
        time_limit: time_limit?,
        artifacts: artifacts?,
    })
}

fn trace(reader: &mut Reader<'_>, at: &At<'_>) -> Option<TracePlan> {
    const TRACER: &str = "the name of a tracer as the file available_tracers of tracefs lists it, \
                          such as wakeup_rt";
    let known = ["tracer", "if-missing", "buffer-kib", "function-trace"];
    let fields = reader.fields(at, &known)?;
    let tracer = reader.required(&fields, "tracer", TRACER).and_then(|at| {
        let text = reader.text(&at, TRACER)?;
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if text == "nop" {
            let problem = Problem::new(quoted(text), TRACER);
            reader.report(
                &at,
                problem.help("to run without a tracer leave out `trace`"),
            );
            None
        } else if (1..=63).contains(&text.len()) && text.chars().all(legal) {
            Some(text.to_owned())
        } else {
            reader.report(&at, Problem::new(quoted(text), TRACER));
            None
        }
    });
    let if_missing = reader.optional(&fields, "if-missing", IfMissing::Fail, |reader, at| {
        reader.word(at, &[("fail", IfMissing::Fail), ("note", IfMissing::Note)])
    });
    // Up to 1 GiB per CPU.
    let buffer_kib = reader.optional(&fields, "buffer-kib", 4096, |reader, at| {
        reader.number(at, 4..=1_048_576)
    });
    let function_trace = reader.optional(&fields, "function-trace", false, Reader::flag);
    Some(TracePlan {
        tracer: tracer?,
        if_missing: if_missing?,
        buffer_kib: buffer_kib?,
        function_trace: function_trace?,
    })
}

const fn default_time_limits() -> TimeLimits {
    TimeLimits {
        boot: Span::secs(5 * 60),
        settle: Span::secs(5),
        no_network: Span::secs(2 * 60),
    }
}

fn time_limits(reader: &mut Reader<'_>, at: &At<'_>) -> Option<TimeLimits> {
    let fields = reader.fields(at, &["boot", "settle", "no-network"])?;
    let default = default_time_limits();
    let boot = span(reader, &fields, "boot", default.boot);
    let settle = span(reader, &fields, "settle", default.settle);
    let no_network = span(reader, &fields, "no-network", default.no_network);
    Some(TimeLimits {
        boot: boot?,
        settle: settle?,
        no_network: no_network?,
    })
}

fn span(reader: &mut Reader<'_>, fields: &Fields<'_>, name: &str, default: Span) -> Option<Span> {
    reader.optional(fields, name, default, read_span)
}

fn read_span(reader: &mut Reader<'_>, at: &At<'_>) -> Option<Span> {
    if let Value::Integer(number @ 1..=999_999) = at.node.value {
        let problem = Problem::new(format!("the number {number}"), SPAN);
        reader.report(at, problem.help(format!("for seconds write {number}s")));
        return None;
    }
    reader.parsed(at, SPAN, Span::parse)
}
