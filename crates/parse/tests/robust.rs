//! No input makes a parser panic, and no cut file gives samples.

use klab_parse::{ResultFormat, parse};
use proptest::collection::vec;
use proptest::prelude::*;

const SAMPLES: [(ResultFormat, &[u8]); 8] = [
    (
        ResultFormat::CyclictestText,
        include_bytes!("data/cyclictest-func.txt"),
    ),
    (
        ResultFormat::CyclictestText,
        include_bytes!("data/cyclictest-live.txt"),
    ),
    (
        ResultFormat::CyclictestHistogram,
        include_bytes!("data/cyclictest-hist.txt"),
    ),
    (
        ResultFormat::CyclictestJson,
        include_bytes!("data/cyclictest-func.json"),
    ),
    (
        ResultFormat::CyclictestJson,
        include_bytes!("data/cyclictest-hist.json"),
    ),
    (
        ResultFormat::StressNgYaml,
        include_bytes!("data/stress-ng-func.yaml"),
    ),
    (
        ResultFormat::LatencyTrace,
        include_bytes!("data/trace-wakeup_rt-func.txt"),
    ),
    (
        ResultFormat::LatencyTrace,
        include_bytes!("data/trace-wakeup_rt-nofunc.txt"),
    ),
];

/// Whatever the bytes: samples are finite and there is one, or the error has a place.
fn exercise(format: ResultFormat, bytes: &[u8]) {
    match parse(format, bytes) {
        Ok(parsed) => {
            assert!(!parsed.samples.is_empty());
            assert!(parsed.samples.iter().all(|s| s.value.is_finite()));
        }
        Err(error) => {
            assert!(error.line >= 1 && error.column != Some(0));
            assert!(!error.expected.is_empty() && !error.mend.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(which in 0..ResultFormat::ALL.len(), bytes in vec(any::<u8>(), 0..300)) {
        exercise(ResultFormat::ALL[which], &bytes);
    }

    #[test]
    fn any_text_after_a_sound_beginning(
        which in 0..SAMPLES.len(),
        at in any::<prop::sample::Index>(),
        text in "[ -~\n\t\u{1b}\u{e9}]{0,80}",
    ) {
        let (format, sample) = SAMPLES[which];
        let mut bytes = sample[..at.index(sample.len())].to_vec();
        bytes.extend(text.as_bytes());
        exercise(format, &bytes);
    }

    #[test]
    fn mutated_samples(
        which in 0..SAMPLES.len(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..10),
    ) {
        let (format, sample) = SAMPLES[which];
        let mut bytes = sample.to_vec();
        for (at, byte, how) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        exercise(format, &bytes);
    }
}

/// Every beginning of a file is refused, up to the point where only blank lines or
/// parts without meaning for the samples are missing.
#[test]
fn cut_files_give_no_samples() {
    for (format, sample) in SAMPLES {
        let whole = match format {
            ResultFormat::LatencyTrace => {
                // Frames of the last stack cannot be counted.
                sample
                    .windows(5)
                    .rposition(|w| w == b"us : ")
                    .expect("there are events")
            }
            ResultFormat::CyclictestText if sample.contains(&0x1b) => continue,
            // Only the first line of two threads is a sound file of one.
            ResultFormat::CyclictestText => {
                sample.iter().position(|b| *b == b'T').expect("a thread")
            }
            _ => sample.trim_ascii_end().len(),
        };
        // Every end of a line, and some places inside.
        let ends = (0..whole).filter(|end| end % 17 == 0 || sample[end - 1] == b'\n');
        for end in ends {
            assert!(
                parse(format, &sample[..end]).is_err(),
                "{format} cut at {end}"
            );
        }
    }
}
