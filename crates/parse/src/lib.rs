//! Artifact bytes to samples.
//!
//! [`parse`] takes a [`ResultFormat`] and the bytes of one artifact and gives
//! [`Parsed`]: the samples, the version of the parser that derived them, and remarks
//! that a reader of the numbers should know. Raw artifacts stay the truth; a better
//! parser gets a higher version and derives again.
//!
//! | format | samples |
//! |---|---|
//! | `cyclictest-text`, `cyclictest-histogram`, `cyclictest-json` | `cyclictest.latency.min`, `.avg`, `.max`; with a histogram also `.p50` `.p90` `.p99` `.p99.9` |
//! | `stress-ng-yaml` | `stress-ng.STRESSOR.bogo-ops`, the two rates, `max-rss` |
//! | `latency-trace` | `TRACER.latency.max`, for instance `wakeup_rt.latency.max` |
//!
//! A file that was cut, contradicts itself or measured nothing is an error that names
//! the line, what stood there, what was expected and the mend: never half the samples.

mod cyclictest;
mod error;
mod lines;
mod parsed;
mod stress_ng;
mod trace;

pub use error::{ErrorKind, ParseError};
pub use klab_model::ResultFormat;
pub use parsed::{Parsed, ParserId, Remark};

/// Derives the samples of one artifact.
///
/// # Errors
/// [`ParseError`] if the bytes are not a whole, sound file of that format.
pub fn parse(format: ResultFormat, bytes: &[u8]) -> Result<Parsed, ParseError> {
    match format {
        ResultFormat::CyclictestText => cyclictest::text::parse(bytes),
        ResultFormat::CyclictestHistogram => cyclictest::histogram::parse(bytes),
        ResultFormat::CyclictestJson => cyclictest::json::parse(bytes),
        ResultFormat::StressNgYaml => stress_ng::parse(bytes),
        ResultFormat::LatencyTrace => trace::parse(bytes),
    }
}
