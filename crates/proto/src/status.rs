//! From errors to gRPC statuses: the one mapping.
//!
//! Every status carries an `ErrorInfo` with a stable reason in the domain `klab`, and bad
//! requests carry the violated fields, so that scripts need not read prose.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::ConvertError;

/// The domain in every `ErrorInfo`.
pub const DOMAIN: &str = "klab";

/// Machine-readable reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A field of the request is wrong.
    BadRequest,
    /// The named thing does not exist.
    NotFound,
    /// The name is taken by something else.
    AlreadyExists,
    /// Another installation of the agent holds the board's name.
    BoardNameHeld,
    /// The request does not fit the state of things.
    WrongState,
    /// The attempt is no longer in charge of its run.
    StaleAttempt,
    /// The bytes do not have the digest they were announced with.
    DigestMismatch,
    /// The upload does not continue where the stored part ends.
    WrongOffset,
    /// The controller's disk is full.
    DiskFull,
    /// Something inside failed.
    Internal,
    /// The controller is shutting down.
    ShuttingDown,
}

impl Reason {
    /// The word in `ErrorInfo.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::BadRequest => "BAD_REQUEST",
            Reason::NotFound => "NOT_FOUND",
            Reason::AlreadyExists => "ALREADY_EXISTS",
            Reason::BoardNameHeld => "BOARD_NAME_HELD",
            Reason::WrongState => "WRONG_STATE",
            Reason::StaleAttempt => "STALE_ATTEMPT",
            Reason::DigestMismatch => "DIGEST_MISMATCH",
            Reason::WrongOffset => "WRONG_OFFSET",
            Reason::DiskFull => "DISK_FULL",
            Reason::Internal => "INTERNAL",
            Reason::ShuttingDown => "SHUTTING_DOWN",
        }
    }

    /// The gRPC code that goes with it.
    pub const fn code(self) -> Code {
        match self {
            Reason::BadRequest => Code::InvalidArgument,
            Reason::NotFound => Code::NotFound,
            Reason::AlreadyExists | Reason::BoardNameHeld => Code::AlreadyExists,
            Reason::WrongState | Reason::StaleAttempt => Code::FailedPrecondition,
            Reason::DigestMismatch => Code::DataLoss,
            Reason::WrongOffset => Code::OutOfRange,
            Reason::DiskFull => Code::ResourceExhausted,
            Reason::Internal => Code::Internal,
            Reason::ShuttingDown => Code::Unavailable,
        }
    }
}

/// A status with a reason.
pub fn status(reason: Reason, message: impl Into<String>) -> Status {
    let details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, HashMap::new());
    Status::with_error_details(reason.code(), message, details)
}

/// `INVALID_ARGUMENT` with the violated fields as `(field, what is wrong)`.
pub fn bad_request(violations: Vec<(String, String)>) -> Status {
    let message = violations
        .iter()
        .map(|(field, problem)| format!("{field}: {problem}"))
        .collect::<Vec<_>>()
        .join("\n");
    let fields: Vec<FieldViolation> = violations
        .into_iter()
        .map(|(field, problem)| FieldViolation::new(field, problem))
        .collect();
    let mut details = ErrorDetails::with_bad_request(fields);
    details.set_error_info(Reason::BadRequest.as_str(), DOMAIN, HashMap::new());
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// The reason that a status carries, if it came from klab.
pub fn reason_of(status: &Status) -> Option<String> {
    status
        .get_details_error_info()
        .filter(|info| info.domain == DOMAIN)
        .map(|info| info.reason)
}

/// The violated fields that a status carries.
pub fn violations_of(status: &Status) -> Vec<(String, String)> {
    status
        .get_details_bad_request()
        .map(|bad| {
            bad.field_violations
                .into_iter()
                .map(|v| (v.field, v.description))
                .collect()
        })
        .unwrap_or_default()
}

impl From<ConvertError> for Status {
    fn from(error: ConvertError) -> Status {
        bad_request(vec![(error.field, error.problem)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_request_names_its_fields() {
        let status = bad_request(vec![("rounds".into(), "must be at least 1".into())]);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(reason_of(&status).as_deref(), Some("BAD_REQUEST"));
        assert_eq!(
            violations_of(&status),
            [("rounds".into(), "must be at least 1".into())]
        );
    }

    #[test]
    fn every_status_carries_its_reason() {
        let status = status(Reason::DiskFull, "no room");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(reason_of(&status).as_deref(), Some("DISK_FULL"));
    }
}
