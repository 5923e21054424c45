//! Enums, times, identities and facts.

use std::collections::BTreeMap;
use std::time::Duration;

use klab_model as model;

use crate::error::{ConvertError, InField, required};
use crate::v1;

impl From<model::Arch> for v1::Arch {
    fn from(arch: model::Arch) -> Self {
        match arch {
            model::Arch::X86_64 => v1::Arch::X8664,
            model::Arch::Riscv64 => v1::Arch::Riscv64,
            model::Arch::Aarch64 => v1::Arch::Aarch64,
        }
    }
}

/// An architecture from a message.
///
/// # Errors
/// [`ConvertError`] if it is missing or unknown.
pub fn arch_of(field: &str, value: i32) -> Result<model::Arch, ConvertError> {
    match v1::Arch::try_from(value) {
        Ok(v1::Arch::X8664) => Ok(model::Arch::X86_64),
        Ok(v1::Arch::Riscv64) => Ok(model::Arch::Riscv64),
        Ok(v1::Arch::Aarch64) => Ok(model::Arch::Aarch64),
        _ => Err(ConvertError::new(
            field,
            format!("unknown architecture {value}"),
        )),
    }
}

impl From<model::FailureClass> for v1::FailureClass {
    fn from(class: model::FailureClass) -> Self {
        match class {
            model::FailureClass::Infrastructure => v1::FailureClass::Infrastructure,
            model::FailureClass::Kernel => v1::FailureClass::Kernel,
            model::FailureClass::Workload => v1::FailureClass::Workload,
        }
    }
}

impl From<model::Failure> for v1::Failure {
    fn from(failure: model::Failure) -> Self {
        v1::Failure {
            class: v1::FailureClass::from(failure.class).into(),
            reason: failure.reason,
        }
    }
}

impl TryFrom<v1::Failure> for model::Failure {
    type Error = ConvertError;
    fn try_from(failure: v1::Failure) -> Result<Self, ConvertError> {
        let class = match failure.class() {
            v1::FailureClass::Infrastructure => model::FailureClass::Infrastructure,
            v1::FailureClass::Kernel => model::FailureClass::Kernel,
            v1::FailureClass::Workload => model::FailureClass::Workload,
            v1::FailureClass::Unspecified => {
                return Err(ConvertError::new("class", "is missing or unknown"));
            }
        };
        Ok(model::Failure {
            class,
            reason: failure.reason,
        })
    }
}

pub(super) fn failure_of(
    field: &str,
    failure: Option<v1::Failure>,
) -> Result<Option<model::Failure>, ConvertError> {
    failure
        .map(model::Failure::try_from)
        .transpose()
        .map_err(|error| error.inside(field))
}

/// A duration as a message.
pub fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

/// A duration from a message.
///
/// # Errors
/// [`ConvertError`] if it is missing or negative.
pub fn duration_of(
    field: &str,
    value: Option<prost_types::Duration>,
) -> Result<Duration, ConvertError> {
    let value = required(field, value)?;
    let seconds = u64::try_from(value.seconds);
    let nanos = u32::try_from(value.nanos);
    match (seconds, nanos) {
        (Ok(seconds), Ok(nanos)) => Ok(Duration::new(seconds, nanos)),
        _ => Err(ConvertError::new(field, "must not be negative")),
    }
}

/// A span from a message.
///
/// # Errors
/// [`ConvertError`] if it is missing or out of range.
pub fn span_of(
    field: &str,
    value: Option<prost_types::Duration>,
) -> Result<model::Span, ConvertError> {
    let duration = duration_of(field, value)?;
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    model::Span::from_millis(millis).in_field(field)
}

impl From<model::Step> for v1::Step {
    fn from(step: model::Step) -> Self {
        use v1::step::Kind;
        let (kind, trial) = match step {
            model::Step::Fetch => (Kind::Fetch, 0),
            model::Step::Install => (Kind::Install, 0),
            model::Step::Boot => (Kind::Boot, 0),
            model::Step::Prove => (Kind::Prove, 0),
            model::Step::Trial(index) => (Kind::Trial, index.0),
            model::Step::Collect => (Kind::Collect, 0),
            model::Step::Restore => (Kind::Restore, 0),
        };
        v1::Step {
            kind: kind.into(),
            trial,
        }
    }
}

impl TryFrom<v1::Step> for model::Step {
    type Error = ConvertError;
    fn try_from(step: v1::Step) -> Result<Self, ConvertError> {
        use v1::step::Kind;
        match step.kind() {
            Kind::Fetch => Ok(model::Step::Fetch),
            Kind::Install => Ok(model::Step::Install),
            Kind::Boot => Ok(model::Step::Boot),
            Kind::Prove => Ok(model::Step::Prove),
            Kind::Trial => Ok(model::Step::Trial(model::TrialIndex(step.trial))),
            Kind::Collect => Ok(model::Step::Collect),
            Kind::Restore => Ok(model::Step::Restore),
            Kind::Unspecified => Err(ConvertError::new("kind", "is missing or unknown")),
        }
    }
}

impl From<model::Identity> for v1::Identity {
    fn from(identity: model::Identity) -> Self {
        use v1::identity::Proof;
        let proof = match identity.proof {
            model::IdentityProof::BuildId(id) => Proof::BuildId(id.as_bytes().to_vec().into()),
            model::IdentityProof::ImageDigest(digest) => {
                Proof::ImageDigest(digest.as_bytes().to_vec().into())
            }
        };
        v1::Identity {
            release: identity.release,
            boot_id: identity.boot_id,
            proof: Some(proof),
        }
    }
}

impl TryFrom<v1::Identity> for model::Identity {
    type Error = ConvertError;
    fn try_from(identity: v1::Identity) -> Result<Self, ConvertError> {
        use v1::identity::Proof;
        let proof = match required("proof", identity.proof)? {
            Proof::BuildId(bytes) => model::BuildId::from_bytes(&bytes)
                .in_field("build_id")
                .map(model::IdentityProof::BuildId)?,
            Proof::ImageDigest(bytes) => model::Digest::from_bytes(&bytes)
                .in_field("image_digest")
                .map(model::IdentityProof::ImageDigest)?,
        };
        Ok(model::Identity {
            release: identity.release,
            boot_id: identity.boot_id,
            proof,
        })
    }
}

impl From<model::BoardFacts> for v1::BoardFacts {
    fn from(facts: model::BoardFacts) -> Self {
        v1::BoardFacts {
            model: facts.model,
            cpus: facts.cpus,
            memory_kib: facts.memory_kib,
            release: facts.release,
            boot_id: facts.boot_id,
            agent_version: facts.agent_version,
            capabilities: facts.capabilities.into_iter().map(|c| c.0).collect(),
        }
    }
}

impl From<v1::BoardFacts> for model::BoardFacts {
    fn from(facts: v1::BoardFacts) -> Self {
        model::BoardFacts {
            model: facts.model,
            cpus: facts.cpus,
            memory_kib: facts.memory_kib,
            release: facts.release,
            boot_id: facts.boot_id,
            agent_version: facts.agent_version,
            capabilities: facts
                .capabilities
                .into_iter()
                .map(model::Capability)
                .collect(),
        }
    }
}

pub(super) fn tag_messages(tags: BTreeMap<String, String>) -> Vec<v1::Tag> {
    tags.into_iter()
        .map(|(key, value)| v1::Tag { key, value })
        .collect()
}

/// Tags from messages.
///
/// # Errors
/// [`ConvertError`] for a bad tag or a repeated key.
pub fn tags_of(tags: Vec<v1::Tag>) -> Result<BTreeMap<String, String>, ConvertError> {
    let mut map = BTreeMap::new();
    for (index, tag) in tags.into_iter().enumerate() {
        let field = format!("tags[{index}]");
        let tag = model::Tag::parse(&format!("{}={}", tag.key, tag.value)).in_field(&field)?;
        if map
            .insert(tag.key().to_owned(), tag.value().to_owned())
            .is_some()
        {
            return Err(ConvertError::new(
                field,
                format!("{} is given twice", tag.key()),
            ));
        }
    }
    Ok(map)
}
