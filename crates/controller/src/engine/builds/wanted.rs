//! Kernels that jobs name before they are built.

use std::collections::BTreeSet;

use klab_model::{
    Arch, BoardSlot, BuildTaskId, Failure, Job, JobEventBody, JobState, Kernel, KernelName, Run,
    RunEvent, TargetState,
};
use klab_store::{JobRecord, NewEvent, StoreError, Transition};

use super::super::{Engine, EngineError, decide, found};

/// What is known of a kernel that a job names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The lab has it.
    Ready(Arch),
    /// A build will add it.
    Building(Arch, BuildTaskId),
    /// It will never be there.
    Never(NeverBuilt),
}

/// Why a kernel will never be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeverBuilt {
    /// The architecture it was to be built for, if that is known.
    arch: Option<Arch>,
    pub(crate) failure: Failure,
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
            Some(TargetState::Failed(failure)) => Wanted::Never(NeverBuilt {
                arch: Some(arch),
                failure: failure.clone(),
            }),
            Some(TargetState::Waiting) if record.state.value.is_live() => {
                Wanted::Building(arch, record.build.id)
            }
            // Built, and added before that was said: it has just arrived.
            Some(TargetState::Built { .. }) => Wanted::Ready(arch),
            _ => Wanted::Never(NeverBuilt {
                arch: Some(arch),
                failure: Failure::infrastructure(format!(
                    "build {} ended without it",
                    record.build.id
                )),
            }),
        }))
    }

    /// The architectures of a job whose kernels are all there or will never be; `None` as
    /// long as one is being built. Runs whose kernel will never be there end.
    pub(in crate::engine) async fn settle_kernels(
        &self,
        record: &JobRecord,
    ) -> Result<Option<BTreeSet<Arch>>, EngineError> {
        let mut archs = BTreeSet::new();
        let mut never = Vec::new();
        for variant in &record.job.variants {
            for kernel in &variant.kernels {
                let wanted = self.wanted(kernel).await?;
                match wanted.unwrap_or_else(|| gone(kernel)) {
                    Wanted::Ready(arch) => {
                        archs.insert(arch);
                    }
                    Wanted::Building(..) => return Ok(None),
                    Wanted::Never(never_built) => never.push((variant, never_built)),
                }
            }
        }
        for (variant, NeverBuilt { arch, mut failure }) in never {
            let name = &variant.name;
            failure.reason = format!("{name} was not built: {}", failure.reason);
            // With kernels for other architectures, only boards of this one have nothing to run.
            let slots = match (variant.kernels.len(), arch) {
                (1, _) | (_, None) => None,
                (_, Some(arch)) => Some(self.slots_of(&record.job, arch).await?),
            };
            let here = |slot: &u32| slots.as_ref().is_none_or(|slots| slots.contains(slot));
            let waits = |run: &Run| run.variant == *name && run.state.is_live() && here(&run.slot);
            if record.runs().any(waits) {
                decide(|| self.end_unbuilt(record, waits, &failure)).await?;
            }
        }
        Ok(Some(archs))
    }

    /// The slots whose boards are of an architecture.
    async fn slots_of(&self, job: &Job, arch: Arch) -> Result<BTreeSet<u32>, EngineError> {
        let mut slots = BTreeSet::new();
        for (slot, index) in job.boards.iter().zip(0..) {
            let Some(name) = slot.board() else { continue };
            if self.store.board(name).await?.value.arch == arch {
                slots.insert(index);
            }
        }
        Ok(slots)
    }

    /// The kernel that a run boots: of its variant, for the architecture of its board. `None`
    /// if the lab does not have it.
    pub(in crate::engine) async fn kernel_of(
        &self,
        job: &Job,
        run: &Run,
    ) -> Result<Option<Kernel>, StoreError> {
        let mut variants = job.variants.iter();
        let Some(variant) = variants.find(|variant| variant.name == run.variant) else {
            return Ok(None);
        };
        if let [only] = variant.kernels.as_slice() {
            return found(self.store.kernel(only).await);
        }
        let slot = job.boards.get(run.slot as usize);
        let Some(board) = slot.and_then(BoardSlot::board) else {
            return Ok(None);
        };
        let arch = self.store.board(board).await?.value.arch;
        for name in &variant.kernels {
            let kernel = found(self.store.kernel(name).await)?;
            if let Some(kernel) = kernel.filter(|kernel| kernel.offer.arch == arch) {
                return Ok(Some(kernel));
            }
        }
        Ok(None)
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
    Wanted::Never(NeverBuilt {
        arch: None,
        failure: Failure::infrastructure(format!("kernel {kernel} is not in the lab")),
    })
}
