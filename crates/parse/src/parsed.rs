//! What a parser hands back.

use std::fmt;

use klab_model::{Direction, Metric, ResultFormat, Sample, Unit};

/// The parser that derived samples. Samples of one artifact from different versions
/// must not be mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParserId {
    /// The format that the parser reads; its name is the parser's name.
    pub format: ResultFormat,
    /// Raised whenever the same bytes would give other samples.
    pub version: u32,
}

impl ParserId {
    /// The parser that [`parse`](crate::parse) uses for `format` today.
    #[must_use]
    pub const fn current(format: ResultFormat) -> Self {
        let version = match format {
            ResultFormat::CyclictestText
            | ResultFormat::CyclictestHistogram
            | ResultFormat::CyclictestJson
            | ResultFormat::StressNgYaml
            | ResultFormat::LatencyTrace => 1,
        };
        Self { format, version }
    }

    /// Name of the parser, for rows and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.format.as_str()
    }
}

impl fmt::Display for ParserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name(), self.version)
    }
}

/// Samples with their origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// Who derived them.
    pub parser: ParserId,
    /// Name and version of the measuring tool, if the file says so. Rates of different
    /// stress-ng versions must not be compared.
    pub tool: Option<String>,
    /// The samples; at least one.
    pub samples: Vec<Sample>,
    /// What a reader of the samples should know.
    pub remarks: Vec<Remark>,
}

impl Parsed {
    pub(crate) fn new(format: ResultFormat) -> Self {
        Self {
            parser: ParserId::current(format),
            tool: None,
            samples: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

/// Something that a reader of the samples should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// Latencies above the histogram are so many that a percentile lies among them; it
    /// was left out.
    BeyondHistogram {
        /// The metric that is missing.
        metric: Metric,
        /// Latencies above the histogram.
        overflows: u64,
        /// All latencies.
        cycles: u64,
    },
    /// The function that held the CPU at the end of the latency.
    Culprit {
        /// Its name.
        function: String,
    },
    /// The ring buffer of the trace ran over: the latency stands, but its beginning is
    /// not in the trace.
    TraceOverrun {
        /// Events that are gone.
        lost: u64,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeyondHistogram {
                metric,
                overflows,
                cycles,
            } => write!(
                f,
                "{metric} lies above the histogram ({overflows} of {cycles} latencies do); \
                 give cyclictest a larger -h"
            ),
            Self::Culprit { function } => write!(f, "CPU held by {function}()"),
            Self::TraceOverrun { lost } => {
                write!(
                    f,
                    "the trace lost its first {lost} events; give it a larger buffer_size_kb"
                )
            }
        }
    }
}

/// A sample of a metric whose name is known to be legal.
pub(crate) fn sample(metric: &str, value: f64, unit: Unit, direction: Direction) -> Sample {
    Sample {
        metric: known_metric(metric),
        value,
        unit,
        direction,
    }
}

/// A metric whose name was written in this crate or checked before.
pub(crate) fn known_metric(name: &str) -> Metric {
    Metric::parse(name).expect("metric names are made of legal words only")
}
