//! Orders and events.

use std::time::Duration;

use klab_model as model;

use super::common::{arch_of, duration, duration_of, failure_of};
use crate::error::{ConvertError, InField, required};
use crate::v1;

/// Names an attempt in a message.
pub fn attempt_ref(run: model::RunId, attempt: u32, fence: model::Fence) -> v1::AttemptRef {
    v1::AttemptRef {
        run: run.to_string(),
        attempt,
        fence: fence.0,
    }
}

impl v1::AttemptRef {
    /// Run, attempt and fencing token.
    ///
    /// # Errors
    /// [`ConvertError`] if the run is no id or the attempt is 0.
    pub fn parts(&self) -> Result<(model::RunId, u32, model::Fence), ConvertError> {
        let run = self
            .run
            .parse()
            .map_err(|_| ConvertError::new("run", format!("{:?} is no run id", self.run)))?;
        if self.attempt == 0 {
            return Err(ConvertError::new("attempt", "counts from 1"));
        }
        Ok((run, self.attempt, model::Fence(self.fence)))
    }
}

impl From<model::OrderKernel> for v1::OrderKernel {
    fn from(kernel: model::OrderKernel) -> Self {
        v1::OrderKernel {
            name: kernel.name.into(),
            digest: kernel.digest.as_bytes().to_vec().into(),
            size: kernel.size,
            arch: v1::Arch::from(kernel.arch).into(),
            release: kernel.release,
            build_id: kernel
                .build_id
                .map(|id| id.as_bytes().to_vec())
                .unwrap_or_default()
                .into(),
            image_digest: kernel.image_digest.as_bytes().to_vec().into(),
        }
    }
}

impl TryFrom<v1::OrderKernel> for model::OrderKernel {
    type Error = ConvertError;
    fn try_from(kernel: v1::OrderKernel) -> Result<Self, ConvertError> {
        let build_id = match kernel.build_id.as_ref() {
            [] => None,
            bytes => Some(model::BuildId::from_bytes(bytes).in_field("build_id")?),
        };
        Ok(model::OrderKernel {
            name: model::KernelName::parse(&kernel.name).in_field("name")?,
            digest: model::Digest::from_bytes(&kernel.digest).in_field("digest")?,
            size: kernel.size,
            arch: arch_of("arch", kernel.arch)?,
            release: kernel.release,
            build_id,
            image_digest: model::Digest::from_bytes(&kernel.image_digest)
                .in_field("image_digest")?,
        })
    }
}

impl From<model::Order> for v1::Order {
    fn from(order: model::Order) -> Self {
        v1::Order {
            attempt: Some(attempt_ref(order.run, order.attempt, order.fence)),
            variant: order.variant.into(),
            kernel: Some(order.kernel.into()),
            plan: Some(order.plan.into()),
        }
    }
}

impl TryFrom<v1::Order> for model::Order {
    type Error = ConvertError;
    fn try_from(order: v1::Order) -> Result<Self, ConvertError> {
        let (run, attempt, fence) = required("attempt", order.attempt)?.parts()?;
        Ok(model::Order {
            run,
            attempt,
            fence,
            variant: model::VariantName::parse(&order.variant).in_field("variant")?,
            kernel: required("kernel", order.kernel)?
                .try_into()
                .map_err(|error: ConvertError| error.inside("kernel"))?,
            plan: required("plan", order.plan)?
                .try_into()
                .map_err(|error: ConvertError| error.inside("plan"))?,
        })
    }
}

impl From<model::TrialFacts> for v1::TrialFacts {
    fn from(facts: model::TrialFacts) -> Self {
        v1::TrialFacts {
            cmdline: facts.cmdline,
            clocksource: facts.clocksource,
            governors: facts.governors,
            mitigations: facts
                .mitigations
                .into_iter()
                .map(|(vulnerability, state)| v1::Mitigation {
                    vulnerability,
                    state,
                })
                .collect(),
            temperatures: facts
                .temperatures
                .into_iter()
                .map(|(zone, millicelsius)| v1::Temperature { zone, millicelsius })
                .collect(),
            notes: facts.notes,
        }
    }
}

impl From<v1::TrialFacts> for model::TrialFacts {
    fn from(facts: v1::TrialFacts) -> Self {
        model::TrialFacts {
            cmdline: facts.cmdline,
            clocksource: facts.clocksource,
            governors: facts.governors,
            mitigations: facts
                .mitigations
                .into_iter()
                .map(|mitigation| (mitigation.vulnerability, mitigation.state))
                .collect(),
            temperatures: facts
                .temperatures
                .into_iter()
                .map(|temperature| (temperature.zone, temperature.millicelsius))
                .collect(),
            notes: facts.notes,
        }
    }
}

impl From<model::TrialResult> for v1::TrialResult {
    fn from(result: model::TrialResult) -> Self {
        v1::TrialResult {
            index: result.index.0,
            workload: result.workload.into(),
            failure: result.failure.map(Into::into),
            duration: Some(duration(Duration::from_millis(result.duration_ms))),
            perturbation: Some(v1::Perturbation {
                wakeups: result.perturbation.wakeups,
                preemptions: result.perturbation.preemptions,
                cpu_us: result.perturbation.cpu_us,
                rss_kib: result.perturbation.rss_kib,
            }),
            facts: Some(result.facts.into()),
        }
    }
}

impl TryFrom<v1::TrialResult> for model::TrialResult {
    type Error = ConvertError;
    fn try_from(result: v1::TrialResult) -> Result<Self, ConvertError> {
        let perturbation = required("perturbation", result.perturbation)?;
        let duration = duration_of("duration", result.duration)?;
        Ok(model::TrialResult {
            index: model::TrialIndex(result.index),
            workload: model::WorkloadName::parse(&result.workload).in_field("workload")?,
            failure: failure_of("failure", result.failure)?,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            perturbation: model::Perturbation {
                wakeups: perturbation.wakeups,
                preemptions: perturbation.preemptions,
                cpu_us: perturbation.cpu_us,
                rss_kib: perturbation.rss_kib,
            },
            facts: required("facts", result.facts)?.into(),
        })
    }
}

impl From<model::AgentEvent> for v1::AgentEvent {
    fn from(event: model::AgentEvent) -> Self {
        use v1::agent_event::Body;
        let body = match event.body {
            model::EventBody::StepStarted(step) => Body::StepStarted(step.into()),
            model::EventBody::Proved(identity) => Body::Proved(identity.into()),
            model::EventBody::TrialEnded(result) => Body::TrialEnded(result.into()),
            model::EventBody::Note(text) => Body::Note(text),
            model::EventBody::Finished { failure } => Body::Finished(v1::AttemptFinished {
                failure: failure.map(Into::into),
            }),
            model::EventBody::Cancelled => Body::Cancelled(v1::AttemptCancelled {}),
        };
        v1::AgentEvent {
            attempt: Some(attempt_ref(event.run, event.attempt, event.fence)),
            seq: event.seq,
            board_time_us: event.board_time_us,
            body: Some(body),
        }
    }
}

impl TryFrom<v1::AgentEvent> for model::AgentEvent {
    type Error = ConvertError;
    fn try_from(event: v1::AgentEvent) -> Result<Self, ConvertError> {
        use v1::agent_event::Body;
        let (run, attempt, fence) = required("attempt", event.attempt)?.parts()?;
        let body = match required("body", event.body)? {
            Body::StepStarted(step) => model::EventBody::StepStarted(step.try_into()?),
            Body::Proved(identity) => model::EventBody::Proved(identity.try_into()?),
            Body::TrialEnded(result) => model::EventBody::TrialEnded(result.try_into()?),
            Body::Note(text) => model::EventBody::Note(text),
            Body::Finished(finished) => model::EventBody::Finished {
                failure: failure_of("failure", finished.failure)?,
            },
            Body::Cancelled(_) => model::EventBody::Cancelled,
        };
        Ok(model::AgentEvent {
            run,
            attempt,
            fence,
            seq: event.seq,
            board_time_us: event.board_time_us,
            body,
        })
    }
}
