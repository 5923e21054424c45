//! What an exit code means; scripts rely on it.

use std::error::Error;
use std::path::Path;

use klab_config::Diagnostics;
use tonic::{Code, Status};

/// The exit codes of `klab`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Everything was done.
    Done = 0,
    /// A kernel or a workload failed.
    Failed = 1,
    /// The command or the request was wrong.
    Usage = 2,
    /// The lab failed, or the job was cancelled.
    Infrastructure = 3,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code as u8)
    }
}

/// An error with the exit code it leads to.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) code: ExitCode,
    /// Empty if there is nobody left to say something to.
    pub(crate) message: String,
}

impl CliError {
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self {
            code: ExitCode::Usage,
            message: message.to_string(),
        }
    }

    /// An end without a word.
    pub(crate) fn silent(code: ExitCode) -> Self {
        let message = String::new();
        Self { code, message }
    }

    /// The command named something that cannot be used; the causes say why.
    pub(crate) fn refused(error: &dyn Error) -> Self {
        Self::usage(with_causes(error))
    }

    /// A plan file with everything that is wrong with it.
    pub(crate) fn bad_plan(file: &str, problems: &Diagnostics) -> Self {
        Self::usage(format!("{file} is refused\n\n{}", problems.render()))
    }

    /// A file could not be read or written.
    pub(crate) fn file(what: &str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::infrastructure(format!("cannot {what} {}: {error}", path.display()))
    }

    pub(crate) fn infrastructure(message: impl ToString) -> Self {
        Self {
            code: ExitCode::Infrastructure,
            message: message.to_string(),
        }
    }
}

/// An error and what caused it, on one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        let violations = klab_proto::status::violations_of(&status);
        let message = if is_broken(&status) {
            "the connection to the controller broke: see that `klab-controller` runs, and that \
             --controller or KLAB_CONTROLLER says where it listens"
                .to_owned()
        } else if violations.is_empty() {
            format!("the controller answered: {}", status.message())
        } else {
            let lines: Vec<String> = violations
                .into_iter()
                .map(|(field, problem)| format!("{field}: {problem}"))
                .collect();
            format!(
                "the controller refused the request:\n  {}",
                lines.join("\n  ")
            )
        };
        match status.code() {
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange => Self::usage(message),
            _ => Self::infrastructure(message),
        }
    }
}

/// Whether a status was made here, because the connection broke or what answers speaks
/// something else. The controller's own carry a reason.
pub(crate) fn is_broken(status: &Status) -> bool {
    let transport = [
        Code::Unavailable,
        Code::Unknown,
        Code::Internal,
        Code::Cancelled,
    ];
    transport.contains(&status.code()) && klab_proto::status::reason_of(status).is_none()
}

impl From<klab_vboard::Error> for CliError {
    fn from(error: klab_vboard::Error) -> Self {
        Self::infrastructure(with_causes(&error))
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::infrastructure(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_statuses() {
        for (code, exit) in [
            (Code::InvalidArgument, ExitCode::Usage),
            (Code::NotFound, ExitCode::Usage),
            (Code::AlreadyExists, ExitCode::Usage),
            (Code::Unavailable, ExitCode::Infrastructure),
            (Code::ResourceExhausted, ExitCode::Infrastructure),
            (Code::Internal, ExitCode::Infrastructure),
        ] {
            assert_eq!(
                CliError::from(Status::new(code, "x")).code,
                exit,
                "{code:?}"
            );
        }
    }
}
