//! The words of klab as types.
//!
//! A **series** of patches gives **variants**; each variant is one **kernel** to be
//! measured. A **job** asks for variants × **boards** × a **plan**, in rounds. Each round
//! has one **run** per variant and board: one boot that executes the plan once. A run
//! holds **trials** (one execution of one workload), trials leave **artifacts**, and
//! artifacts are turned into **samples**.
//!
//! Everything here is pure: no clock, no files, no network. Whatever enters from outside
//! goes through a parsing constructor, so a value of one of these types is a legal value.
//! The two state machines, [`RunState`] and [`BoardState`], are the only places where a
//! transition is decided; stores save what they return and services only ask them.

mod arch;
mod artifact;
mod board;
mod build;
mod build_feed;
mod build_order;
mod build_state;
mod digest;
mod event;
mod facts;
mod failure;
mod feed;
mod id;
mod job;
mod kernel;
mod marker;
mod name;
mod order;
mod plan;
mod run;
mod sample;
mod series;
mod span;
mod text;
mod time;

pub use arch::Arch;
pub use artifact::{Artifact, ArtifactKind, ArtifactName};
pub use board::{
    Board, BoardError, BoardSelector, BoardState, Busy, Presence, Session, Tag, TagSelector,
};
pub use build::{
    Build, BuildSeries, BuildTarget, ConfigBase, ConfigText, GitRef, KernelConfig, ObjectId,
    TargetSource, Tree, TreeSource,
};
pub use build_feed::{BuildEvent, BuildEventBody};
pub use build_order::{BuildOrder, BuildProgress, BuildRef, BuildReport, BuildRequest};
pub use build_state::{
    BuildChange, BuildOutcome, BuildPhase, BuildState, BuildTransitionError, TargetState,
};
pub use digest::{BuildId, Digest, Digester, hex};
pub use event::{AgentEvent, EventBody, Identity, IdentityProof, Perturbation, TrialResult};
pub use facts::{BoardFacts, Capability, TrialFacts};
pub use failure::{Failure, FailureClass};
pub use feed::{JobEvent, JobEventBody, TrialSummary};
pub use id::{ArtifactId, BuildTaskId, InstanceId, JobId, RunId, SessionId};
pub use job::{BoardSlot, Job, JobState, Owner, Variant};
pub use kernel::{Kernel, KernelOffer};
pub use marker::BootMarker;
pub use name::{BoardName, BuilderName, KernelName, PlanName, TreeName, VariantName, WorkloadName};
pub use order::{Fence, Order, OrderKernel, Step, StepKind, TrialIndex};
pub use plan::{
    ArtifactRule, IfMissing, Load, Plan, ResultFormat, TimeLimits, TracePlan, TrialPlan, Workload,
};
pub use run::{Assignment, Outcome, Run, RunEvent, RunState, TransitionError};
pub use sample::{Direction, Metric, Sample, Unit};
pub use series::{Patch, Series};
pub use span::Span;
pub use text::InvalidText;
pub use time::{Timestamp, from_micros, to_micros};
