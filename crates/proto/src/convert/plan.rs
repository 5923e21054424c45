//! Plans.

use klab_model as model;

use super::common::{duration, span_of};
use crate::error::{ConvertError, InField, required};
use crate::v1;

impl From<model::ArtifactRule> for v1::ArtifactRule {
    fn from(rule: model::ArtifactRule) -> Self {
        v1::ArtifactRule {
            file: rule.file.into(),
            format: rule.format.map(String::from).unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::ArtifactRule> for model::ArtifactRule {
    type Error = ConvertError;
    fn try_from(rule: v1::ArtifactRule) -> Result<Self, ConvertError> {
        let format = match rule.format.as_str() {
            "" => None,
            text => Some(model::ResultFormat::parse(text).in_field("format")?),
        };
        Ok(model::ArtifactRule {
            file: model::ArtifactName::parse(&rule.file).in_field("file")?,
            format,
        })
    }
}

fn rules_of(rules: Vec<v1::ArtifactRule>) -> Result<Vec<model::ArtifactRule>, ConvertError> {
    each("artifacts", rules)
}

/// Converts a list; errors carry the index.
fn each<M, T>(field: &str, messages: Vec<M>) -> Result<Vec<T>, ConvertError>
where
    T: TryFrom<M, Error = ConvertError>,
{
    messages
        .into_iter()
        .enumerate()
        .map(|(index, message)| {
            T::try_from(message).map_err(|error| error.inside(&format!("{field}[{index}]")))
        })
        .collect()
}

fn command_of(command: Vec<String>) -> Result<Vec<String>, ConvertError> {
    match command.first() {
        Some(program) if !program.is_empty() => Ok(command),
        _ => Err(ConvertError::new("command", "must name a program")),
    }
}

impl From<model::Workload> for v1::Workload {
    fn from(workload: model::Workload) -> Self {
        v1::Workload {
            name: workload.name.into(),
            command: workload.command,
            trials: workload.trials,
            time_limit: Some(duration(workload.time_limit.as_duration())),
            artifacts: workload.artifacts.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Workload> for model::Workload {
    type Error = ConvertError;
    fn try_from(workload: v1::Workload) -> Result<Self, ConvertError> {
        if workload.trials == 0 {
            return Err(ConvertError::new("trials", "must be at least 1"));
        }
        Ok(model::Workload {
            name: model::WorkloadName::parse(&workload.name).in_field("name")?,
            command: command_of(workload.command)?,
            trials: workload.trials,
            time_limit: span_of("time_limit", workload.time_limit)?,
            artifacts: rules_of(workload.artifacts)?,
        })
    }
}

impl From<model::Load> for v1::Load {
    fn from(load: model::Load) -> Self {
        v1::Load {
            name: load.name.into(),
            command: load.command,
            lead: Some(duration(load.lead.as_duration())),
            artifacts: load.artifacts.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Load> for model::Load {
    type Error = ConvertError;
    fn try_from(load: v1::Load) -> Result<Self, ConvertError> {
        Ok(model::Load {
            name: model::WorkloadName::parse(&load.name).in_field("name")?,
            command: command_of(load.command)?,
            lead: span_of("lead", load.lead)?,
            artifacts: rules_of(load.artifacts)?,
        })
    }
}

impl From<model::TracePlan> for v1::TracePlan {
    fn from(trace: model::TracePlan) -> Self {
        let if_missing = match trace.if_missing {
            model::IfMissing::Fail => v1::IfMissing::Fail,
            model::IfMissing::Note => v1::IfMissing::Note,
        };
        v1::TracePlan {
            tracer: trace.tracer,
            if_missing: if_missing.into(),
            buffer_kib: trace.buffer_kib,
            function_trace: trace.function_trace,
        }
    }
}

impl TryFrom<v1::TracePlan> for model::TracePlan {
    type Error = ConvertError;
    fn try_from(trace: v1::TracePlan) -> Result<Self, ConvertError> {
        let if_missing = match trace.if_missing() {
            v1::IfMissing::Fail => model::IfMissing::Fail,
            v1::IfMissing::Note => model::IfMissing::Note,
            v1::IfMissing::Unspecified => {
                return Err(ConvertError::new("if_missing", "is missing or unknown"));
            }
        };
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if trace.tracer.is_empty() || !trace.tracer.chars().all(legal) {
            return Err(ConvertError::new(
                "tracer",
                "must be a name such as wakeup_rt",
            ));
        }
        Ok(model::TracePlan {
            tracer: trace.tracer,
            if_missing,
            buffer_kib: trace.buffer_kib,
            function_trace: trace.function_trace,
        })
    }
}

impl From<model::TimeLimits> for v1::TimeLimits {
    fn from(limits: model::TimeLimits) -> Self {
        v1::TimeLimits {
            boot: Some(duration(limits.boot.as_duration())),
            settle: Some(duration(limits.settle.as_duration())),
            no_network: Some(duration(limits.no_network.as_duration())),
        }
    }
}

impl TryFrom<v1::TimeLimits> for model::TimeLimits {
    type Error = ConvertError;
    fn try_from(limits: v1::TimeLimits) -> Result<Self, ConvertError> {
        Ok(model::TimeLimits {
            boot: span_of("boot", limits.boot)?,
            settle: span_of("settle", limits.settle)?,
            no_network: span_of("no_network", limits.no_network)?,
        })
    }
}

impl From<model::Plan> for v1::Plan {
    fn from(plan: model::Plan) -> Self {
        v1::Plan {
            name: plan.name.into(),
            about: plan.about,
            loads: plan.loads.into_iter().map(Into::into).collect(),
            workloads: plan.workloads.into_iter().map(Into::into).collect(),
            trace: plan.trace.map(Into::into),
            time_limits: Some(plan.time_limits.into()),
        }
    }
}

impl TryFrom<v1::Plan> for model::Plan {
    type Error = ConvertError;
    fn try_from(plan: v1::Plan) -> Result<Self, ConvertError> {
        if plan.workloads.is_empty() {
            return Err(ConvertError::new("workloads", "must have at least one"));
        }
        let trace = plan.trace.map(model::TracePlan::try_from).transpose();
        Ok(model::Plan {
            name: model::PlanName::parse(&plan.name).in_field("name")?,
            about: plan.about,
            loads: each("loads", plan.loads)?,
            workloads: each("workloads", plan.workloads)?,
            trace: trace.map_err(|error| error.inside("trace"))?,
            time_limits: required("time_limits", plan.time_limits)?
                .try_into()
                .map_err(|error: ConvertError| error.inside("time_limits"))?,
        })
    }
}
