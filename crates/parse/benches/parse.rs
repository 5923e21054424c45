//! Parsers against the least that reading the same bytes costs.
#![allow(missing_docs)]

use std::fmt::Write as _;

use klab_parse::{ResultFormat, parse};
use klab_testkit::bench::{compare, timed};

/// What cyclictest wrote on a board, with histograms of 8 threads.
fn histogram() -> String {
    let mut text =
        String::from("{\"file_version\": 1,\"return_code\": 0,\"num_threads\": 8,\"thread\": {");
    for thread in 0..8 {
        let comma = if thread == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{thread}\": {{\"histogram\": {{");
        for bucket in 1..5000_u32 {
            let comma = if bucket == 1 { "" } else { "," };
            let _ = write!(text, "{comma}\"{bucket}\": {}", 1 + 900_000 / bucket);
        }
        let cycles: u32 = (1..5000).map(|bucket| 1 + 900_000 / bucket).sum();
        let _ = write!(
            text,
            "}},\"cycles\": {cycles},\"min\": 1,\"max\": 4999,\"avg\": 543.21,\"cpu\": {thread},\
             \"node\": 0}}"
        );
    }
    text.push_str("}}");
    text
}

/// A latency trace with many functions between wake-up and switch.
fn trace() -> String {
    let text = include_str!("../tests/data/trace-wakeup_rt-nofunc.txt");
    let start = text.find("\nstress-n").or_else(|| text.find("us : "));
    let start = text[..start.unwrap_or(0) + 1]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let mut trace = text[..start].to_owned();
    for entry in 0..50_000 {
        let _ = writeln!(
            trace,
            "stress-n-133       0dNh5. {entry:>5}us : try_to_wake_up <-wake_up_process"
        );
    }
    trace
}

fn main() {
    let json = histogram();
    let read = || parse(ResultFormat::CyclictestJson, json.as_bytes());
    if let Err(error) = read() {
        panic!("{error}");
    }
    compare(
        ("cyclictest-json, 40000 buckets", || timed(read)),
        ("serde_json without a meaning", || {
            timed(|| serde_json::from_str::<serde_json::Value>(&json))
        }),
        100,
    );
    let trace = trace();
    let read = || parse(ResultFormat::LatencyTrace, trace.as_bytes());
    if let Err(error) = read() {
        panic!("{error}");
    }
    compare(
        ("latency-trace, 50000 entries", || timed(read)),
        ("counting the lines", || timed(|| trace.lines().count())),
        100,
    );
}
