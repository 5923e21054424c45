//! Kernels that jobs name before they are built.

use klab_model::{
    Arch, BuildTaskId, Failure, JobEventBody, JobState, KernelName, Run, RunEvent, TargetState,
};
use klab_store::{JobRecord, NewEvent, Transition};

use super::super::{Engine, EngineError, decide, found};

/// What is known of a kernel that a job names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The lab has it.
    Ready(Arch),
    /// A build will add it.
    Building(Arch, BuildTaskId),
    /// It will never be there.
    Never(Failure),
}

impl Engine {
    /// What is known of a kernel of this name; `None` if nobody ever heard of it.
    pub(crate) async fn wanted(&self, name: &KernelName) -> Result<Option<Wanted>, EngineError> {
        if let Some(kernel) = found(self.store.kernel(name).await)? {
            return Ok(Some(Wanted::Ready(kernel.offer.arch)));
        }
        let Some((record, index)) = self.store.build_of_kernel(name).await? else {
            return Ok(None);
        };
        let arch = record.build.arch;
        let state = record.state.value.targets.get(index as usize);
        Ok(Some(match state {
            Some(TargetState::Failed(failure)) => Wanted::Never(failure.clone()),
            Some(TargetState::Waiting) if record.state.value.is_live() => {
                Wanted::Building(arch, record.build.id)
            }
            // Built, and added before that was said: it has just arrived.
            Some(TargetState::Built { .. }) => Wanted::Ready(arch),
            _ => Wanted::Never(Failure::infrastructure(format!(
                "build {} ended without it",
                record.build.id
            ))),
        }))
    }

    /// The architecture of a job whose kernels are all there or will never be; `None` as
    /// long as one is being built. Runs whose kernel will never be there end.
    pub(in crate::engine) async fn settle_kernels(
        &self,
        record: &JobRecord,
    ) -> Result<Option<Arch>, EngineError> {
        let mut arch = None;
        let mut never = Vec::new();
        for variant in &record.job.variants {
            let wanted = self.wanted(&variant.kernel).await?;
            match wanted.unwrap_or_else(|| gone(&variant.kernel)) {
                Wanted::Ready(ready) => arch = Some(ready),
                Wanted::Building(..) => return Ok(None),
                Wanted::Never(failure) => never.push((variant.name.clone(), failure)),
            }
        }
        for (variant, mut failure) in never {
            failure.reason = format!("{variant} was not built: {}", failure.reason);
            let waits = |run: &Run| run.variant == variant && run.state.is_live();
            if record.runs().any(waits) {
                decide(|| self.end_unbuilt(record, waits, &failure)).await?;
            }
        }
        Ok(arch)
    }

    async fn end_unbuilt(
        &self,
        record: &JobRecord,
        concerned: impl Fn(&Run) -> bool,
        failure: &Failure,
    ) -> Result<(), EngineError> {
        let id = record.job.id;
        let record = self.store.job(id).await?;
        let mut transition = Transition::new(self.now());
        let mut after = Vec::new();
        for run in &record.runs {
            let mut new = run.value.clone();
            let event = RunEvent::NotBuilt {
                failure: failure.clone(),
            };
            if concerned(&run.value)
                && let Ok(state) = run.value.state.apply(event)
            {
                transition = transition.run(run, state.clone());
                if let Some(outcome) = state.outcome() {
                    let body = JobEventBody::RunEnded {
                        outcome: outcome.clone(),
                    };
                    transition = transition.event(NewEvent::of_run(id, run.value.id, None, body));
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
        self.feed_changed();
        Ok(())
    }
}

fn gone(kernel: &KernelName) -> Wanted {
    Wanted::Never(Failure::infrastructure(format!(
        "kernel {kernel} is not in the lab"
    )))
}
