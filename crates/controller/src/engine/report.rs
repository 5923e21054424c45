//! The report of a job, put together from rows.

use std::collections::BTreeSet;

use klab_compare::{
    Comparison, Input, MetricComparison, Observation, RunRecord, SignificanceRule, TrialConditions,
    Worst, compare, conditions, environment_differences,
};
use klab_model::{
    Artifact, ArtifactKind, BoardName, BoardSlot, JobId, KernelName, ResultFormat, RunId,
    VariantName,
};
use klab_proto::status::Reason;
use klab_report::{
    BoardLine, KernelLine, ParserVersion, Report, Schema, TraceEvidence, WorstTrace,
};
use klab_store::{Attempt, JobRecord, SampleRecord, TrialRecord};

use super::error::with_causes;
use super::ingest::{Reader, derived_by};
use super::{Engine, EngineError, found};

/// The largest trace that is read for a report, in bytes.
const MAX_TRACE: u64 = 256 << 20;

impl Engine {
    /// Everything that is said about a job, as far as it got.
    pub(crate) async fn report(&self, id: JobId) -> Result<Report, EngineError> {
        let record = self.store.job(id).await?;
        let trials = self.store.trials_of(id).await?;
        let samples = self.store.samples_of(id).await?;
        let attempts = self.store.attempts_of(id).await?;
        let variants: Vec<VariantName> =
            record.job.variants.iter().map(|v| v.name.clone()).collect();
        let trial_conditions: Vec<TrialConditions<'_>> = trials
            .iter()
            .map(|trial| TrialConditions {
                variant: &trial.variant,
                board: &trial.board,
                facts: &trial.result.facts,
                perturbation: trial.result.perturbation,
            })
            .collect();
        let comparison = compare(&Input {
            variants: variants.clone(),
            runs: run_records(&record),
            observations: observations(&samples, &trials),
            rule: SignificanceRule::default(),
            notes: Vec::new(),
        })
        .map_err(|error| EngineError::refused(Reason::Internal, with_causes(&error)))?;
        Ok(Report {
            schema: Schema::V1,
            klab_version: env!("CARGO_PKG_VERSION").to_owned(),
            job: id,
            plan: record.job.plan.name.clone(),
            rounds: record.job.rounds,
            kernels: self.kernel_lines(&record, &attempts).await?,
            boards: self.board_lines(&record).await?,
            environment: environment_differences(&variants, &trial_conditions),
            conditions: conditions(&variants, &trial_conditions),
            worst_traces: self.worst_traces(&record, &comparison).await?,
            parsers: parsers(&samples),
            comparison,
            notes: self.report_notes(&record).await?,
        })
    }

    async fn kernel_lines(
        &self,
        record: &JobRecord,
        attempts: &[Attempt],
    ) -> Result<Vec<KernelLine>, EngineError> {
        let mut lines = Vec::new();
        for variant in &record.job.variants {
            for name in &variant.kernels {
                // A kernel that could not be built; the notes say so.
                let Some(kernel) = found(self.store.kernel(name).await)? else {
                    continue;
                };
                let runs = self.runs_of(record, &variant.name, &kernel.name).await?;
                let proof = attempts
                    .iter()
                    .filter(|attempt| runs.contains(&attempt.run))
                    .find_map(|attempt| attempt.identity.as_ref())
                    .map(|identity| identity.proof.clone());
                lines.push(KernelLine {
                    variant: variant.name.clone(),
                    kernel: kernel.name,
                    arch: kernel.offer.arch,
                    release: kernel.offer.release,
                    build_id: kernel.offer.build_id,
                    proof,
                });
            }
        }
        Ok(lines)
    }

    /// The runs of a variant that boot this kernel.
    async fn runs_of(
        &self,
        record: &JobRecord,
        variant: &VariantName,
        kernel: &KernelName,
    ) -> Result<BTreeSet<RunId>, EngineError> {
        let mut runs = BTreeSet::new();
        for run in record.runs().filter(|run| run.variant == *variant) {
            let own = self.kernel_of(&record.job, run).await?;
            if own.is_some_and(|own| own.name == *kernel) {
                runs.insert(run.id);
            }
        }
        Ok(runs)
    }

    async fn board_lines(&self, record: &JobRecord) -> Result<Vec<BoardLine>, EngineError> {
        let mut lines = Vec::new();
        for name in record.job.boards.iter().filter_map(BoardSlot::board) {
            let board = self.store.board(name).await?.value;
            lines.push(BoardLine {
                board: board.name,
                arch: board.arch,
                model: board.facts.model,
                cpus: board.facts.cpus,
                memory_kib: board.facts.memory_kib,
            });
        }
        Ok(lines)
    }

    async fn worst_traces(
        &self,
        record: &JobRecord,
        comparison: &Comparison,
    ) -> Result<Vec<WorstTrace>, EngineError> {
        let artifacts = self.store.artifacts_of_job(record.job.id).await?;
        let mut traces = Vec::new();
        for section in &comparison.boards {
            for (metric, worst) in section.worst_latency_trials() {
                let place = (&section.board, metric, worst);
                traces.push(self.worst_trace(record, &artifacts, place).await?);
            }
        }
        Ok(traces)
    }

    async fn worst_trace(
        &self,
        record: &JobRecord,
        artifacts: &[Artifact],
        (board, metric, worst): (&BoardName, &MetricComparison, &Worst),
    ) -> Result<WorstTrace, EngineError> {
        let attempt = record
            .runs()
            .find(|run| run.id == worst.run)
            .map(|run| RunRecord::new(run, None).attempts);
        let trace = artifacts.iter().find(|artifact| {
            artifact.run == worst.run
                && Some(artifact.attempt) == attempt
                && artifact.trial == Some(worst.trial)
                && is_trace(artifact.kind)
        });
        let evidence = match (trace, &record.job.plan.trace) {
            (Some(artifact), _) => self.evidence(artifact).await?,
            (None, Some(plan)) => missing(format!(
                "the trial has no trace of {}; its notes say why",
                plan.tracer
            )),
            (None, None) => missing("the plan asks for no tracer"),
        };
        Ok(WorstTrace::new(board, metric, worst, evidence))
    }

    async fn evidence(&self, artifact: &Artifact) -> Result<TraceEvidence, EngineError> {
        if artifact.size > MAX_TRACE {
            return Ok(missing(format!("the trace has {} bytes", artifact.size)));
        }
        let bytes = self.store.objects().bytes(&artifact.digest).await?;
        let read = tokio::task::spawn_blocking(move || header_latency(&bytes))
            .await
            .map_err(|error| {
                EngineError::refused(Reason::Internal, format!("reading a trace failed: {error}"))
            })?;
        Ok(match read {
            Ok((tracer, latency_us)) => TraceEvidence::Latency {
                tracer,
                latency_us,
                artifact: artifact.id,
                file: artifact.name.clone(),
            },
            Err(reason) => missing(reason),
        })
    }

    async fn report_notes(&self, record: &JobRecord) -> Result<Vec<String>, EngineError> {
        let mut notes = Vec::new();
        let ended = record.runs().filter(|run| !run.state.is_live()).count();
        let all = record.runs.len();
        if ended < all {
            notes.push(format!("the job has not ended: {ended} of {all} runs have"));
        }
        for variant in &record.job.variants {
            for name in &variant.kernels {
                if found(self.store.kernel(name).await)?.is_some() {
                    continue;
                }
                let variant_name = &variant.name;
                notes.push(match variant.kernels.len() {
                    1 => format!("{variant_name} has no kernel: it was not built"),
                    _ => format!("{variant_name} has no kernel {name}: it was not built"),
                });
            }
        }
        for problem in self.store.parse_problems_of(record.job.id).await? {
            let name = found(self.store.artifact(problem.artifact).await)?
                .map(|artifact| format!("{} ", artifact.name))
                .unwrap_or_default();
            notes.push(format!(
                "no {} from artifact {name}{}: {}",
                derived_by(&problem.parser),
                problem.artifact,
                problem.problem
            ));
        }
        notes.extend(self.kernel_reports(record.job.id).await?.notes(record));
        Ok(notes)
    }
}

fn run_records(record: &JobRecord) -> Vec<RunRecord> {
    record
        .runs()
        .map(|run| {
            let slot = record.job.boards.get(run.slot as usize);
            RunRecord::new(run, slot.and_then(BoardSlot::board).cloned())
        })
        .collect()
}

/// Samples of trials that ended well.
fn observations(samples: &[SampleRecord], trials: &[TrialRecord]) -> Vec<Observation> {
    let good: BTreeSet<_> = trials
        .iter()
        .filter(|trial| trial.result.failure.is_none())
        .map(|trial| (trial.run, trial.attempt, trial.result.index))
        .collect();
    samples
        .iter()
        .filter_map(|record| {
            let trial = record.trial?;
            good.contains(&(record.run, record.attempt, trial))
                .then(|| Observation {
                    variant: record.variant.clone(),
                    run: record.run,
                    attempt: record.attempt,
                    round: record.round,
                    board: record.board.clone(),
                    trial,
                    artifact: record.artifact,
                    sample: record.sample.clone(),
                })
        })
        .collect()
}

fn parsers(samples: &[SampleRecord]) -> Vec<ParserVersion> {
    let distinct: BTreeSet<(&str, u32)> = samples
        .iter()
        .map(|record| (record.parser.name.as_str(), record.parser.version))
        .collect();
    distinct
        .into_iter()
        .filter_map(|(name, version)| {
            let format = ResultFormat::parse(name).ok()?;
            Some(ParserVersion { format, version })
        })
        .collect()
}

fn is_trace(kind: ArtifactKind) -> bool {
    Reader::of(kind) == Some(Reader::Samples(ResultFormat::LatencyTrace))
}

fn missing(reason: impl Into<String>) -> TraceEvidence {
    TraceEvidence::Missing {
        reason: reason.into(),
    }
}

/// Tracer and latency in the header of a trace, or why there is none.
fn header_latency(bytes: &[u8]) -> Result<(String, u64), String> {
    match klab_ftrace::read(bytes) {
        Ok(klab_ftrace::Reading::Latency(trace)) => {
            Ok((trace.header.tracer.clone(), trace.latency_us()))
        }
        Ok(klab_ftrace::Reading::Empty { tracer, .. }) => {
            Err(format!("the trace of {tracer} is empty"))
        }
        Ok(klab_ftrace::Reading::NotLatency { tracer }) => Err(format!(
            "the trace is one of {tracer}, not of a latency tracer"
        )),
        Err(error) => Err(with_causes(&error)),
    }
}
