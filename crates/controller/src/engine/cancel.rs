//! Cancelling jobs.

use klab_model::{JobEventBody, JobId, JobState, Outcome, Run, RunEvent, RunState};
use klab_store::{JobRecord, NewEvent, Transition};

use super::session::CANCELLED;
use super::{AttemptKey, Down, Engine, EngineError, decide};

impl Engine {
    /// Cancels a job: runs that wait end at once, agents at work are told to stop. A job
    /// that has ended stays as it is.
    pub(crate) async fn cancel(&self, id: JobId) -> Result<JobRecord, EngineError> {
        let _turn = self.turn().await;
        let stopped = decide(|| self.try_cancel(id)).await?;
        for run in stopped {
            if let (Some(key), Some(assignment)) =
                (AttemptKey::assigned(&run), run.state.assignment())
            {
                self.sessions
                    .send(&assignment.board, Down::Cancel(key, CANCELLED.into()));
            }
        }
        self.feed_changed();
        self.assignable.notify_one();
        Ok(self.store.job(id).await?)
    }

    /// The runs whose agents have to be told.
    async fn try_cancel(&self, id: JobId) -> Result<Vec<Run>, EngineError> {
        let record = self.store.job(id).await?;
        if !record.state().is_live() {
            return Ok(Vec::new());
        }
        let mut transition =
            Transition::new(self.now()).event(NewEvent::of_job(id, JobEventBody::CancelRequested));
        let mut after = Vec::new();
        for run in &record.runs {
            let mut new = run.value.clone();
            if let Ok(state) = run.value.state.apply(RunEvent::Cancel) {
                transition = transition.run(run, state.clone());
                if let RunState::Ended { outcome, .. } = &state {
                    transition = transition.event(ended(&run.value, outcome));
                }
                new.state = state;
            }
            after.push(new);
        }
        let state = JobState::of(&after);
        if !state.is_live() {
            let body = JobEventBody::JobEnded { state };
            transition = transition.event(NewEvent::of_job(id, body));
        }
        self.store.transition(&transition).await?;
        Ok(after)
    }
}

fn ended(run: &Run, outcome: &Outcome) -> NewEvent {
    let body = JobEventBody::RunEnded {
        outcome: outcome.clone(),
    };
    NewEvent::of_run(run.job, run.id, None, body)
}
