//! `stress-ng --yaml`, written with `--metrics`.
//!
//! Samples are what compares between kernels when the running time is fixed: bogus
//! operations, their two rates, and the largest resident size. Times and CPU shares
//! follow from the running time and are left out. Of the free-form measurements of
//! single stressors only times per operation have a unit that can be told from the key.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use klab_model::{Direction, Metric, ResultFormat, Sample, Unit};
use serde::Deserialize;
use serde_yaml::Spanned;

use crate::error::Trouble;
use crate::lines::{Lines, utf8};
use crate::{ErrorKind, ParseError, Parsed};

const FORMAT: ResultFormat = ResultFormat::StressNgYaml;

/// Known keys with unit and direction.
const KEYS: [(&str, Unit, Direction); 4] = [
    ("bogo-ops", Unit::Count, Direction::HigherIsBetter),
    (
        "bogo-ops-per-second-real-time",
        Unit::BogoOpsPerSecond,
        Direction::HigherIsBetter,
    ),
    (
        "bogo-ops-per-second-usr-sys-time",
        Unit::BogoOpsPerSecond,
        Direction::HigherIsBetter,
    ),
    ("max-rss", Unit::Kibibytes, Direction::LowerIsBetter),
];

/// Beginnings of free-form keys that name a time, and microseconds per unit.
const TIMES: [(&str, f64); 6] = [
    ("nanosecs-", 0.001),
    ("nanoseconds-", 0.001),
    ("microsecs-", 1.0),
    ("microseconds-", 1.0),
    ("millisecs-", 1000.0),
    ("milliseconds-", 1000.0),
];

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "system-info", alias = "build-info")]
    system_info: Option<SystemInfo>,
    #[serde(default)]
    metrics: Vec<Name>,
}

#[derive(Deserialize)]
struct SystemInfo {
    #[serde(rename = "stress-ng-version")]
    version: Option<String>,
}

/// Read apart from the values: one stressor is called `null`, which YAML takes for
/// nothing.
#[derive(Deserialize)]
struct Name {
    stressor: Spanned<Option<String>>,
}

#[derive(Deserialize)]
struct Values {
    #[serde(default)]
    metrics: Vec<BTreeMap<String, Spanned<serde_json::Value>>>,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let text = without_build_info(whole(bytes)?);
    let text = text.as_ref();
    let document: Document =
        serde_yaml::from_str(text).map_err(|error| unreadable(text, &error))?;
    let values: Values = serde_yaml::from_str(text).map_err(|error| unreadable(text, &error))?;
    if document.metrics.is_empty() {
        return Err(
            Trouble::new(FORMAT, ErrorKind::NothingMeasured, text.lines().count())
                .found("no metrics")
                .mend("run stress-ng with --metrics")
                .expected("`metrics:` with at least one stressor"),
        );
    }
    let mut parsed = Parsed::new(FORMAT);
    let version = document.system_info.and_then(|info| info.version);
    parsed.tool = version.map(|version| format!("stress-ng {version}"));
    let mut seen = HashSet::new();
    for (entry, values) in document.metrics.iter().zip(&values.metrics) {
        let line = line(entry.stressor.referenced);
        let name = entry.stressor.value.as_deref().unwrap_or("null");
        if !seen.insert(name) {
            return Err(Trouble::new(FORMAT, ErrorKind::Inconsistent, line)
                .found(format!("stressor {name} again"))
                .expected("each stressor once"));
        }
        stressor(&mut parsed, name, line, values)?;
    }
    Ok(parsed)
}

/// The text, if it is a YAML document from its begin to its end mark; stress-ng writes
/// the latter when it ends.
fn whole(bytes: &[u8]) -> Result<&str, ParseError> {
    let text = utf8(FORMAT, bytes)?;
    let lines = Lines::new(bytes);
    if !text.trim_start().starts_with("---") {
        let (_, found) = lines.numbered().next().unwrap_or_default();
        return Err(Trouble::new(FORMAT, ErrorKind::Foreign, 1)
            .found(found)
            .mend("run stress-ng with --metrics --yaml FILE and name that file")
            .expected("`---`"));
    }
    let closed = text.lines().rev().find(|line| !line.trim().is_empty()) == Some("...");
    if !closed || !lines.ended() {
        return Err(lines.cut(FORMAT, "`...`, the end of the document"));
    }
    Ok(text)
}

/// stress-ng 0.19 writes how it was built before the system's section, and one line of that
/// without its indent, which is no YAML. Nobody needs it: its lines become empty, so that
/// places in messages stay right.
fn without_build_info(text: &str) -> Cow<'_, str> {
    const BUILD: &str = "\nbuild-info:\n";
    const SYSTEM: &str = "\nsystem-info:\n";
    let (Some(start), Some(end)) = (text.find(BUILD), text.find(SYSTEM)) else {
        return Cow::Borrowed(text);
    };
    if end < start {
        return Cow::Borrowed(text);
    }
    let gone = text[start..end].matches('\n').count();
    let lines = "\n".repeat(gone);
    Cow::Owned([&text[..start], &lines, &text[end..]].concat())
}

type Entries = BTreeMap<String, Spanned<serde_json::Value>>;

fn stressor(
    parsed: &mut Parsed,
    name: &str,
    line: usize,
    values: &Entries,
) -> Result<(), ParseError> {
    let before = parsed.samples.len();
    for (key, unit, direction) in KEYS {
        let Some(entry) = values.get(key) else {
            continue;
        };
        let value = number(&entry.value).ok_or_else(|| {
            Trouble::new(FORMAT, ErrorKind::Malformed, self::line(entry.referenced))
                .found(format!("{key}: {}", entry.value))
                .expected("a finite number")
        })?;
        let metric = metric(name, key, line)?;
        parsed.samples.push(Sample {
            metric,
            value,
            unit,
            direction,
        });
    }
    if parsed.samples.len() == before {
        return Err(Trouble::new(FORMAT, ErrorKind::NothingMeasured, line)
            .found(format!("stressor {name} without bogo-ops"))
            .expected("bogo-ops and its rates"));
    }
    for (key, entry) in values {
        let unit = TIMES
            .iter()
            .find(|(beginning, _)| key.starts_with(beginning));
        if let (Some((_, us)), Some(value)) = (unit, number(&entry.value)) {
            parsed.samples.push(Sample {
                metric: metric(name, key, line)?,
                value: value * us,
                unit: Unit::Microseconds,
                direction: Direction::LowerIsBetter,
            });
        }
    }
    Ok(())
}

fn metric(stressor: &str, key: &str, line: usize) -> Result<Metric, ParseError> {
    let name = format!("stress-ng.{stressor}.{key}");
    Metric::parse(&name).map_err(|_| {
        Trouble::new(FORMAT, ErrorKind::Malformed, line)
            .found(format!("stressor {stressor}, key {key}"))
            .expected("names of a-z, 0-9, `_` and `-`")
    })
}

fn number(value: &serde_json::Value) -> Option<f64> {
    value.as_f64().filter(|value| value.is_finite())
}

fn line(location: serde_yaml::Location) -> usize {
    usize::try_from(location.line()).unwrap_or(1).max(1)
}

fn unreadable(text: &str, error: &serde_yaml::Error) -> ParseError {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (line(at), at.column()));
    let found = text.lines().nth(line - 1).unwrap_or_default().trim();
    let reason = error.to_string();
    let reason = reason.lines().next().unwrap_or_default();
    Trouble::new(FORMAT, ErrorKind::Malformed, line)
        .column(usize::try_from(column).unwrap_or(1).max(1))
        .found(found)
        .expected(format!("the YAML of stress-ng --yaml ({reason})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "---\nsystem-info:\n      stress-ng-version: 0.15.06\n      hostname: (none)\n\
                        \x20     date-yyyy-mm-dd: 2026:11:30\n\n";

    fn text(metrics: &str) -> String {
        format!("{HEAD}metrics:\n{metrics}\n...\n")
    }

    fn values(text: &str) -> Vec<(String, f64, Unit)> {
        let parsed = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        parsed
            .samples
            .iter()
            .map(|s| (s.metric.to_string(), s.value, s.unit))
            .collect()
    }

    fn fails(text: &str) -> (ErrorKind, usize) {
        let error = parse(text.as_bytes()).expect_err("must be refused");
        (error.kind, error.line)
    }

    #[test]
    fn stressors_may_be_called_null() {
        for name in ["null", "yes", "matrix-3d", "full"] {
            let found = values(&text(&format!(
                "    - stressor: {name}\n      bogo-ops: 5\n"
            )));
            assert_eq!(
                found,
                [(format!("stress-ng.{name}.bogo-ops"), 5.0, Unit::Count)]
            );
        }
    }

    #[test]
    fn scientific_notation_is_read() {
        let found = values(&text("    - stressor: vm\n      bogo-ops: 1.0e+03\n"));
        assert_eq!(found[0].1, 1000.0);
    }

    #[test]
    fn only_free_form_times_are_taken() {
        let found = values(&text(
            "    - stressor: switch\n      bogo-ops: 5\n      nanosecs-per-context-switch-pipe: 2500.0\n      \
             mb-per-sec: 9.0\n      verified: yes\n      wall-clock-time: 9.0\n      instances:\n        - instance: 0\n          bogo-ops: 7\n",
        ));
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[1],
            (
                "stress-ng.switch.nanosecs-per-context-switch-pipe".to_owned(),
                2.5,
                Unit::Microseconds
            )
        );
    }

    #[test]
    fn troubles() {
        let vm = "    - stressor: vm\n      bogo-ops: 5\n";
        assert_eq!(fails(""), (ErrorKind::Foreign, 1));
        assert_eq!(fails("{\n"), (ErrorKind::Foreign, 1));
        let good = text(vm);
        assert_eq!(fails(&good[..good.len() - 4]).0, ErrorKind::Cut);
        assert_eq!(fails(good.trim_end()).0, ErrorKind::Cut);
        assert_eq!(fails(&format!("{HEAD}...\n")).0, ErrorKind::NothingMeasured);
        assert_eq!(
            fails(&text(&format!("{vm}{vm}"))),
            (ErrorKind::Inconsistent, 10)
        );
        assert_eq!(
            fails(&text("    - stressor: vm\n      bogo-ops: nan\n")),
            (ErrorKind::Malformed, 9)
        );
        assert_eq!(
            fails(&text("    - stressor: vm\n      bogo-ops: .inf\n")),
            (ErrorKind::Malformed, 9)
        );
        assert_eq!(
            fails(&text("    - stressor: V M\n      bogo-ops: 5\n")),
            (ErrorKind::Malformed, 8)
        );
        assert_eq!(
            fails(&text("    - stressor: vm\n      user-time: 5\n")),
            (ErrorKind::NothingMeasured, 8)
        );
        assert_eq!(
            fails(&text("    - stressor: vm\n   x: [\n")).0,
            ErrorKind::Malformed
        );
        assert_eq!(fails(&text("    - bogo-ops: 5\n")).0, ErrorKind::Malformed);
    }
}
