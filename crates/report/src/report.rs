//! What a report is made of.

use klab_compare::{Comparison, EnvironmentDifference, VariantConditions, Worst};
use klab_model::{
    Arch, ArtifactId, ArtifactName, BoardName, BuildId, IdentityProof, JobId, KernelName, Metric,
    PlanName, ResultFormat, TrialIndex, Unit, VariantName,
};
use serde::{Deserialize, Serialize};

/// The schema of the JSON form. Fields may be added; the meaning of one never changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The first one.
    #[default]
    #[serde(rename = "klab.report/v1")]
    V1,
}

/// Everything that is said about a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The schema of the JSON form.
    pub schema: Schema,
    /// The version of klab that made the report.
    pub klab_version: String,
    /// The job.
    pub job: JobId,
    /// Its plan.
    pub plan: PlanName,
    /// How often each variant is booted on each board.
    pub rounds: u32,
    /// One entry per kernel: a variant may have one for each architecture.
    pub kernels: Vec<KernelLine>,
    /// The boards of the job.
    pub boards: Vec<BoardLine>,
    /// Facts that were not the same for all variants.
    pub environment: Vec<EnvironmentDifference>,
    /// Per board and variant: agent cost, temperature, notes of the trials.
    pub conditions: Vec<VariantConditions>,
    /// The worst trials and what their traces say.
    pub worst_traces: Vec<WorstTrace>,
    /// The parsers that derived the samples.
    pub parsers: Vec<ParserVersion>,
    /// The numbers.
    #[serde(with = "crate::counting::comparison")]
    pub comparison: Comparison,
    /// Sentences for people.
    pub notes: Vec<String>,
}

/// The kernel of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLine {
    /// The variant.
    pub variant: VariantName,
    /// The name it was added under.
    pub kernel: KernelName,
    /// Its architecture.
    pub arch: Arch,
    /// What `uname -r` prints.
    pub release: String,
    /// Its build-id, where the package shows one.
    pub build_id: Option<BuildId>,
    /// By what it was recognised on the boards; `None` if no run got that far.
    pub proof: Option<IdentityProof>,
}

/// A board of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardLine {
    /// Its name.
    pub board: BoardName,
    /// Its architecture.
    pub arch: Arch,
    /// The model, as its firmware names it.
    pub model: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in KiB.
    pub memory_kib: u64,
}

/// A parser that derived samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParserVersion {
    /// The format it reads.
    pub format: ResultFormat,
    /// Its version.
    pub version: u32,
}

/// The worst trial of a variant and what its latency trace says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstTrace {
    /// The board.
    pub board: BoardName,
    /// The variant.
    pub variant: VariantName,
    /// The round of the run, from 0; shown from 1.
    #[serde(with = "crate::counting::round")]
    pub round: u32,
    /// The trial inside the run, from 0; shown from 1.
    #[serde(with = "crate::counting::trial")]
    pub trial: TrialIndex,
    /// The metric by which it is the worst.
    pub metric: Metric,
    /// The worst sample in `unit`.
    pub value: f64,
    /// The unit of `value`.
    pub unit: Unit,
    /// What the tracer saw.
    pub trace: TraceEvidence,
}

impl WorstTrace {
    /// The entry for a trial found by a comparison.
    pub fn new(
        board: &BoardName,
        metric: &klab_compare::MetricComparison,
        worst: &Worst,
        trace: TraceEvidence,
    ) -> Self {
        Self {
            board: board.clone(),
            variant: worst.variant.clone(),
            round: worst.round,
            trial: worst.trial,
            metric: metric.metric.clone(),
            value: worst.value,
            unit: metric.unit,
            trace,
        }
    }
}

/// What a latency tracer saw in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEvidence {
    /// The header of its trace.
    Latency {
        /// The tracer: `wakeup_rt`.
        tracer: String,
        /// The largest latency it saw, in microseconds.
        latency_us: u64,
        /// The artifact with the trace.
        artifact: ArtifactId,
        /// Its file name.
        file: ArtifactName,
    },
    /// There is no trace.
    Missing {
        /// Why, as a sentence without a full stop.
        reason: String,
    },
}
