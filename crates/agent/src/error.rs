//! Why the agent cannot go on.

use thiserror::Error;

/// Ends the agent; its supervisor starts it again, and the journal knows what comes next.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] crate::journal::JournalError),
    /// The state folder.
    #[error("state folder: {0}")]
    State(#[from] std::io::Error),
    /// The boot method.
    #[error("boot method: {0}")]
    Boot(#[from] klab_boot::BootError),
    /// What runs cannot be found out.
    #[error(transparent)]
    Identity(#[from] klab_boot::IdentityError),
    /// The controller wants nothing of this builder.
    #[error("{0}")]
    Link(#[source] crate::link::LinkError),
    /// Nothing can be built here.
    #[error("nothing can be built here: {0}")]
    Builder(String),
}
