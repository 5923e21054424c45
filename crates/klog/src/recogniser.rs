//! The state between two lines.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::message::{Message, messages, regex};
use crate::report::QUOTED;
use crate::rules::{begins, continues, place};
use crate::{Blame, Boot, Kind, LogReport, Report, Verdict};

/// Boots that are kept of a log.
pub const MOST_BOOTS: usize = 1000;
/// Different reports that are kept of a log.
pub const MOST_REPORTS: usize = 1000;
/// Lines that a report may have.
const LONGEST_REPORT: u64 = 200;
/// Lines of others that may stand inside of a report.
const STRANGERS: u32 = 3;
/// Characters of a command line that are kept: as many as x86 takes.
const LONGEST_COMMAND_LINE: usize = 2048;
/// Characters of a message that are kept.
const LONGEST_QUOTE: usize = 300;
/// Stamps of CPUs that write at once may be out of order by less than this, in seconds.
const BACK: f64 = 1.0;

static BANNER: LazyLock<Regex> = LazyLock::new(|| regex(r"^Linux version (?P<r>\d+\.\d+\S*)"));
static COMMAND_LINE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:Kernel c|C)ommand line: (?P<c>.*)"));
static LOADER: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^\s*(?:SeaBIOS \(version|OpenSBI v\d|U-Boot (?:SPL |TPL )?\d{4}\.|GNU GRUB|Welcome to GRUB",
        r"|Booting [`'].*'|Booting from (?:Hard|ROM|Floppy|DVD)|EFI stub: |BdsDxe: |iPXE |Starting kernel \.\.\.|Hit any key to stop autoboot)"
    ))
});
static LOADER_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^\s*(?:error: \S.*|Bad Linux RISCV Image magic!.*|Bad Linux ARM64 Image magic!.*|Wrong Image (?:Type|Format).*",
        r"|Bad Magic Number.*|No bootable device.*|Press any key to continue.*|Bad Header Checksum.*|Kernel image is (?:not|corrupt).*)"
    ))
});
/// What is only printed once the kernel has handed over.
static USERSPACE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^(?:Run /\S+ as init process|systemd\[1\]: |Welcome to \w|Startup finished in|init: |INIT: version",
        r"|\S+ login:|board: up after|Starting version \d|\[  OK  \] |\s*OpenRC )"
    ))
});
static GONE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^reboot: (?:Restarting|Power down|System halted|machine restart)"));

/// How far a boot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Unknown,
    Loader,
    Kernel,
    Userspace,
    Gone,
}

#[derive(Debug)]
struct Open {
    boot: Boot,
    phase: Phase,
    /// Whether user space was ever reached.
    reached: bool,
    panicked: bool,
    stamp: f64,
    /// Where each report stands in the list.
    known: HashMap<(Kind, String), usize>,
    /// The report that may go on.
    current: Option<Current>,
    /// The last thing that was said is a stall.
    stalled: bool,
}

#[derive(Debug)]
struct Current {
    /// In the list of reports; none for one that is not kept, or came before.
    index: Option<usize>,
    kind: Kind,
    began: u64,
    strangers: u32,
}

/// Takes a log line by line.
#[derive(Debug)]
pub struct Recogniser {
    line: u64,
    open: Option<Open>,
    closed: Vec<Boot>,
    reports: usize,
    worst: Option<Verdict>,
    more_boots: u64,
    more_reports: u64,
    kernel_reports: u64,
}

impl Default for Recogniser {
    fn default() -> Self {
        Self::new()
    }
}

impl Recogniser {
    /// Before the first line.
    #[must_use]
    pub fn new() -> Self {
        Self {
            line: 0,
            open: None,
            closed: Vec::new(),
            reports: 0,
            worst: None,
            more_boots: 0,
            more_reports: 0,
            kernel_reports: 0,
        }
    }

    /// Takes the next line, without its line feed.
    pub fn line(&mut self, line: &[u8]) {
        self.line += 1;
        for message in messages(line) {
            self.message(&message);
        }
    }

    /// What was in it.
    #[must_use]
    pub fn finish(mut self) -> LogReport {
        self.close();
        LogReport {
            verdict: self.worst.unwrap_or(Verdict::NoKernel),
            lines: self.line,
            boots: self.closed,
            more_boots: self.more_boots,
            more_reports: self.more_reports,
            kernel_reports: self.kernel_reports,
        }
    }

    fn message(&mut self, message: &Message) {
        let text = message.text.as_str();
        let phase = phase_of(message);
        if self.begins_a_boot(message, phase) {
            self.close();
        }
        let line = self.line;
        let open = self.open.get_or_insert_with(|| Open::new(line));
        open.boot.last_line = line;
        open.enter(phase);
        if let Some(stamp) = message.stamp {
            open.stamp = stamp;
        }
        if open.phase <= Phase::Loader && open.boot.loader_error.is_none() {
            let error = LOADER_ERROR.find(text);
            if let Some(error) = error {
                open.phase = Phase::Loader;
                open.boot.loader_error = Some(short(error.as_str().trim()));
            }
        }
        if let Some(banner) = BANNER.captures(text) {
            open.boot.release = Some(short(&banner["r"]));
        }
        if let Some(line) = COMMAND_LINE.captures(text) {
            let line = line["c"].chars().take(LONGEST_COMMAND_LINE).collect();
            open.boot.command_line = Some(line);
        }
        match begins(text) {
            Some((kind, title)) if !open.belongs(kind, text) => self.report(kind, title, text),
            _ => self.goes_on(text),
        }
    }

    fn begins_a_boot(&self, message: &Message, phase: Phase) -> bool {
        let Some(open) = &self.open else { return false };
        let begun = open.phase >= Phase::Kernel;
        let banner = BANNER.is_match(&message.text);
        let back = message.stamp.is_some_and(|stamp| stamp + BACK < open.stamp);
        (begun && phase == Phase::Loader)
            || (banner && open.boot.release.is_some())
            || (banner && begun && open.stamp > BACK)
            || back
    }

    fn report(&mut self, kind: Kind, title: String, text: &str) {
        let line = self.line;
        let Some(open) = &mut self.open else { return };
        open.stalled = kind.is_stall();
        open.enter(Phase::Kernel);
        let key = (kind, title);
        let known = open.known.get(&key);
        if known.is_none() && kind.blame() == Blame::Kernel {
            self.kernel_reports += 1;
        }
        let index = match known {
            Some(index) => {
                if let Some(report) = open.boot.reports.get_mut(*index) {
                    report.count += 1;
                }
                None
            }
            None if self.reports >= MOST_REPORTS => {
                self.more_reports += 1;
                None
            }
            None => {
                self.reports += 1;
                open.known.insert(key.clone(), open.boot.reports.len());
                open.boot.reports.push(Report {
                    kind,
                    title: key.1,
                    function: None,
                    first_line: line,
                    last_line: line,
                    quote: vec![short(text)],
                    count: 1,
                });
                Some(open.boot.reports.len() - 1)
            }
        };
        open.panicked |= kind == Kind::Panic;
        open.current = Some(Current {
            index,
            kind,
            began: line,
            strangers: 0,
        });
    }

    /// A message that begins no report: it may belong to the one before.
    fn goes_on(&mut self, text: &str) {
        let line = self.line;
        let Some(open) = &mut self.open else { return };
        let Some(current) = &mut open.current else {
            open.stalled = false;
            return;
        };
        let own = continues(text) || begins(text).is_some();
        if !own {
            current.strangers += 1;
        }
        if line - current.began > LONGEST_REPORT || current.strangers > STRANGERS {
            open.current = None;
            open.stalled = false;
            return;
        }
        let report = current.index.and_then(|at| open.boot.reports.get_mut(at));
        if let (true, Some(report)) = (own, report) {
            report.last_line = line;
            if report.quote.len() < QUOTED {
                report.quote.push(short(text));
            }
            if report.function.is_none() {
                report.function = place(text);
            }
        }
        if text.starts_with("---[ end ") {
            open.current = None;
        }
    }

    fn close(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        open.boot.verdict = open.verdict();
        self.worst = self.worst.into_iter().chain([open.boot.verdict]).min();
        if self.closed.len() < MOST_BOOTS {
            self.closed.push(open.boot);
        } else {
            self.more_boots += 1;
        }
    }
}

impl Open {
    fn new(line: u64) -> Self {
        Self {
            boot: Boot {
                verdict: Verdict::NoKernel,
                first_line: line,
                last_line: line,
                release: None,
                command_line: None,
                loader_error: None,
                reports: Vec::new(),
            },
            phase: Phase::Unknown,
            reached: false,
            panicked: false,
            stamp: 0.0,
            known: HashMap::new(),
            current: None,
            stalled: false,
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = self.phase.max(phase);
        self.reached |= phase == Phase::Userspace;
    }

    /// Whether what looks like a beginning goes on with the report at hand: a fault is told in
    /// several ways, and the end of a panic repeats its beginning.
    fn belongs(&self, kind: Kind, text: &str) -> bool {
        if text.starts_with("---[ end Kernel panic") && self.panicked {
            return true;
        }
        let Some(current) = &self.current else {
            return false;
        };
        kind == Kind::Oops && matches!(current.kind, Kind::Oops | Kind::Bug | Kind::List)
            || kind == Kind::RcuStall && current.kind == Kind::RcuStall
            // A WARN_ON of a reference count has both lines.
            || kind == Kind::Warning && current.kind == Kind::Refcount
    }

    fn verdict(&self) -> Verdict {
        match self.phase {
            _ if self.panicked => Verdict::Panicked,
            Phase::Unknown => Verdict::NoKernel,
            Phase::Loader => Verdict::NeverStarted,
            Phase::Gone if self.reached => Verdict::Booted,
            _ if self.stalled || !self.reached => Verdict::Hung,
            _ => Verdict::Booted,
        }
    }
}

fn phase_of(message: &Message) -> Phase {
    let text = message.text.as_str();
    if message.stamp.is_none() && LOADER.is_match(text) {
        Phase::Loader
    } else if GONE.is_match(text) {
        Phase::Gone
    } else if USERSPACE.is_match(text) {
        Phase::Userspace
    } else if message.stamp.is_some() || BANNER.is_match(text) {
        Phase::Kernel
    } else {
        Phase::Unknown
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_QUOTE).collect()
}
