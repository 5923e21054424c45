//! Typed ids: version-7 UUIDs, so that sorting by id is sorting by time of creation.
//!
//! Ids are never made here: whoever creates a thing is handed a source of ids.

use newtype_uuid::{TypedUuid, TypedUuidKind, TypedUuidTag};

macro_rules! id_type {
    ($(#[$doc:meta])* $id:ident, $kind:ident, $tag:literal) => {
        /// The kind behind an id type; it has no values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $kind {}

        impl TypedUuidKind for $kind {
            fn tag() -> TypedUuidTag {
                const TAG: TypedUuidTag = TypedUuidTag::new($tag);
                TAG
            }
        }

        $(#[$doc])*
        pub type $id = TypedUuid<$kind>;
    };
}

id_type!(
    /// Names a job.
    JobId, JobKind, "job"
);
id_type!(
    /// Names a run; attempts of one run share it.
    RunId, RunKind, "run"
);
id_type!(
    /// Names one artifact record (its bytes are named by their digest).
    ArtifactId, ArtifactIdKind, "artifact"
);
id_type!(
    /// Names one installation of the agent: made once, kept in its state folder.
    InstanceId, InstanceKind, "instance"
);
id_type!(
    /// Names one connection of an agent to a controller.
    SessionId, SessionKind, "session"
);
id_type!(
    /// Names a build: a request for kernels. (A [`crate::BuildId`] is the GNU one.)
    BuildTaskId, BuildTaskKind, "build"
);
