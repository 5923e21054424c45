//! Artifacts: resumable upload, record, and what is derived from them.

use std::sync::Arc;

use bytes::Bytes;
use klab_model::{
    Artifact, ArtifactKind, ArtifactName, BoardName, Digest, JobEventBody, ResultFormat, RunId,
    TrialIndex,
};
use klab_parse::{ParseError, Parsed, Remark};
use klab_proto::status::Reason;
use klab_store::{NewEvent, ParserId, Transition, UploadKey};
use tracing::{debug, error};

use super::{AttemptKey, Engine, EngineError, found};

/// The largest artifact that is taken, in bytes: a trace of 2 GB and then some.
const MAX_ARTIFACT: u64 = 8 << 30;
/// The largest artifact that is read by a parser, in bytes.
const MAX_PARSED: u64 = 256 << 20;

/// One artifact as its agent announces it.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    pub(crate) key: AttemptKey,
    pub(crate) trial: Option<TrialIndex>,
    pub(crate) name: ArtifactName,
    pub(crate) kind: ArtifactKind,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

/// How far an upload got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UploadStat {
    pub(crate) committed: u64,
    pub(crate) complete: bool,
}

impl Upload {
    /// The name of the staged file: the same after a restart, short whatever the name.
    fn staging(&self) -> Result<UploadKey, EngineError> {
        let trial = self
            .trial
            .map_or_else(|| "run".to_owned(), |trial| trial.to_string());
        let AttemptKey { run, attempt, .. } = self.key;
        let name = Digest::of(self.name.as_str().as_bytes()).short();
        let key = format!("{run}.{attempt}.{trial}.{name}.{}", self.digest);
        Ok(UploadKey::parse(&key)?)
    }
}

/// The attempt whose artifact is staged under `key`.
pub(super) fn attempt_of(key: &UploadKey) -> Option<(RunId, u32)> {
    let mut parts = key.as_str().split('.');
    let run = parts.next()?.parse().ok()?;
    Some((run, parts.next()?.parse().ok()?))
}

impl Engine {
    /// Whether the upload belongs to an attempt that was really given out.
    async fn check_upload(&self, upload: &Upload) -> Result<BoardName, EngineError> {
        let key = upload.key;
        let attempt = found(self.store.attempt(key.run, key.attempt).await)?;
        match attempt.filter(|attempt| attempt.fence == key.fence) {
            None => Err(EngineError::refused(
                Reason::StaleAttempt,
                format!(
                    "attempt {} of run {} was never given out with fence {}: end it",
                    key.attempt, key.run, key.fence.0
                ),
            )),
            Some(_) if upload.size > MAX_ARTIFACT => Err(EngineError::field(
                "key.size",
                format!(
                    "artifact {} has {} bytes, at most {MAX_ARTIFACT} are taken",
                    upload.name, upload.size
                ),
            )),
            Some(attempt) => Ok(attempt.board),
        }
    }

    /// How much of an artifact is stored.
    pub(crate) async fn stat_upload(&self, upload: &Upload) -> Result<UploadStat, EngineError> {
        self.check_upload(upload).await?;
        let stat = self.progress(upload).await?;
        self.derived(upload, stat).await
    }

    /// An agent that was cut off takes its connection with it, and that ends [`derive`] with
    /// the request. It asks again before it says that its run is over, so that a run that is
    /// over has its samples.
    ///
    /// [`derive`]: Engine::derive
    async fn derived(&self, upload: &Upload, stat: UploadStat) -> Result<UploadStat, EngineError> {
        if stat.complete {
            self.parse_left_over_of(upload.kind).await?;
        }
        Ok(stat)
    }

    async fn progress(&self, upload: &Upload) -> Result<UploadStat, EngineError> {
        let known = self.store.artifacts_of_run(upload.key.run).await?;
        let recorded = known.iter().find(|artifact| {
            artifact.attempt == upload.key.attempt
                && artifact.trial == upload.trial
                && artifact.name == upload.name
        });
        match recorded {
            Some(artifact) if artifact.digest == upload.digest => Ok(UploadStat {
                committed: upload.size,
                complete: true,
            }),
            Some(artifact) => Err(EngineError::refused(
                Reason::AlreadyExists,
                format!(
                    "artifact {} of this trial is stored with digest {}: it never changes",
                    upload.name, artifact.digest
                ),
            )),
            None => Ok(UploadStat {
                committed: self
                    .store
                    .objects()
                    .upload_length(&upload.staging()?)
                    .await?,
                complete: false,
            }),
        }
    }

    /// An upload begins or goes on at `offset`.
    pub(crate) async fn begin_upload(
        &self,
        upload: &Upload,
        offset: u64,
    ) -> Result<UploadStat, EngineError> {
        self.check_upload(upload).await?;
        let stat = self.progress(upload).await?;
        let stat = self.derived(upload, stat).await?;
        if !stat.complete && stat.committed != offset {
            return Err(EngineError::refused(
                Reason::WrongOffset,
                format!(
                    "upload of {} continues at byte {}, not at byte {offset}",
                    upload.name, stat.committed
                ),
            ));
        }
        Ok(stat)
    }

    /// Stores the next bytes of an upload; its new length.
    pub(crate) async fn append_upload(
        &self,
        upload: &Upload,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, EngineError> {
        let end = offset.saturating_add(bytes.len() as u64);
        let key = upload.staging()?;
        if end > upload.size {
            self.store.objects().discard(&key).await?;
            return Err(EngineError::refused(
                Reason::DigestMismatch,
                format!(
                    "artifact {} was announced with {} bytes, but more arrived: it was thrown \
                     away, send it again from the start",
                    upload.name, upload.size
                ),
            ));
        }
        Ok(self.store.objects().append(&key, offset, bytes).await?)
    }

    /// All bytes are here: checks the digest, records the artifact, derives samples.
    pub(crate) async fn finish_upload(&self, upload: &Upload) -> Result<(), EngineError> {
        let key = upload.staging()?;
        self.store
            .objects()
            .commit(&key, &upload.digest, upload.size)
            .await?;
        let artifact = Artifact {
            id: self.new_id(),
            run: upload.key.run,
            attempt: upload.key.attempt,
            trial: upload.trial,
            name: upload.name.clone(),
            kind: upload.kind,
            digest: upload.digest,
            size: upload.size,
            created_at: self.now(),
        };
        let added = self.store.add_artifact(&artifact).await?;
        self.feed_changed();
        // The artifact is safe. It can be read again at any time, so trouble with that is no
        // reason for the agent to send it once more.
        if let Err(error) = self.derive(&added.artifact).await {
            error!(artifact = %added.artifact.id, %error, "failed to read an artifact");
        }
        Ok(())
    }

    /// Derives what is in an artifact that something reads.
    pub(super) async fn derive(&self, artifact: &Artifact) -> Result<(), EngineError> {
        let Some(reader) = Reader::of(artifact.kind) else {
            return Ok(());
        };
        let parser = reader.id();
        if artifact.size > MAX_PARSED {
            let problem = format!(
                "it has {} bytes, parsers read at most {MAX_PARSED}",
                artifact.size
            );
            return self.note_problem(artifact, &parser, problem).await;
        }
        let bytes = self.store.objects().bytes(&artifact.digest).await?;
        match reader {
            Reader::Samples(format) => {
                self.derive_samples(artifact, (format, &parser), bytes)
                    .await
            }
            Reader::KernelReports => self.derive_kernel_reports(artifact, &parser, bytes).await,
        }
    }

    async fn derive_samples(
        &self,
        artifact: &Artifact,
        (format, parser): (ResultFormat, &ParserId),
        bytes: Bytes,
    ) -> Result<(), EngineError> {
        match parse_blocking(format, bytes).await? {
            Ok(parsed) => {
                self.store
                    .replace_samples(artifact.id, parser, &parsed.samples)
                    .await?;
                for remark in parsed.remarks.iter().filter(|remark| is_warning(remark)) {
                    self.note(artifact, format!("{}: {remark}", artifact.name))
                        .await?;
                }
                debug!(artifact = %artifact.id, samples = parsed.samples.len(), "parsed");
                Ok(())
            }
            Err(problem) => {
                self.note_problem(artifact, parser, problem.to_string())
                    .await
            }
        }
    }

    async fn note_problem(
        &self,
        artifact: &Artifact,
        parser: &ParserId,
        problem: String,
    ) -> Result<(), EngineError> {
        self.store
            .record_parse_problem(artifact.id, parser, &problem)
            .await?;
        let text = format!(
            "no {} from {}: {problem}",
            derived_by(parser),
            artifact.name
        );
        self.note(artifact, text).await
    }

    /// Adds a note about an artifact to the feed of its job.
    async fn note(&self, artifact: &Artifact, text: String) -> Result<(), EngineError> {
        let job = self.store.run(artifact.run).await?.value.job;
        let attempt = self.store.attempt(artifact.run, artifact.attempt).await?;
        let body = JobEventBody::Note { text };
        let event = NewEvent::of_run(job, artifact.run, Some(attempt.board), body);
        let transition = Transition::new(self.now()).event(event);
        self.store.transition(&transition).await?;
        self.feed_changed();
        Ok(())
    }

    /// Derives what an earlier controller did not get to, and everything anew whose parser
    /// has changed.
    pub(super) async fn parse_left_over(self: Arc<Self>) {
        let results = ResultFormat::ALL.map(ArtifactKind::Result);
        let others = [
            ArtifactKind::Trace,
            ArtifactKind::Console,
            ArtifactKind::KernelLog,
        ];
        for kind in results.into_iter().chain(others) {
            if let Err(error) = self.parse_left_over_of(kind).await {
                error!(%kind, %error, "failed to read artifacts");
            }
        }
    }

    async fn parse_left_over_of(&self, kind: ArtifactKind) -> Result<(), EngineError> {
        const BATCH: u32 = 100;
        let Some(reader) = Reader::of(kind) else {
            return Ok(());
        };
        let parser = reader.id();
        loop {
            let batch = self.store.artifacts_to_parse(kind, &parser, BATCH).await?;
            for artifact in &batch {
                self.derive(artifact).await?;
            }
            if batch.is_empty() {
                return Ok(());
            }
        }
    }
}

/// What reads the artifacts of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A parser of this format makes samples.
    Samples(ResultFormat),
    /// The recogniser of kernel logs makes kernel reports.
    KernelReports,
}

/// The name of the recogniser in rows.
const KLOG: &str = "klog";

impl Reader {
    pub(super) const fn of(kind: ArtifactKind) -> Option<Self> {
        match kind {
            ArtifactKind::Result(format) => Some(Self::Samples(format)),
            ArtifactKind::Trace => Some(Self::Samples(ResultFormat::LatencyTrace)),
            ArtifactKind::Console | ArtifactKind::KernelLog => Some(Self::KernelReports),
            ArtifactKind::Facts | ArtifactKind::Log => None,
        }
    }

    fn id(self) -> ParserId {
        let (name, version) = match self {
            Self::Samples(format) => {
                let parser = klab_parse::ParserId::current(format);
                (parser.name().to_owned(), parser.version)
            }
            Self::KernelReports => (KLOG.to_owned(), klab_klog::VERSION),
        };
        ParserId { name, version }
    }
}

/// What a parser makes of artifacts, for people.
pub(super) fn derived_by(parser: &ParserId) -> &'static str {
    if parser.name == KLOG {
        "kernel reports"
    } else {
        "samples"
    }
}

async fn parse_blocking(
    format: ResultFormat,
    bytes: Bytes,
) -> Result<Result<Parsed, ParseError>, EngineError> {
    tokio::task::spawn_blocking(move || klab_parse::parse(format, &bytes))
        .await
        .map_err(|error| {
            EngineError::refused(Reason::Internal, format!("the parser failed: {error}"))
        })
}

/// What takes something away from the numbers; the rest is shown where it is asked for.
const fn is_warning(remark: &Remark) -> bool {
    match remark {
        Remark::BeyondHistogram { .. } | Remark::TraceOverrun { .. } => true,
        Remark::Culprit { .. } => false,
    }
}
