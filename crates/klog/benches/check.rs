//! Reading a log against the least that reading the same bytes costs.
#![allow(missing_docs)]

use std::fmt::Write as _;

use klab_testkit::bench::{compare, timed};

/// Boots with an oops now and then, as a board writes them in some weeks.
fn console() -> String {
    let boot = include_str!("../tests/data/virtual-board.txt");
    let oops = include_str!("../tests/data/x86-oops.txt");
    let mut text = String::new();
    for round in 0..200 {
        text.push_str(boot);
        for line in 0..500 {
            let _ = writeln!(
                text,
                "[{line:5}.000000] usb 1-1: device {round} said {line}"
            );
        }
        if round % 10 == 0 {
            text.push_str(oops);
        }
    }
    text
}

fn main() {
    let text = console();
    let read = || klab_klog::read(text.as_bytes());
    if let Err(error) = read() {
        panic!("{error}");
    }
    let lines = text.lines().count();
    let name = format!("klog, {lines} lines");
    compare(
        (&name, || timed(read)),
        ("checking the text and counting its lines", || {
            timed(|| std::str::from_utf8(text.as_bytes()).map(|text| text.lines().count()))
        }),
        10,
    );
}
