//! `cyclictest --json`. Its writer has habits that JSON does not allow: an average of
//! no cycles is printed as `nan`, and the command line is not escaped. Both are mended
//! before reading. The keys `cmdline:` and `rt_test_version:` end in a colon.

use std::borrow::Cow;
use std::collections::BTreeMap;

use klab_model::ResultFormat;
use serde::Deserialize;
use serde_json::error::Category;

use super::{Histogram, Thread, percentiles, summarise};
use crate::error::Trouble;
use crate::lines::utf8;
use crate::{ErrorKind, ParseError, Parsed};

const FORMAT: ResultFormat = ResultFormat::CyclictestJson;
/// The only `file_version` there is.
const FILE_VERSION: u32 = 1;

#[derive(Deserialize)]
struct Document {
    file_version: u32,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    rt_test_version: Option<String>,
    return_code: i64,
    num_threads: usize,
    /// 1 with `--nsecs`: every latency of the file is in nanoseconds.
    #[serde(default)]
    resolution_in_ns: u64,
    thread: BTreeMap<u32, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    histogram: BTreeMap<u64, u64>,
    cycles: u64,
    min: i64,
    max: i64,
    avg: Option<f64>,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let text = mended(utf8(FORMAT, bytes)?);
    let document: Document =
        serde_json::from_str(&text).map_err(|error| unreadable(&text, &error))?;
    check(&text, &document)?;
    let units_per_us = if document.resolution_in_ns == 0 {
        1.0
    } else {
        1000.0
    };
    let mut histogram = Histogram {
        units_per_us,
        ..Histogram::default()
    };
    let mut threads = Vec::with_capacity(document.thread.len());
    for (index, entry) in &document.thread {
        threads.push(entry.thread(&text, *index, units_per_us)?);
        for (latency, count) in &entry.histogram {
            let sum = histogram.buckets.entry(*latency).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let mut parsed = Parsed::new(FORMAT);
    parsed.tool = document
        .rt_test_version
        .map(|version| format!("cyclictest {version}"));
    summarise(&mut parsed, &threads);
    let cycles = threads
        .iter()
        .fold(0, |sum: u64, t| sum.saturating_add(t.cycles));
    percentiles(&mut parsed, &histogram, cycles);
    Ok(parsed)
}

fn check(text: &str, document: &Document) -> Result<(), ParseError> {
    let fail = |kind, key| Trouble::new(FORMAT, kind, line_of(text, key));
    if document.file_version != FILE_VERSION {
        return Err(fail(ErrorKind::Foreign, "file_version")
            .found(format!("file_version {}", document.file_version))
            .mend("use a version of rt-tests from 2.0 to the newest known here")
            .expected(format!("file_version {FILE_VERSION}")));
    }
    if document.return_code != 0 {
        return Err(fail(ErrorKind::Failed, "return_code")
            .found(format!("return_code {}", document.return_code))
            .expected("return_code 0"));
    }
    let found = document.thread.len();
    if found != document.num_threads || found == 0 {
        return Err(fail(ErrorKind::Inconsistent, "num_threads")
            .found(format!("{found} threads"))
            .expected(format!(
                "num_threads, that is {} of them",
                document.num_threads.max(1)
            )));
    }
    Ok(())
}

impl Entry {
    fn thread(&self, text: &str, index: u32, units_per_us: f64) -> Result<Thread, ParseError> {
        let line = line_of(text, &index.to_string());
        if self.cycles == 0 {
            return Err(Trouble::new(FORMAT, ErrorKind::NothingMeasured, line)
                .found(format!("thread {index} with 0 cycles"))
                .expected("at least one cycle of every thread"));
        }
        let Some(avg) = self.avg.filter(|avg| avg.is_finite()) else {
            return Err(Trouble::new(FORMAT, ErrorKind::Malformed, line)
                .found(format!("thread {index} with an avg that is no number"))
                .expected("a finite avg, since the thread has cycles"));
        };
        Ok(Thread {
            cycles: self.cycles,
            min_us: self.min as f64 / units_per_us,
            avg_us: avg / units_per_us,
            max_us: self.max as f64 / units_per_us,
        })
    }
}

/// The line on which `key` begins, or the last one.
fn line_of(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    let found = text
        .lines()
        .position(|line| line.trim_start().starts_with(&quoted));
    found.unwrap_or_else(|| text.lines().count().saturating_sub(1)) + 1
}

fn unreadable(text: &str, error: &serde_json::Error) -> ParseError {
    let kind = match error.classify() {
        Category::Eof => ErrorKind::Cut,
        _ if !text.trim_start().starts_with('{') => ErrorKind::Foreign,
        Category::Io | Category::Syntax | Category::Data => ErrorKind::Malformed,
    };
    let line = error.line().max(1);
    let found = text.lines().nth(line - 1).unwrap_or_default().trim();
    let reason = error.to_string();
    let reason = reason
        .split(" at line ")
        .next()
        .unwrap_or(&reason)
        .to_owned();
    Trouble::new(FORMAT, kind, line)
        .column(error.column().max(1))
        .found(found)
        .expected(format!("the JSON of cyclictest --json ({reason})"))
}

/// The text with `nan` as `null` and the command line escaped, line by line, so that
/// line numbers stay.
fn mended(text: &str) -> Cow<'_, str> {
    if text.lines().all(|line| mended_line(line).is_none()) {
        return Cow::Borrowed(text);
    }
    let lines = text
        .split('\n')
        .map(|line| mended_line(line).unwrap_or_else(|| line.to_owned()));
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

fn mended_line(line: &str) -> Option<String> {
    let (key, value) = line.split_once("\": ")?;
    match key.trim_start() {
        "\"avg" => {
            let number = value.trim_end().trim_end_matches(',');
            let bad = ["nan", "-nan", "inf", "-inf"].contains(&number);
            bad.then(|| line.replacen(number, "null", 1))
        }
        "\"cmdline" | "\"cmdline:" => {
            let end = value.rfind('"').filter(|end| *end > 0)?;
            let inner = value.get(1..end)?;
            if serde_json::from_str::<String>(&format!("\"{inner}\"")).is_ok() {
                return None;
            }
            let escaped = serde_json::to_string(inner).ok()?;
            Some(format!("{key}\": {escaped}{}", &value[end + 1..]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(cmdline: &str, extra: &str, thread: &str) -> String {
        format!(
            "{{\n  \"file_version\": 1,\n  {cmdline}\n  \"return_code\": 0,\n  \"num_threads\": 1,\n{extra}  \
             \"thread\": {{\n    \"0\": {{\n{thread}\n    }}\n  }}\n}}\n"
        )
    }

    const PLAIN: &str = "\"cmdline:\": \"cyclictest -q\",";
    const THREAD: &str = "\"histogram\": { \"3\": 9, \"1500\": 1 }, \"cycles\": 10, \"min\": 3,\n\
                          \"max\": 1500,\n \"avg\": 152.70";

    fn values(text: &str) -> Vec<f64> {
        parse(text.as_bytes())
            .unwrap()
            .samples
            .iter()
            .map(|s| s.value)
            .collect()
    }

    fn fails(text: &str) -> ParseError {
        parse(text.as_bytes()).expect_err("must be refused")
    }

    #[test]
    fn both_spellings_and_raw_command_lines() {
        let expected = vec![3.0, 152.7, 1500.0, 3.0, 3.0, 1500.0, 1500.0];
        for cmdline in [
            PLAIN,
            "\"cmdline\": \"cyclictest -q\",",
            "\"cmdline:\": \"cyclictest --json=\"a b\" -q\",",
            "\"cmdline:\": \"cyclictest --json=C:\\x -q\",",
            "\"cmdline:\": \"cyclictest --json=\\\"a b\\\"\",",
        ] {
            assert_eq!(
                values(&document(cmdline, "", THREAD)),
                expected,
                "{cmdline}"
            );
        }
    }

    #[test]
    fn nanoseconds_become_microseconds() {
        let text = document(PLAIN, "  \"resolution_in_ns\": 1,\n", THREAD);
        assert_eq!(values(&text)[2], 1.5);
        assert_eq!(values(&text)[3], 0.003);
    }

    #[test]
    fn versions_are_kept() {
        for key in ["rt_test_version:", "rt_test_version"] {
            let text = document(PLAIN, &format!("  \"{key}\": \"2.40\",\n"), THREAD);
            let tool = parse(text.as_bytes()).unwrap().tool;
            assert_eq!(tool.as_deref(), Some("cyclictest 2.40"));
        }
    }

    #[test]
    fn nan_is_no_average() {
        let idle = "\"cycles\": 0, \"min\": 1000000, \"max\": 0,\n      \"avg\": nan,\n \"cpu\": 0";
        let error = fails(&document(PLAIN, "", idle));
        assert_eq!((error.kind, error.line), (ErrorKind::NothingMeasured, 7));
        let odd = "\"cycles\": 5, \"min\": 1, \"max\": 2,\n      \"avg\": -nan";
        let error = fails(&document(PLAIN, "", odd));
        assert_eq!((error.kind, error.line), (ErrorKind::Malformed, 7));
        assert_eq!(error.found, "thread 0 with an avg that is no number");
    }

    #[test]
    fn troubles() {
        let good = document(PLAIN, "", THREAD);
        assert_eq!(fails("").kind, ErrorKind::Cut);
        assert_eq!(fails("T: 0 (  136)\n").kind, ErrorKind::Foreign);
        assert_eq!(fails(&good[..good.len() - 3]).kind, ErrorKind::Cut);
        let code = fails(&good.replace("return_code\": 0", "return_code\": 1"));
        assert_eq!((code.kind, code.line), (ErrorKind::Failed, 4));
        let threads = fails(&good.replace("num_threads\": 1", "num_threads\": 4"));
        assert_eq!((threads.kind, threads.line), (ErrorKind::Inconsistent, 5));
        let version = fails(&good.replace("file_version\": 1", "file_version\": 2"));
        assert_eq!((version.kind, version.line), (ErrorKind::Foreign, 2));
        let bad = fails(&good.replace("\"max\": 1500", "\"max\": ?"));
        assert_eq!((bad.kind, bad.line), (ErrorKind::Malformed, 9));
        assert!(bad.column.is_some());
        let bytes = parse(b"{\n\xff").unwrap_err();
        assert_eq!((bytes.kind, bytes.line), (ErrorKind::Malformed, 2));
    }
}
