//! The lines `T: 0 (  136) P:99 I:1000 C:   3440 Min: ...`, once at the end with `-q`,
//! otherwise rewritten in place again and again.

use klab_model::ResultFormat;

use super::{Thread, summarise};
use crate::error::Trouble;
use crate::lines::Lines;
use crate::{ErrorKind, ParseError, Parsed};

const FORMAT: ResultFormat = ResultFormat::CyclictestText;
const SHAPE: &str = "`T: N (PID) P:PRIO I:INTERVAL C:CYCLES Min:N Act:N Avg:N Max:N`";
/// How cyclictest moves the cursor up before it rewrites its lines.
const ESCAPE: char = '\u{1b}';

pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let lines = Lines::new(bytes);
    let mut updates = Updates::default();
    for (number, raw) in lines.numbered() {
        updates.line(number, &raw, &lines)?;
    }
    let threads = updates.finish(&lines)?;
    let mut parsed = Parsed::new(FORMAT);
    summarise(&mut parsed, &threads);
    Ok(parsed)
}

/// The updates read so far; each one replaces what was known before.
#[derive(Default)]
struct Updates {
    /// Threads of the newest update.
    threads: Vec<Thread>,
    /// Most threads in any update.
    most: usize,
    /// The cursor was moved up, so another update has to follow.
    rewriting: bool,
}

impl Updates {
    fn line(&mut self, number: usize, raw: &str, lines: &Lines<'_>) -> Result<(), ParseError> {
        let line = without_escapes(raw);
        self.rewriting |= raw.contains(ESCAPE);
        let Some(rest) = line.trim_start().strip_prefix("T:") else {
            return Ok(());
        };
        let fail = |kind| Trouble::new(FORMAT, kind, number).found(&line);
        let entry = Entry::parse(rest).ok_or_else(|| match number == lines.last().0 {
            true => lines.cut(FORMAT, SHAPE),
            false => fail(ErrorKind::Malformed).expected(SHAPE),
        })?;
        if entry.index == 0 {
            self.threads.clear();
            self.rewriting = false;
        }
        if entry.index != self.threads.len() {
            let expected = format!("the line of thread {}", self.threads.len());
            return Err(fail(ErrorKind::Inconsistent).expected(expected));
        }
        self.threads.push(entry.thread());
        self.most = self.most.max(self.threads.len());
        Ok(())
    }

    fn finish(self, lines: &Lines<'_>) -> Result<Vec<Thread>, ParseError> {
        if self.most == 0 {
            return Err(no_result(lines));
        }
        if !lines.ended() || self.threads.len() < self.most {
            let expected = format!("a last update with the lines of all {} threads", self.most);
            return Err(lines.cut(FORMAT, expected));
        }
        if self.rewriting {
            return Err(lines.cut(FORMAT, "another update after the cursor was moved up"));
        }
        if let Some(index) = self.threads.iter().position(|t| t.cycles == 0) {
            return Err(
                Trouble::new(FORMAT, ErrorKind::NothingMeasured, lines.last().0)
                    .found(format!("thread {index} with 0 cycles"))
                    .expected("at least one cycle of every thread"),
            );
        }
        Ok(self.threads)
    }
}

fn no_result(lines: &Lines<'_>) -> ParseError {
    let (line, found) = lines.last();
    Trouble::new(FORMAT, ErrorKind::Foreign, line)
        .found(found)
        .mend("run cyclictest with -q and without --verbose, and name the file it prints to")
        .expected(SHAPE)
}

/// One `T:` line.
struct Entry {
    index: usize,
    cycles: u64,
    min: i64,
    avg: i64,
    max: i64,
    nanoseconds: bool,
}

impl Entry {
    /// Reads what follows `T:`.
    fn parse(text: &str) -> Option<Self> {
        let (index, rest) = text.split_once('(')?;
        let (_pid, rest) = rest.split_once(") P:")?;
        let (_prio, rest) = rest.split_once(" I:")?;
        let (_interval, rest) = rest.split_once(" C:")?;
        let (cycles, rest) = rest.split_once(" Min:")?;
        let (min, rest) = rest.split_once(" Act:")?;
        let (act, rest) = rest.split_once(" Avg:")?;
        let (avg, max) = rest.split_once(" Max:")?;
        let max = max.split_once(" SMI:").map_or(max, |(max, _)| max);
        act.trim().parse::<i64>().ok()?;
        Some(Self {
            index: index.trim().parse().ok()?,
            cycles: cycles.trim().parse().ok()?,
            min: min.trim().parse().ok()?,
            avg: avg.trim().parse().ok()?,
            max: max.trim().parse().ok()?,
            // Only `--nsecs` pads these two fields to eight characters.
            nanoseconds: [act, avg]
                .iter()
                .any(|f| f.len() >= 8 && f.starts_with(' ')),
        })
    }

    fn thread(&self) -> Thread {
        let us = |value: i64| {
            if self.nanoseconds {
                value as f64 / 1000.0
            } else {
                value as f64
            }
        };
        Thread {
            cycles: self.cycles,
            min_us: us(self.min),
            avg_us: us(self.avg),
            max_us: us(self.max),
        }
    }
}

/// The line without `ESC [ ... LETTER`.
fn without_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != ESCAPE {
            out.push(c);
        } else if chars.as_str().starts_with('[') {
            chars.by_ref().skip(1).find(char::is_ascii_alphabetic);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max(text: &str) -> Result<f64, ErrorKind> {
        parse(text.as_bytes())
            .map(|p| p.samples[2].value)
            .map_err(|e| e.kind)
    }

    const LINE: &str =
        "T: 0 (  136) P:99 I:1000 C:   3440 Min:     57 Act: 6600 Avg: 5190 Max:  846127";

    #[test]
    fn smi_counts_are_passed_over() {
        assert_eq!(max(&format!("{LINE} SMI:       3\n")), Ok(846_127.0));
    }

    #[test]
    fn wide_fields_are_nanoseconds() {
        let line = "T: 0 ( 136) P:99 I:1000 C:   3440 Min:   1057 Act:    6600 Avg:    5190 Max:   46127\n";
        assert_eq!(max(line), Ok(46.127));
        // Large microsecond values fill the field instead of being padded.
        let line = "T: 0 ( 136) P:99 I:1000 C:   3440 Min:   1057 Act:12345678 Avg:12345678 Max:12345678\n";
        assert_eq!(max(line), Ok(12_345_678.0));
    }

    #[test]
    fn escapes_are_removed() {
        assert_eq!(
            without_escapes("\u{1b}[4Apolicy\u{1b}[0;1m: \u{1b}"),
            "policy: "
        );
    }

    #[test]
    fn troubles() {
        let second = LINE.replace("T: 0", "T: 1");
        assert_eq!(max(""), Err(ErrorKind::Foreign));
        assert_eq!(max("       0:       1:      35\n"), Err(ErrorKind::Foreign));
        assert_eq!(max(LINE), Err(ErrorKind::Cut));
        assert_eq!(
            max(&format!("{LINE}\n{second}\n{LINE}\n")),
            Err(ErrorKind::Cut)
        );
        let begun = format!("{LINE}\n{second}\n\u{1b}[4Apolicy: fifo\n\n");
        assert_eq!(max(&begun), Err(ErrorKind::Cut));
        assert_eq!(
            max(&format!("{LINE}\n{second}\n\u{1b}[4A")),
            Err(ErrorKind::Cut)
        );
        assert_eq!(
            max(&format!("{LINE}\n{}", &second[..70])),
            Err(ErrorKind::Cut)
        );
        assert_eq!(
            max(&format!("{}\n{second}\n", &LINE[..70])),
            Err(ErrorKind::Malformed)
        );
        assert_eq!(max(&format!("{second}\n")), Err(ErrorKind::Inconsistent));
        assert_eq!(
            max("T: 0 ( 9) P:99 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n"),
            Err(ErrorKind::NothingMeasured)
        );
        let error = parse(format!("{LINE}\nT: 1 x\n{LINE}\n").as_bytes()).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(
            error
                .to_string()
                .starts_with("cyclictest-text line 2: found \"T: 1 x\", expected `T:"),
            "{error}"
        );
    }
}
