//! `klab watch`: follows a job, across restarts of the controller.

use std::io::IsTerminal;
use std::time::Duration;

use klab_proto::v1;
use klab_task::{Backoff, system_random};
use tonic::{Code, Status};
use v1::job_event::Body;

use crate::args::Global;
use crate::client::Client;
use crate::exit::{CliError, ExitCode, is_broken};
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

    /// Says something about the feed itself.
    fn say(&self, text: &str) {
        match self {
            Show::Lines => output::say(text),
            Show::Bars(progress) => progress.say(text),
            Show::Json | Show::Nothing => {}
        }
    }
}

/// Follows a job to its end; the exit code says how it ended.
pub(crate) async fn follow(global: &Global, id: &str) -> Result<ExitCode, CliError> {
    let mut feed = Feed {
        global,
        id,
        after: 0,
        show: Show::of(global),
        missed: false,
        backoff: Backoff::new(Duration::from_millis(250), Duration::from_secs(10)),
    };
    let code = loop {
        match feed.connection().await {
            Ok(Some(ended)) => break exit_code(ended),
            Ok(None) => {}
            Err(error) if error.code == ExitCode::Usage => return Err(error),
            Err(error) => feed.lost(&error),
        }
        // The controller restarts; the job goes on, and so does the feed.
        tokio::time::sleep(feed.backoff.next(system_random())).await;
    };
    if let Show::Bars(progress) = &feed.show {
        progress.end();
    }
    Ok(code)
}

/// The events of a job, over as many connections as it takes.
struct Feed<'a> {
    global: &'a Global,
    id: &'a str,
    /// The last event that was shown.
    after: u64,
    show: Show,
    /// Whether it was said that the controller is away.
    missed: bool,
    backoff: Backoff,
}

impl Feed<'_> {
    /// One connection's worth of events; `None` if it ended before the job.
    async fn connection(&mut self) -> Result<Option<v1::job_event::JobEnded>, CliError> {
        let client = Client::connect(self.global).await.map_err(away)?;
        let request = v1::WatchJobRequest {
            id: self.id.to_owned(),
            after: self.after,
        };
        let answer = client.jobs().watch_job(request).await;
        let mut stream = answer.map_err(refused)?.into_inner();
        self.found();
        loop {
            let event = match stream.message().await {
                Ok(Some(response)) => response.event,
                Ok(None) => return Ok(None),
                Err(status) if status.code() == Code::NotFound => return Err(status.into()),
                Err(_) => return Ok(None),
            };
            let Some(event) = event else { continue };
            self.after = event.seq;
            self.backoff.reset();
            self.show.take(&event);
            if let Some(Body::JobEnded(ended)) = event.body {
                return Ok(Some(ended));
            }
        }
    }

    fn lost(&mut self, error: &CliError) {
        if !self.missed {
            self.show.say(&format!("{}; trying again", error.message));
        }
        self.missed = true;
    }

    fn found(&mut self) {
        if self.missed {
            self.show.say("connected again");
        }
        self.missed = false;
    }
}

/// No connection: the advice for a first command does not fit here.
fn away(error: CliError) -> CliError {
    match error.code {
        ExitCode::Infrastructure => CliError::infrastructure("the controller does not answer"),
        _ => error,
    }
}

fn refused(status: Status) -> CliError {
    let broken = is_broken(&status);
    let error = CliError::from(status);
    if broken { away(error) } else { error }
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
