//! The feed of a job.

use std::time::Duration;

use klab_model as model;

use super::common::duration;
use super::user::timestamp;
use crate::v1;
use crate::v1::job_event::Body;

impl v1::JobEvent {
    /// An event as users see it. `run` is the run it is about, if it is about one.
    pub fn of(event: model::JobEvent, run: Option<&model::Run>) -> v1::JobEvent {
        v1::JobEvent {
            seq: event.seq,
            at: Some(timestamp(event.at)),
            run: event.run.map(|id| id.to_string()).unwrap_or_default(),
            variant: run.map(|run| run.variant.to_string()).unwrap_or_default(),
            round: run.map(|run| run.round).unwrap_or_default(),
            board: event.board.map(String::from).unwrap_or_default(),
            body: Some(body(event.body)),
        }
    }
}

fn body(body: model::JobEventBody) -> Body {
    use model::JobEventBody as Event;
    match body {
        Event::Submitted { runs } => Body::Submitted(v1::job_event::Submitted { runs }),
        Event::RunAssigned { attempt } => Body::Assigned(v1::job_event::Assigned { attempt }),
        Event::StepStarted { step } => Body::StepStarted(step.into()),
        Event::Proved { identity } => Body::Proved(identity.into()),
        Event::TrialEnded { summary } => Body::TrialDone(trial_done(summary)),
        Event::Note { text } => Body::Note(text),
        Event::AttemptFailed {
            attempt,
            failure,
            retry,
        } => Body::AttemptFailed(v1::job_event::AttemptFailed {
            attempt,
            failure: Some(failure.into()),
            repeated: retry,
        }),
        Event::RunEnded { outcome } => Body::RunEnded(run_ended(outcome)),
        Event::ArtifactStored { name, kind, trial } => {
            Body::ArtifactStored(v1::job_event::ArtifactStored {
                name: name.into(),
                kind: kind.into(),
                trial: trial.map(|index| index.0),
            })
        }
        Event::JobEnded { state } => Body::JobEnded(state.into()),
        Event::CancelRequested => Body::CancelRequested(v1::job_event::CancelRequested {}),
    }
}

fn trial_done(summary: model::TrialSummary) -> v1::job_event::TrialDone {
    v1::job_event::TrialDone {
        index: summary.index.0,
        workload: summary.workload.into(),
        failure: summary.failure.map(Into::into),
        duration: Some(duration(Duration::from_millis(summary.duration_ms))),
    }
}

/// The words are those of [`model::RunState::as_str`].
fn run_ended(outcome: model::Outcome) -> v1::job_event::RunEnded {
    let (state, failure) = match outcome {
        model::Outcome::Done => ("done", None),
        model::Outcome::Failed(failure) => ("failed", Some(failure.into())),
        model::Outcome::Cancelled => ("cancelled", None),
    };
    v1::job_event::RunEnded {
        state: state.to_owned(),
        failure,
    }
}
