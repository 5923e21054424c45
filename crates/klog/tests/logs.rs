//! What is found in logs of all kinds.
#![allow(missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use klab_klog::{LogReport, Recogniser, Verdict, read};
use proptest::prelude::*;

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read(folder.join(name)).expect("a log")
}

fn all() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(folder).expect("logs");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), data(&name)))
        .collect()
}

fn of(bytes: &[u8]) -> LogReport {
    read(bytes).expect("memory can be read")
}

/// One line per boot and report.
fn described(log: &LogReport) -> String {
    let mut text = format!("{}, {} lines\n", log.verdict.as_str(), log.lines);
    for boot in &log.boots {
        let (first, last) = (boot.first_line, boot.last_line);
        let release = boot.release.as_deref().unwrap_or("-");
        let verdict = boot.verdict.as_str();
        let _ = writeln!(text, "  {first}-{last} {verdict}, {release}");
        for (name, value) in [
            ("command line", &boot.command_line),
            ("loader", &boot.loader_error),
        ] {
            if let Some(value) = value {
                let _ = writeln!(text, "    {name}: {value}");
            }
        }
        for report in &boot.reports {
            let (first, last) = (report.first_line, report.last_line);
            let function = report.function.as_deref().unwrap_or("-");
            let kind = report.kind.as_str();
            let (title, count) = (&report.title, report.count);
            let _ = writeln!(
                text,
                "    {first}-{last} {kind}: {title} [{function}] x{count}"
            );
        }
    }
    text
}

#[test]
fn boots_verdicts_and_reports() {
    let mut text = String::new();
    for (name, bytes) in all() {
        let _ = writeln!(text, "{name}: {}", described(&of(&bytes)));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_of_a_kernel() {
    for text in ["", "\n\n", "hello\nworld\n", "\0\0\u{7}\u{1b}[1m"] {
        assert_eq!(of(text.as_bytes()).verdict, Verdict::NoKernel, "{text:?}");
    }
    let log = of(b"Linux version 6.12.0 (klab) #1\n");
    assert_eq!(log.verdict, Verdict::Hung);
}

#[test]
fn a_huge_line_and_very_many_boots_are_bounded() {
    let mut log = vec![b'x'; 3 << 20];
    log.push(b'\n');
    for n in 0..3000 {
        let _ = write_bytes(
            &mut log,
            &format!("Linux version 6.{n}.0 (klab) #1\nBUG: number N{n}x\n"),
        );
    }
    let log = of(&log);
    assert_eq!(log.lines, 6001);
    assert_eq!(log.boots.len(), klab_klog::MOST_BOOTS);
    assert_eq!(log.more_boots, 2000);
    assert_eq!((log.more_reports, log.kernel_reports), (2000, 3000));
    assert_eq!(log.verdict, Verdict::Hung);
}

#[test]
fn only_what_the_kernel_did_is_its_report() {
    let log = of(b"[    0.000000] Linux version 6.12.0 (klab) #1\n\
        [    1.000000] I/O error, dev vda, sector 8 op 0x0:(READ)\n\
        [    2.000000] Out of memory: Killed process 7 (stress-ng-vm) total-vm:1kB\n\
        [    3.000000] WARNING: CPU: 0 PID: 1 at mm/a.c:7 f+0x1/0x2\n\
        [    4.000000] ---[ end trace 0000000000000000 ]---\n\
        [    5.000000] WARNING: CPU: 1 PID: 9 at mm/a.c:7 f+0x1/0x2\n");
    assert_eq!(log.boots[0].reports.len(), 3);
    assert_eq!(log.kernel_reports, 1);
}

fn write_bytes(log: &mut Vec<u8>, text: &str) -> std::fmt::Result {
    log.extend_from_slice(text.as_bytes());
    Ok(())
}

/// The reports without their places.
fn titles(log: &LogReport) -> Vec<(Verdict, Vec<String>)> {
    let boot = |boot: &klab_klog::Boot| {
        let titles = boot
            .reports
            .iter()
            .map(|r| format!("{:?} {}", r.kind, r.title));
        (boot.verdict, titles.collect())
    };
    log.boots.iter().map(boot).collect()
}

#[test]
fn carriage_returns_colours_and_levels_change_nothing() {
    for (name, bytes) in all() {
        let expected = titles(&of(&bytes));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let dressed: [fn(&str) -> String; 3] = [
            |line| format!("\r{line}\r"),
            |line| format!("\u{1b}[0;1;31m{line}\u{1b}[0m"),
            |line| format!("{line}\0\u{1b}[K"),
        ];
        for dress in dressed {
            let lines: Vec<String> = text.lines().map(dress).collect();
            let found = titles(&of(lines.join("\n").as_bytes()));
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn without_time_stamps_the_reports_are_the_same() {
    for name in ["x86-oops.txt", "stalls.txt", "riscv-oops-panic.txt"] {
        let text = String::from_utf8(data(name)).expect("text");
        let bare: Vec<&str> = text
            .lines()
            .map(|line| match line.strip_prefix('[') {
                Some(rest) => rest.rsplit_once("] ").map_or("", |_| after_stamps(rest)),
                None => line,
            })
            .collect();
        let with = titles(&of(text.as_bytes()));
        assert_eq!(titles(&of(bare.join("\n").as_bytes())), with, "{name}");
    }
}

fn after_stamps(rest: &str) -> &str {
    let (_, rest) = rest.split_once(']').expect("a stamp");
    match rest.strip_prefix('[') {
        Some(caller) => caller.split_once("] ").expect("a caller").1,
        None => rest.trim_start_matches(' '),
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let log = of(&bytes);
        prop_assert_eq!(log.boots.is_empty(), log.verdict == Verdict::NoKernel && log.boots.is_empty());
    }

    #[test]
    fn a_log_that_was_cut_tells_nothing_that_was_not_in_it(which in 0usize..8, from in 0.0f64..1.0, to in 0.0f64..1.0) {
        let logs = all();
        let (name, bytes) = &logs[which % logs.len()];
        let at = |part: f64| (part * bytes.len() as f64) as usize;
        let (from, to) = (at(from.min(to)), at(from.max(to)));
        // Cut at line ends: half a line may read otherwise.
        let from = bytes[..from].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let to = bytes[..to].iter().rposition(|b| *b == b'\n').map_or(from, |at| (at + 1).max(from));
        let whole = of(bytes);
        let known: Vec<String> = titles(&whole).into_iter().flat_map(|(_, titles)| titles).collect();
        for (_, found) in titles(&of(&bytes[from..to])) {
            for title in found {
                // What belonged to a report whose beginning is gone begins one itself.
                let part = title.starts_with("Oops") || title.starts_with("Panic");
                prop_assert!(part || known.contains(&title), "{}: {}", name, title);
            }
        }
    }

    #[test]
    fn places_are_in_order_and_inside(which in 0usize..8, noise in proptest::collection::vec("[ -~]{0,30}", 0..5)) {
        let logs = all();
        let (_, bytes) = &logs[which % logs.len()];
        let mut text = noise.join("\n").into_bytes();
        text.push(b'\n');
        text.extend_from_slice(bytes);
        let log = of(&text);
        let mut last = 0;
        for boot in &log.boots {
            prop_assert!(boot.first_line >= last && boot.last_line >= boot.first_line);
            last = boot.last_line;
            for report in &boot.reports {
                prop_assert!(report.first_line >= boot.first_line && report.last_line <= boot.last_line);
                prop_assert!(report.last_line >= report.first_line && !report.quote.is_empty());
            }
        }
        prop_assert!(last <= log.lines);
    }

    #[test]
    fn pieces_of_any_size_read_the_same(which in 0usize..8, size in 1usize..200) {
        let logs = all();
        let (_, bytes) = &logs[which % logs.len()];
        let reader = std::io::BufReader::with_capacity(size, &bytes[..]);
        prop_assert_eq!(read(reader).expect("memory"), of(bytes));
        let mut recogniser = Recogniser::new();
        for line in bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|b| *b == b'\n') {
            recogniser.line(line);
        }
        prop_assert_eq!(recogniser.finish(), of(bytes));
    }
}
