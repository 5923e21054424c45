//! `klab log`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use klab_klog::{Boot, LogReport, Report, Verdict};

use crate::args::{Global, LogCommand};
use crate::exit::{CliError, ExitCode};
use crate::files::GZIP;
use crate::output;

pub(crate) fn run(global: &Global, command: LogCommand) -> Result<ExitCode, CliError> {
    let LogCommand::Check { file } = command;
    let (name, Checked { log, cut }) = read(&file)?;
    if global.json {
        let mut json = serde_json::to_value(&log).map_err(CliError::infrastructure)?;
        json["file"] = name.as_str().into();
        json["cut"] = cut.into();
        output::json(&json)?;
    } else {
        output::line(describe(&name, &log))?;
    }
    if cut {
        output::error(&format!(
            "{name}: the gzip file is cut off: what came after line {} is lost",
            log.lines
        ));
        return Ok(ExitCode::Failed);
    }
    Ok(judge(&log))
}

/// A kernel that booted and reported nothing about itself is fine.
fn judge(log: &LogReport) -> ExitCode {
    if log.verdict == Verdict::Booted && log.kernel_reports == 0 {
        ExitCode::Done
    } else {
        ExitCode::Failed
    }
}

/// What was read.
struct Checked {
    log: LogReport,
    /// The packed file has no end.
    cut: bool,
}

fn read(path: &Path) -> Result<(String, Checked), CliError> {
    if path == Path::new("-") {
        let log = check(io::stdin().lock());
        return match log {
            Ok(log) => Ok(("standard input".to_owned(), log)),
            Err(error) => Err(CliError::usage(format!("standard input: {error}"))),
        };
    }
    let name = path.display().to_string();
    let log = File::open(path).and_then(|file| check(BufReader::with_capacity(1 << 16, file)));
    match log {
        Ok(log) => Ok((name, log)),
        Err(error) => Err(CliError::usage(format!(
            "cannot read {name}: {error}; expected a console log, the output of dmesg, a journal \
             or a pstore dump, packed with gzip or not"
        ))),
    }
}

/// Reads a log, packed or not; of a packed one that was cut, what is there.
fn check(mut reader: impl BufRead) -> io::Result<Checked> {
    if reader.fill_buf()?.starts_with(&GZIP) {
        let mut packed = Packed {
            reader: MultiGzDecoder::new(reader),
            cut: false,
        };
        let log = klab_klog::read(BufReader::with_capacity(1 << 16, &mut packed))?;
        let cut = packed.cut;
        return Ok(Checked { log, cut });
    }
    let log = klab_klog::read(reader)?;
    Ok(Checked { log, cut: false })
}

/// A machine that dies leaves a file without its end: that is an end as well.
struct Packed<R> {
    reader: R,
    cut: bool,
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut = true;
                Ok(0)
            }
            result => result,
        }
    }
}

fn describe(name: &str, log: &LogReport) -> String {
    let boots = log.boots.len() as u64 + log.more_boots;
    let counts = format!(
        "{}, {}",
        output::counted(log.lines, "line", "lines"),
        output::counted(boots, "boot", "boots")
    );
    let mut parts = vec![format!("{name}: {} ({counts})\n", log.verdict.as_str())];
    // What stands around the boots of a log that has some is of no interest.
    let shown = |boot: &&Boot| boots == 1 || boot.verdict != Verdict::NoKernel;
    if log.verdict != Verdict::NoKernel {
        let shown: Vec<&Boot> = log.boots.iter().filter(shown).collect();
        parts.extend(
            shown
                .iter()
                .zip(1..)
                .map(|(boot, n)| describe_boot(n, boot)),
        );
    }
    for (more, one, many) in [
        (log.more_boots, "more boot", "more boots"),
        (log.more_reports, "more report", "more reports"),
    ] {
        if more > 0 {
            parts.push(format!("{}\n", output::counted(more, one, many)));
        }
    }
    parts.join("\n")
}

fn describe_boot(number: u64, boot: &Boot) -> String {
    let release = boot.release.as_deref().map(|r| format!(", Linux {r}"));
    let mut text = format!(
        "boot {number}, lines {}-{}: {}{}\n",
        boot.first_line,
        boot.last_line,
        boot.verdict.as_str(),
        release.unwrap_or_default()
    );
    for (what, value) in [
        ("command line", &boot.command_line),
        ("boot loader", &boot.loader_error),
    ] {
        if let Some(value) = value {
            text += &format!("  {what}: {value}\n");
        }
    }
    for report in &boot.reports {
        text += &describe_report(report);
    }
    text
}

fn describe_report(report: &Report) -> String {
    let (kind, function) = (report.kind.as_str(), report.function.as_deref());
    let said = output::kernel_report(kind, &report.title, function, report.count);
    let quote = output::quote(&report.quote);
    format!("  line {}: {said}\n{quote}", report.first_line)
}
