//! `klab watch`: follows a job, across restarts of the controller.

use std::io::IsTerminal;
use std::time::Duration;

use klab_proto::v1;
use klab_task::{Backoff, system_random};
use tonic::{Code, Status};
use v1::job_event::Body;

use crate::args::Global;
use crate::client::{Client, of_job};
use crate::exit::{CliError, ExitCode, is_broken};
use crate::progress::Progress;
use crate::{build_watch, builds, events, output};

pub(crate) async fn run(global: &Global, job: &str) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    let id = client.job_id(job).await?;
    let request = v1::GetJobRequest { id: id.clone() };
    let answer = client.jobs().get_job(request).await;
    let job = answer
        .map_err(of_job(&id))?
        .into_inner()
        .job
        .unwrap_or_default();
    // A job waits for its kernels before anything else happens to it.
    let builds = builds::of_job(&client, &job).await?;
    build_watch::follow_all(global, &builds).await?;
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

    fn take(&mut self, event: &v1::JobEvent) -> Result<(), CliError> {
        match self {
            // Without a reader, how the job ends is not waited for.
            Show::Json => output::json(&events::json(event)).map_err(|error| CliError {
                code: ExitCode::Infrastructure,
                ..error
            })?,
            Show::Lines => output::say(events::line(event)),
            Show::Bars(progress) => progress.take(event),
            Show::Nothing => {}
        }
        Ok(())
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
            Err(Cut::Away(why)) => feed.lost(&why),
            Err(Cut::Final(error)) => return Err(error),
        }
        // The controller restarts; the job goes on, and so does the feed.
        tokio::time::sleep(feed.backoff.next(system_random())).await;
    };
    if let Show::Bars(progress) = &feed.show {
        progress.end();
    }
    Ok(code)
}

/// Why a connection did not show the end of the job.
enum Cut {
    /// The next try may do better; what was wrong with this one.
    Away(String),
    /// No other try will help.
    Final(CliError),
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
    async fn connection(&mut self) -> Result<Option<v1::job_event::JobEnded>, Cut> {
        let client = Client::connect(self.global).await.map_err(unreached)?;
        let request = v1::WatchJobRequest {
            id: self.id.to_owned(),
            after: self.after,
        };
        let answer = client.jobs().watch_job(request).await;
        let mut stream = answer.map_err(|status| self.refused(status))?.into_inner();
        self.found();
        loop {
            let event = match stream.message().await {
                Ok(Some(response)) => response.event,
                Ok(None) => return Ok(None),
                Err(status) if status.code() == Code::NotFound => return Err(self.refused(status)),
                Err(_) => return Ok(None),
            };
            let Some(event) = event else { continue };
            self.after = event.seq;
            self.backoff.reset();
            self.show.take(&event).map_err(Cut::Final)?;
            if let Some(Body::JobEnded(ended)) = event.body {
                return Ok(Some(ended));
            }
        }
    }

    fn refused(&self, status: Status) -> Cut {
        let broken = is_broken(&status);
        match of_job(self.id)(status) {
            error if error.code == ExitCode::Usage => Cut::Final(error),
            _ if broken => Cut::Away(SILENCE.to_owned()),
            error => Cut::Away(error.message),
        }
    }

    fn lost(&mut self, why: &str) {
        if !self.missed {
            self.show.say(&format!("{why}; trying again"));
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

/// The advice for a first command does not fit where there was a connection before.
const SILENCE: &str = "the controller does not answer";

fn unreached(error: CliError) -> Cut {
    match error.code {
        ExitCode::Infrastructure => Cut::Away(SILENCE.to_owned()),
        _ => Cut::Final(error),
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
