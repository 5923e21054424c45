//! What controllers and builders say to each other.

use crate::{
    Arch, Build, BuildSeries, BuildTaskId, Digest, Failure, Fence, GitRef, KernelConfig, ObjectId,
    Owner, TargetSource, Tree, TreeName, VariantName,
};

/// A wish for kernels, before it has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// Who asks.
    pub owner: Owner,
    /// The tree.
    pub tree: TreeName,
    /// As in [`Build::base`].
    pub base: Option<GitRef>,
    /// As in [`Build::series`].
    pub series: Option<BuildSeries>,
    /// The configuration.
    pub config: KernelConfig,
    /// The architecture.
    pub arch: Arch,
    /// The targets.
    pub targets: Vec<(VariantName, TargetSource)>,
}

/// Names one attempt of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BuildRef {
    /// The build.
    pub build: BuildTaskId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The token of the attempt.
    pub fence: Fence,
}

/// What a builder is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildOrder {
    /// The attempt.
    pub at: BuildRef,
    /// Where the source is.
    pub tree: Tree,
    /// What is wanted.
    pub build: Build,
    /// The targets that are not known yet: indices, ascending.
    pub pending: Vec<u32>,
    /// The base that an earlier attempt found. All targets are built on it, even if the branch
    /// has gone on since.
    pub base: Option<ObjectId>,
}

/// What a builder says about its build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildReport {
    /// Something people should know.
    Note(String),
    /// The commit that the series is applied to.
    BaseFound(ObjectId),
    /// It came to a target.
    TargetStarted {
        /// Which one, from 0.
        index: u32,
    },
    /// Everything that decides what the kernel will be is known; a verdict is asked for.
    TargetKey {
        /// Which target, from 0.
        index: u32,
        /// The digest of all that.
        key: Digest,
    },
    /// The kernel was added under the target's name.
    TargetBuilt {
        /// Which target, from 0.
        index: u32,
        /// As it was told before.
        key: Digest,
        /// From the start of the target, in milliseconds.
        duration_ms: u64,
    },
    /// There will be no kernel.
    TargetFailed {
        /// Which target, from 0.
        index: u32,
        /// For people.
        reason: String,
        /// From the start of the target, in milliseconds.
        duration_ms: u64,
    },
    /// How far it is.
    Progress(BuildProgress),
    /// Goes to the end of the log.
    Log(Vec<u8>),
    /// Nothing is left to do, or nothing can be done.
    Finished {
        /// Why it could not go on, if so.
        failure: Option<Failure>,
    },
    /// It stopped because it was told to.
    Stopped,
}

/// How far a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildProgress {
    /// Which target, from 0.
    pub index: u32,
    /// Files that are compiled.
    pub files_done: u32,
    /// Files that are to be compiled; 0 where that is not known.
    pub files_total: u32,
}
