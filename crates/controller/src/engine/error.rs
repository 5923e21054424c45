//! What can go wrong while a call is served.

use std::fmt::Write as _;

use klab_model::BoardError;
use klab_proto::status::{Reason, bad_request, status};
use klab_store::StoreError;
use thiserror::Error;
use tonic::Status;

/// Why a call is refused.
#[derive(Debug, Error)]
pub(crate) enum EngineError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Fields of the request are wrong.
    #[error("{} fields of the request are wrong", .0.len())]
    BadRequest(Vec<(String, String)>),
    /// The board's state does not allow it.
    #[error("board {board}: {source}")]
    Board {
        /// Which board.
        board: klab_model::BoardName,
        /// Why.
        source: BoardError,
    },
    /// Anything else that is refused, with its reason.
    #[error("{message}")]
    Refused {
        /// For machines.
        reason: Reason,
        /// For people, with the mend.
        message: String,
    },
}

impl EngineError {
    /// A refusal.
    pub(crate) fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    /// One wrong field.
    pub(crate) fn field(field: impl Into<String>, problem: impl ToString) -> Self {
        Self::BadRequest(vec![(field.into(), problem.to_string())])
    }

    /// Whether reading again and deciding again may help.
    pub(crate) const fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(StoreError::Conflict { .. }))
    }

    /// Whether it may go well once somebody has freed space.
    pub(crate) const fn is_disk_full(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::DiskFull { .. } | StoreError::DatabaseFull { .. })
        )
    }
}

impl From<EngineError> for Status {
    fn from(error: EngineError) -> Status {
        match error {
            EngineError::Store(error) => store_status(&error),
            EngineError::BadRequest(violations) => bad_request(violations),
            EngineError::Board { source, .. } => {
                let reason = match source {
                    BoardError::NameHeld { .. } => Reason::BoardNameHeld,
                    BoardError::Busy { .. }
                    | BoardError::Offline
                    | BoardError::StaleSession { .. } => Reason::WrongState,
                };
                status(reason, source.to_string())
            }
            EngineError::Refused { reason, message } => status(reason, message),
        }
    }
}

/// The status of an error of the store.
pub(crate) fn store_status(error: &StoreError) -> Status {
    let reason = match error {
        StoreError::NotFound { .. } => Reason::NotFound,
        StoreError::AlreadyExists { .. } => Reason::AlreadyExists,
        StoreError::Conflict { .. } => Reason::WrongState,
        StoreError::DiskFull { .. } | StoreError::DatabaseFull { .. } => Reason::DiskFull,
        StoreError::WrongOffset { .. }
        | StoreError::Incomplete { .. }
        | StoreError::BeyondEnd { .. } => Reason::WrongOffset,
        StoreError::Mismatch { .. } => Reason::DigestMismatch,
        StoreError::BadPageToken { .. } => {
            return bad_request(vec![("page_token".to_owned(), error.to_string())]);
        }
        _ => Reason::Internal,
    };
    let text = with_causes(error);
    if reason == Reason::Internal {
        tracing::error!(error = %text, "the store failed");
    }
    status(reason, text)
}

/// The message of an error and of everything below it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
