//! `klab watch`: follows a job, across restarts of the controller.

use std::io::IsTerminal;
use std::time::Duration;

use klab_proto::v1;
use tonic::Code;
use v1::job_event::Body;

use crate::args::Global;
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::progress::Progress;
use crate::{events, output};

pub(crate) async fn run(global: &Global, job: &str) -> Result<ExitCode, CliError> {
    let id = Client::connect(global).await?.job_id(job).await?;
    follow(global, &id).await
}

/// Where the events go.
enum Show {
    Json,
    Lines,
    Bars(Progress),
    Nothing,
}

impl Show {
    fn of(global: &Global) -> Self {
        if global.json {
            Show::Json
        } else if global.quiet {
            Show::Nothing
        } else if std::io::stderr().is_terminal() {
            Show::Bars(Progress::new())
        } else {
            Show::Lines
        }
    }

    fn take(&mut self, event: &v1::JobEvent) {
        match self {
            Show::Json => output::json(&events::json(event)),
            Show::Lines => output::say(events::line(event)),
            Show::Bars(progress) => progress.take(event),
            Show::Nothing => {}
        }
    }
}

/// Follows a job to its end; the exit code says how it ended.
pub(crate) async fn follow(global: &Global, id: &str) -> Result<ExitCode, CliError> {
    let mut show = Show::of(global);
    let mut after = 0;
    let mut wait = Duration::from_millis(250);
    let code = loop {
        match stream(global, id, &mut after, &mut show).await {
            Ok(Some(ended)) => break exit_code(ended),
            Ok(None) => {}
            Err(error) if error.code == ExitCode::Usage => return Err(error),
            Err(error) if after == 0 && wait > Duration::from_secs(5) => return Err(error),
            Err(_) => {}
        }
        // The controller restarts; the job goes on, and so does the feed.
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(10));
    };
    if let Show::Bars(progress) = &show {
        progress.end();
    }
    Ok(code)
}

/// One connection's worth of events; `None` if it ended before the job.
async fn stream(
    global: &Global,
    id: &str,
    after: &mut u64,
    show: &mut Show,
) -> Result<Option<v1::job_event::JobEnded>, CliError> {
    let client = Client::connect(global).await?;
    let request = v1::WatchJobRequest {
        id: id.to_owned(),
        after: *after,
    };
    let mut stream = client.jobs().watch_job(request).await?.into_inner();
    loop {
        let event = match stream.message().await {
            Ok(Some(response)) => response.event,
            Ok(None) => return Ok(None),
            Err(status) if status.code() == Code::NotFound => return Err(status.into()),
            Err(_) => return Ok(None),
        };
        let Some(event) = event else { continue };
        *after = event.seq;
        show.take(&event);
        if let Some(Body::JobEnded(ended)) = event.body {
            return Ok(Some(ended));
        }
    }
}

fn exit_code(ended: v1::job_event::JobEnded) -> ExitCode {
    match (ended.state(), ended.failure_class()) {
        (v1::JobState::Done, _) => ExitCode::Done,
        (v1::JobState::Failed, v1::FailureClass::Kernel | v1::FailureClass::Workload) => {
            ExitCode::Failed
        }
        _ => ExitCode::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_job_is_an_exit_code() {
        let code = |state: v1::JobState, class: v1::FailureClass| {
            exit_code(v1::job_event::JobEnded {
                state: state.into(),
                failure_class: class.into(),
            })
        };
        use v1::{FailureClass as C, JobState as S};
        assert_eq!(code(S::Done, C::Unspecified), ExitCode::Done);
        assert_eq!(code(S::Failed, C::Kernel), ExitCode::Failed);
        assert_eq!(code(S::Failed, C::Workload), ExitCode::Failed);
        assert_eq!(code(S::Failed, C::Infrastructure), ExitCode::Infrastructure);
        assert_eq!(code(S::Cancelled, C::Unspecified), ExitCode::Infrastructure);
    }
}
