//! No input makes the reader panic.

use klab_ftrace::{Reading, read};
use proptest::collection::vec;
use proptest::prelude::*;

const SAMPLES: [&[u8]; 4] = [
    include_bytes!("data/madvise-riscv64-6.5-rt6-before.txt"),
    include_bytes!("data/madvise-riscv64-6.5-rt6-after.txt"),
    include_bytes!("data/trace-wakeup_rt-nofunc.txt"),
    include_bytes!("data/trace-wakeup_rt-func.txt"),
];

/// Reads and asks everything, so that no answer panics either.
fn exercise(bytes: &[u8]) {
    match read(bytes) {
        Ok(Reading::Latency(trace)) => {
            let _ = (trace.culprit(), trace.is_cut(), trace.task());
            for event in &trace.events {
                assert!(event.line >= 1);
                for column in &trace.columns {
                    let _ = trace.flag(event, column);
                }
            }
        }
        Ok(_) => {}
        Err(error) => assert!(error.line >= 1 && !error.to_string().is_empty()),
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn any_line_in_an_event_block(line in "[ -~\u{e9}\u{1f980}]{0,60}") {
        let sample = SAMPLES[2];
        let mut text = sample.to_vec();
        text.extend(line.as_bytes());
        text.push(b'\n');
        exercise(&text);
    }

    #[test]
    fn mutated_samples(
        which in 0..SAMPLES.len(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..12),
    ) {
        let mut text = SAMPLES[which].to_vec();
        for (at, byte, how) in edits {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => { text.remove(at); }
            }
        }
        exercise(&text);
    }

    #[test]
    fn cut_samples_never_look_whole(which in 0..SAMPLES.len(), at in any::<prop::sample::Index>()) {
        let sample = SAMPLES[which];
        let last_event = sample.windows(5).rposition(|w| w == b"us : ").expect("there are events");
        let cut = at.index(last_event);
        if let Ok(Reading::Latency(trace)) = read(&sample[..cut]) {
            prop_assert!(trace.is_cut());
        }
    }
}
