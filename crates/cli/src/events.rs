//! The events of a job as plain lines and as JSON.

use klab_proto::v1;
use serde_json::{Value, json};
use v1::job_event::Body;

use crate::json as j;
use crate::output;

/// A step in words: `boot`, `trial 2`.
pub(crate) fn step(step: &v1::Step) -> String {
    klab_model::Step::try_from(*step).map_or_else(|_| "?".into(), |step| step.to_string())
}

fn because(failure: Option<&v1::Failure>) -> String {
    failure.map_or_else(String::new, |f| {
        format!(" ({}: {})", j::class(f.class), f.reason)
    })
}

fn proof(identity: &v1::Identity) -> (&'static str, String) {
    match &identity.proof {
        Some(v1::identity::Proof::BuildId(id)) => ("build-id", j::hex(id)),
        Some(v1::identity::Proof::ImageDigest(digest)) => ("image digest", j::hex(digest)),
        None => ("nothing", String::new()),
    }
}

/// What happened, without the time.
fn words(body: &Body) -> String {
    match body {
        Body::Submitted(submitted) => format!("submitted: {}", output::runs(submitted.runs)),
        Body::Assigned(assigned) => format!("assigned, attempt {}", assigned.attempt),
        Body::StepStarted(started) => step(started),
        Body::Proved(identity) => {
            let (what, value) = proof(identity);
            format!("runs {} (proved by {what} {value})", identity.release)
        }
        Body::TrialDone(trial) => {
            let end = if trial.failure.is_some() {
                "failed"
            } else {
                "done"
            };
            let why = because(trial.failure.as_ref());
            format!("trial {} ({}) {end}{why}", trial.index + 1, trial.workload)
        }
        Body::Note(note) => format!("note: {note}"),
        Body::AttemptFailed(failed) => {
            let then = if failed.repeated {
                ", will be repeated"
            } else {
                ""
            };
            format!(
                "attempt {} failed{}{then}",
                failed.attempt,
                because(failed.failure.as_ref())
            )
        }
        Body::RunEnded(ended) => {
            format!("run {}{}", ended.state, because(ended.failure.as_ref()))
        }
        Body::ArtifactStored(artifact) => match artifact.trial {
            Some(trial) => format!("stored {} of trial {}", artifact.name, trial + 1),
            None => format!("stored {}", artifact.name),
        },
        Body::JobEnded(ended) => format!("job {}", j::job_state(ended.state)),
        Body::CancelRequested(_) => "cancellation asked for".into(),
    }
}

/// One line: time, board, round and variant, what happened.
pub(crate) fn line(event: &v1::JobEvent) -> String {
    let what = event.body.as_ref().map(words).unwrap_or_default();
    let time = j::time(event.at.as_ref());
    if event.run.is_empty() {
        format!("{time} {what}")
    } else {
        let round = event.round + 1;
        format!(
            "{time} {} round {round} {}: {what}",
            event.board, event.variant
        )
    }
}

/// One JSON document.
pub(crate) fn json(event: &v1::JobEvent) -> Value {
    let (kind, detail) = match &event.body {
        Some(body) => detail(body),
        None => ("unknown", Value::Null),
    };
    json!({
        "seq": event.seq,
        "at": j::time(event.at.as_ref()),
        "run": event.run,
        "variant": event.variant,
        "round": if event.run.is_empty() { Value::Null } else { json!(event.round + 1) },
        "board": event.board,
        "event": kind,
        "detail": detail,
    })
}

fn detail(body: &Body) -> (&'static str, Value) {
    match body {
        Body::Submitted(submitted) => ("submitted", json!({ "runs": submitted.runs })),
        Body::Assigned(assigned) => ("assigned", json!({ "attempt": assigned.attempt })),
        Body::StepStarted(started) => ("step", json!({ "step": step(started) })),
        Body::Proved(identity) => {
            let (what, value) = proof(identity);
            let release = &identity.release;
            (
                "proved",
                json!({ "release": release, "by": what, "value": value }),
            )
        }
        Body::TrialDone(trial) => (
            "trial",
            json!({
                "trial": trial.index + 1,
                "workload": trial.workload,
                "failure": j::failure(trial.failure.as_ref()),
            }),
        ),
        Body::Note(note) => ("note", json!({ "text": note })),
        Body::AttemptFailed(failed) => (
            "attempt-failed",
            json!({
                "attempt": failed.attempt,
                "failure": j::failure(failed.failure.as_ref()),
                "repeated": failed.repeated,
            }),
        ),
        Body::RunEnded(ended) => (
            "run-ended",
            json!({ "state": ended.state, "failure": j::failure(ended.failure.as_ref()) }),
        ),
        Body::ArtifactStored(artifact) => (
            "artifact",
            json!({
                "name": artifact.name,
                "kind": artifact.kind,
                "trial": artifact.trial.map(|trial| trial + 1),
            }),
        ),
        Body::JobEnded(ended) => (
            "job-ended",
            json!({
                "state": j::job_state(ended.state),
                "failure_class": j::class(ended.failure_class),
            }),
        ),
        Body::CancelRequested(_) => ("cancel-requested", Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_and_what() {
        let event = v1::JobEvent {
            seq: 3,
            at: Some(prost_types::Timestamp {
                seconds: 1_700_000_000,
                nanos: 0,
            }),
            run: "r".into(),
            variant: "rt".into(),
            round: 1,
            board: "vb1".into(),
            body: Some(Body::StepStarted(klab_model::Step::Boot.into())),
        };
        assert_eq!(line(&event), "2023-11-14T22:13:20Z vb1 round 2 rt: boot");
        assert_eq!(json(&event)["detail"]["step"], "boot");
    }
}
