//! Files that the real tools wrote, and what is derived from them.

use std::fmt::Write;

use klab_parse::{ErrorKind, Parsed, ResultFormat, parse};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

fn read(format: ResultFormat, bytes: &[u8]) -> Parsed {
    parse(format, bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn render(parsed: &Parsed) -> String {
    let mut out = format!("parser {}\ntool {:?}\n", parsed.parser, parsed.tool);
    for s in &parsed.samples {
        writeln!(
            out,
            "{} = {} {} ({} is better)",
            s.metric, s.value, s.unit, s.direction
        )
        .expect("writing to a String");
    }
    for remark in &parsed.remarks {
        writeln!(out, "remark: {remark}").expect("writing to a String");
    }
    out
}

fn value(parsed: &Parsed, metric: &str) -> f64 {
    let found = parsed.samples.iter().find(|s| s.metric.as_str() == metric);
    found.unwrap_or_else(|| panic!("no {metric}")).value
}

/// The live output up to the end of its last whole update.
fn whole_updates() -> &'static [u8] {
    let live = data!("cyclictest-live.txt");
    let end = live
        .windows(3)
        .rposition(|w| w == b"\x1b[4")
        .expect("the cursor moves");
    &live[..end]
}

#[test]
fn cyclictest_text() {
    let func = read(ResultFormat::CyclictestText, data!("cyclictest-func.txt"));
    let nofunc = read(ResultFormat::CyclictestText, data!("cyclictest-nofunc.txt"));
    insta::assert_snapshot!(render(&func) + &render(&nofunc));
}

#[test]
fn cyclictest_live() {
    insta::assert_snapshot!(render(&read(ResultFormat::CyclictestText, whole_updates())));
}

#[test]
fn cyclictest_histogram() {
    insta::assert_snapshot!(render(&read(
        ResultFormat::CyclictestHistogram,
        data!("cyclictest-hist.txt")
    )));
}

#[test]
fn cyclictest_json() {
    let func = read(ResultFormat::CyclictestJson, data!("cyclictest-func.json"));
    let nofunc = read(
        ResultFormat::CyclictestJson,
        data!("cyclictest-nofunc.json"),
    );
    let hist = read(ResultFormat::CyclictestJson, data!("cyclictest-hist.json"));
    insta::assert_snapshot!(render(&func) + &render(&nofunc) + &render(&hist));
}

#[test]
fn stress_ng() {
    let func = read(ResultFormat::StressNgYaml, data!("stress-ng-func.yaml"));
    let nofunc = read(ResultFormat::StressNgYaml, data!("stress-ng-nofunc.yaml"));
    // It has a line without its indent in a section that nobody needs.
    let riscv = read(ResultFormat::StressNgYaml, data!("stress-ng-0.19.yaml"));
    insta::assert_snapshot!(render(&func) + &render(&nofunc) + &render(&riscv));
}

#[test]
fn latency_traces() {
    let func = read(
        ResultFormat::LatencyTrace,
        data!("trace-wakeup_rt-func.txt"),
    );
    let nofunc = read(
        ResultFormat::LatencyTrace,
        data!("trace-wakeup_rt-nofunc.txt"),
    );
    insta::assert_snapshot!(render(&func) + &render(&nofunc));
}

#[test]
fn text_and_json_of_one_trial_agree() {
    for (text, json) in [
        (data!("cyclictest-func.txt"), data!("cyclictest-func.json")),
        (
            data!("cyclictest-nofunc.txt"),
            data!("cyclictest-nofunc.json"),
        ),
    ] {
        let text = read(ResultFormat::CyclictestText, text);
        let json = read(ResultFormat::CyclictestJson, json);
        for metric in ["cyclictest.latency.max", "cyclictest.latency.min"] {
            assert_eq!(value(&text, metric), value(&json, metric));
        }
        // Text cuts averages to whole microseconds.
        let avg = "cyclictest.latency.avg";
        assert!((value(&text, avg) - value(&json, avg)).abs() < 1.0);
    }
}

#[test]
fn histogram_text_and_json_of_one_trial_agree() {
    let text = read(
        ResultFormat::CyclictestHistogram,
        data!("cyclictest-hist.txt"),
    );
    let json = read(ResultFormat::CyclictestJson, data!("cyclictest-hist.json"));
    assert_eq!(value(&text, "cyclictest.latency.max"), 308_656.0);
    assert_eq!(
        value(&text, "cyclictest.latency.max"),
        value(&json, "cyclictest.latency.max")
    );
    assert_eq!(text.remarks, json.remarks);
}

#[test]
fn a_cut_live_output_is_refused() {
    let error = parse(ResultFormat::CyclictestText, data!("cyclictest-live.txt")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cut);
    assert!(error.found.starts_with("T: 1"), "{error}");
}

#[test]
fn a_file_of_another_format_is_refused() {
    let files = [
        (ResultFormat::CyclictestText, data!("cyclictest-func.txt")),
        (
            ResultFormat::CyclictestHistogram,
            data!("cyclictest-hist.txt"),
        ),
        (ResultFormat::CyclictestJson, data!("cyclictest-hist.json")),
        (ResultFormat::StressNgYaml, data!("stress-ng-func.yaml")),
        (
            ResultFormat::LatencyTrace,
            data!("trace-wakeup_rt-func.txt"),
        ),
    ];
    for (own, bytes) in files {
        for format in ResultFormat::ALL
            .into_iter()
            .filter(|format| *format != own)
        {
            let error = parse(format, bytes).expect_err("the format is another");
            assert_eq!(error.kind, ErrorKind::Foreign, "{own} as {format}: {error}");
        }
    }
}
