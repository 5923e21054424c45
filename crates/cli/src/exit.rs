//! What an exit code means; scripts rely on it.

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
    pub(crate) message: String,
}

impl CliError {
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self {
            code: ExitCode::Usage,
            message: message.to_string(),
        }
    }

    pub(crate) fn infrastructure(message: impl ToString) -> Self {
        Self {
            code: ExitCode::Infrastructure,
            message: message.to_string(),
        }
    }
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        let violations = klab_proto::status::violations_of(&status);
        let message = if violations.is_empty() {
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

impl From<klab_vboard::Error> for CliError {
    fn from(error: klab_vboard::Error) -> Self {
        Self::infrastructure(error)
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
