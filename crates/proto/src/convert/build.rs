//! Trees and builds as users see them, and wishes for builds.

use std::time::Duration;

use klab_model as model;

use super::common::{arch_of, duration};
use super::user::{time_of, timestamp};
use crate::error::{ConvertError, InField, required};
use crate::v1;
use crate::v1::build_target::Source;
use crate::v1::kernel_config::{Base, Defconfig, Tinyconfig};

impl From<model::Tree> for v1::Tree {
    fn from(tree: model::Tree) -> Self {
        v1::Tree {
            name: tree.name.into(),
            source: tree.source.into(),
            added_at: Some(timestamp(tree.added_at)),
        }
    }
}

impl TryFrom<v1::Tree> for model::Tree {
    type Error = ConvertError;
    fn try_from(tree: v1::Tree) -> Result<Self, ConvertError> {
        Ok(model::Tree {
            name: model::TreeName::parse(&tree.name).in_field("name")?,
            source: model::TreeSource::parse(&tree.source).in_field("source")?,
            added_at: time_of("added_at", tree.added_at)?,
        })
    }
}

impl From<model::Series> for v1::Series {
    fn from(series: model::Series) -> Self {
        v1::Series {
            subject: series.subject,
            revision: series.revision,
            base_commit: series.base_commit.unwrap_or_default(),
            patches: series
                .patches
                .into_iter()
                .map(|patch| v1::Patch {
                    subject: patch.subject,
                    message_id: patch.message_id.unwrap_or_default(),
                })
                .collect(),
        }
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl From<v1::Series> for model::Series {
    fn from(series: v1::Series) -> Self {
        model::Series {
            subject: series.subject,
            revision: series.revision,
            base_commit: some(series.base_commit),
            patches: series
                .patches
                .into_iter()
                .map(|patch| model::Patch {
                    subject: patch.subject,
                    message_id: some(patch.message_id),
                })
                .collect(),
        }
    }
}

fn config_text(text: model::ConfigText) -> v1::ConfigText {
    v1::ConfigText {
        name: text.name,
        text: text.text,
    }
}

fn text_of(text: v1::ConfigText) -> model::ConfigText {
    model::ConfigText {
        name: text.name,
        text: text.text,
    }
}

impl From<model::KernelConfig> for v1::KernelConfig {
    fn from(config: model::KernelConfig) -> Self {
        let base = match config.base {
            model::ConfigBase::Defconfig => Base::Defconfig(Defconfig {}),
            model::ConfigBase::Tinyconfig => Base::Tinyconfig(Tinyconfig {}),
            model::ConfigBase::Text(text) => Base::Text(config_text(text)),
        };
        v1::KernelConfig {
            base: Some(base),
            fragments: config.fragments.into_iter().map(config_text).collect(),
            allow_missing: config.allow_missing,
        }
    }
}

impl TryFrom<v1::KernelConfig> for model::KernelConfig {
    type Error = ConvertError;
    fn try_from(config: v1::KernelConfig) -> Result<Self, ConvertError> {
        let base = match required("base", config.base)? {
            Base::Defconfig(_) => model::ConfigBase::Defconfig,
            Base::Tinyconfig(_) => model::ConfigBase::Tinyconfig,
            Base::Text(text) => model::ConfigBase::Text(text_of(text)),
        };
        Ok(model::KernelConfig {
            base,
            fragments: config.fragments.into_iter().map(text_of).collect(),
            allow_missing: config.allow_missing,
        })
    }
}

impl From<model::TargetSource> for Source {
    fn from(source: model::TargetSource) -> Self {
        match source {
            model::TargetSource::Patches(count) => Source::Patches(count),
            model::TargetSource::Ref(name) => Source::Ref(name.into()),
        }
    }
}

fn source_of(source: Option<Source>) -> Result<model::TargetSource, ConvertError> {
    Ok(match required("source", source)? {
        Source::Patches(count) => model::TargetSource::Patches(count),
        Source::Ref(name) => model::TargetSource::Ref(git_ref("ref", &name)?),
    })
}

fn git_ref(field: &str, text: &str) -> Result<model::GitRef, ConvertError> {
    model::GitRef::parse(text).in_field(field)
}

fn base_of(text: &str) -> Result<Option<model::GitRef>, ConvertError> {
    match text {
        "" => Ok(None),
        text => git_ref("base", text).map(Some),
    }
}

fn series_of(
    series: Option<v1::Series>,
    digest: &[u8],
    size: u64,
) -> Result<Option<model::BuildSeries>, ConvertError> {
    let Some(series) = series else {
        return Ok(None);
    };
    let mbox = model::Digest::from_bytes(digest).in_field("mbox_digest")?;
    Ok(Some(model::BuildSeries {
        series: series.into(),
        mbox,
        size,
    }))
}

impl v1::CreateBuildStart {
    /// The message for a wish.
    pub fn of(request: model::BuildRequest) -> Self {
        let (series, mbox_digest, mbox_size) = series_parts(request.series);
        v1::CreateBuildStart {
            owner: request.owner.into(),
            tree: request.tree.into(),
            base: request.base.map(String::from).unwrap_or_default(),
            series,
            mbox_digest,
            mbox_size,
            config: Some(request.config.into()),
            arch: v1::Arch::from(request.arch).into(),
            targets: request
                .targets
                .into_iter()
                .map(|(variant, source)| v1::BuildTarget {
                    variant: variant.into(),
                    source: Some(source.into()),
                    ..Default::default()
                })
                .collect(),
        }
    }
}

fn series_parts(series: Option<model::BuildSeries>) -> (Option<v1::Series>, bytes::Bytes, u64) {
    match series {
        None => (None, bytes::Bytes::new(), 0),
        Some(series) => (
            Some(series.series.into()),
            series.mbox.as_bytes().to_vec().into(),
            series.size,
        ),
    }
}

impl TryFrom<v1::CreateBuildStart> for model::BuildRequest {
    type Error = ConvertError;
    fn try_from(start: v1::CreateBuildStart) -> Result<Self, ConvertError> {
        let mut targets = Vec::new();
        for (index, target) in start.targets.into_iter().enumerate() {
            let inside = |error: ConvertError| error.inside(&format!("targets[{index}]"));
            let variant = model::VariantName::parse(&target.variant);
            let variant = variant.in_field("variant").map_err(inside)?;
            targets.push((variant, source_of(target.source).map_err(inside)?));
        }
        let config = required("config", start.config)?;
        Ok(model::BuildRequest {
            owner: model::Owner::parse(&start.owner).in_field("owner")?,
            tree: model::TreeName::parse(&start.tree).in_field("tree")?,
            base: base_of(&start.base)?,
            series: series_of(start.series, &start.mbox_digest, start.mbox_size)?,
            config: config
                .try_into()
                .map_err(|e: ConvertError| e.inside("config"))?,
            arch: arch_of("arch", start.arch)?,
            targets,
        })
    }
}

impl v1::Build {
    /// A build as users and builders see it.
    pub fn of(build: model::Build, state: &model::BuildState) -> v1::Build {
        let (series, mbox_digest, mbox_size) = series_parts(build.series);
        let failure = match state.outcome() {
            Some(model::BuildOutcome::Failed(failure)) => Some(failure.clone().into()),
            _ => None,
        };
        v1::Build {
            id: build.id.to_string(),
            owner: build.owner.into(),
            tree: build.tree.into(),
            base: build.base.map(String::from).unwrap_or_default(),
            series,
            config: Some(build.config.into()),
            arch: v1::Arch::from(build.arch).into(),
            targets: build
                .targets
                .into_iter()
                .zip(&state.targets)
                .map(|(target, state)| target_message(target, state))
                .collect(),
            created_at: Some(timestamp(build.created_at)),
            state: state.as_str().to_owned(),
            builder: state.builder().map(ToString::to_string).unwrap_or_default(),
            attempt: state.attempt(),
            failure,
            mbox_digest,
            mbox_size,
            base_commit: state.base.clone().map(String::from).unwrap_or_default(),
        }
    }
}

/// A commit that may be left out.
pub(super) fn commit_of(field: &str, text: &str) -> Result<Option<model::ObjectId>, ConvertError> {
    match text {
        "" => Ok(None),
        text => model::ObjectId::parse(text).in_field(field).map(Some),
    }
}

fn target_message(target: model::BuildTarget, state: &model::TargetState) -> v1::BuildTarget {
    v1::BuildTarget {
        variant: target.variant.into(),
        source: Some(target.source.into()),
        kernel: target.kernel.into(),
        state: state.as_str().to_owned(),
        failure: failure(state),
    }
}

fn failure(state: &model::TargetState) -> Option<v1::Failure> {
    match state {
        model::TargetState::Failed(failure) => Some(failure.clone().into()),
        _ => None,
    }
}

fn target_of(target: v1::BuildTarget) -> Result<model::BuildTarget, ConvertError> {
    Ok(model::BuildTarget {
        variant: model::VariantName::parse(&target.variant).in_field("variant")?,
        source: source_of(target.source)?,
        kernel: model::KernelName::parse(&target.kernel).in_field("kernel")?,
    })
}

impl TryFrom<v1::Build> for model::Build {
    type Error = ConvertError;
    fn try_from(build: v1::Build) -> Result<Self, ConvertError> {
        let mut targets = Vec::new();
        for (index, target) in build.targets.into_iter().enumerate() {
            let inside = |error: ConvertError| error.inside(&format!("targets[{index}]"));
            targets.push(target_of(target).map_err(inside)?);
        }
        let config = required("config", build.config)?;
        Ok(model::Build {
            id: build_id("id", &build.id)?,
            owner: model::Owner::parse(&build.owner).in_field("owner")?,
            tree: model::TreeName::parse(&build.tree).in_field("tree")?,
            base: base_of(&build.base)?,
            series: series_of(build.series, &build.mbox_digest, build.mbox_size)?,
            config: config
                .try_into()
                .map_err(|e: ConvertError| e.inside("config"))?,
            arch: arch_of("arch", build.arch)?,
            targets,
            created_at: time_of("created_at", build.created_at)?,
        })
    }
}

pub(super) fn build_id(field: &str, text: &str) -> Result<model::BuildTaskId, ConvertError> {
    text.parse()
        .map_err(|_| ConvertError::new(field, format!("{text:?} is no build id")))
}

impl From<model::BuildEvent> for v1::BuildEvent {
    fn from(event: model::BuildEvent) -> Self {
        v1::BuildEvent {
            seq: event.seq,
            at: Some(timestamp(event.at)),
            body: Some(event_body(event.body)),
        }
    }
}

fn event_body(body: model::BuildEventBody) -> v1::build_event::Body {
    use model::BuildEventBody as From;
    use v1::build_event::{self as message, Body};
    match body {
        From::Submitted { targets } => Body::Submitted(message::Submitted { targets }),
        From::Assigned { builder, attempt } => Body::Assigned(message::Assigned {
            builder: builder.into(),
            attempt,
        }),
        From::Note { text } => Body::Note(text),
        From::BaseFound { commit } => Body::BaseFound(commit.into()),
        From::TargetStarted { variant } => Body::TargetStarted(variant.into()),
        From::TargetEnded {
            variant,
            state,
            duration_ms,
        } => Body::TargetEnded(message::TargetEnded {
            variant: variant.into(),
            state: state.as_str().to_owned(),
            reason: failure(&state)
                .map(|failure| failure.reason)
                .unwrap_or_default(),
            duration: Some(duration(Duration::from_millis(duration_ms))),
        }),
        From::AttemptFailed {
            attempt,
            failure,
            retry,
        } => Body::AttemptFailed(message::AttemptFailed {
            attempt,
            failure: Some(failure.into()),
            repeated: retry,
        }),
        From::Ended { outcome } => Body::Ended(ended(outcome)),
        From::CancelRequested => Body::CancelRequested(message::CancelRequested {}),
    }
}

fn ended(outcome: model::BuildOutcome) -> v1::build_event::Ended {
    let (state, failure) = match outcome {
        model::BuildOutcome::Done => ("done", None),
        model::BuildOutcome::Failed(failure) => ("failed", Some(failure.into())),
        model::BuildOutcome::Cancelled => ("cancelled", None),
    };
    v1::build_event::Ended {
        state: state.to_owned(),
        failure,
    }
}
