//! `klab build watch`: follows a build, across restarts of the controller.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use klab_proto::v1;
use klab_series::defuse;
use klab_task::{Backoff, system_random};
use serde_json::{Value, json};
use v1::build_event::Body;
use v1::watch_build_response::News;

use crate::args::Global;
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::{json as j, output};

/// How often progress is a line of its own where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// Follows builds one after the other; the gravest exit code says how they ended.
pub(crate) async fn follow_all(
    global: &Global,
    builds: &[v1::Build],
) -> Result<ExitCode, CliError> {
    let mut gravest = ExitCode::Done;
    for build in builds {
        let code = follow(global, &build.id).await?;
        if code as u8 > gravest as u8 {
            gravest = code;
        }
    }
    Ok(gravest)
}

/// Follows a build to its end; the exit code says how it ended.
pub(crate) async fn follow(global: &Global, id: &str) -> Result<ExitCode, CliError> {
    let mut show = Show::of(global);
    let mut after = 0;
    let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));
    let mut first = true;
    let ended = loop {
        match connection(global, id, &mut after, &mut show).await {
            Ok(Some(ended)) => break ended,
            Ok(None) => backoff.reset(),
            // The controller restarts; the build goes on, and so does its feed.
            Err(error) if error.code == ExitCode::Infrastructure && !first => {}
            Err(error) => return Err(error),
        }
        first = false;
        tokio::time::sleep(backoff.next(system_random())).await;
    };
    show.end();
    Ok(exit_code(&ended))
}

/// One connection's worth of news; `None` if it ended before the build.
async fn connection(
    global: &Global,
    id: &str,
    after: &mut u64,
    show: &mut Show,
) -> Result<Option<v1::build_event::Ended>, CliError> {
    let client = Client::connect(global).await?;
    let request = v1::WatchBuildRequest {
        id: id.to_owned(),
        after: *after,
    };
    let mut stream = client.builds().watch_build(request).await?.into_inner();
    while let Ok(Some(news)) = stream.message().await {
        match news.news {
            Some(News::Event(event)) => {
                *after = event.seq;
                show.event(&event)?;
                if let Some(Body::Ended(ended)) = event.body {
                    return Ok(Some(ended));
                }
            }
            Some(News::Progress(progress)) => show.progress(&progress)?,
            None => {}
        }
    }
    Ok(None)
}

fn exit_code(ended: &v1::build_event::Ended) -> ExitCode {
    let class = ended.failure.as_ref().map(v1::Failure::class);
    match (ended.state.as_str(), class) {
        ("done", _) => ExitCode::Done,
        ("failed", Some(v1::FailureClass::Kernel)) => ExitCode::Failed,
        _ => ExitCode::Infrastructure,
    }
}

/// Where the news go.
enum Show {
    Json,
    Lines(Option<Instant>),
    Bar(ProgressBar),
    Nothing,
}

impl Show {
    fn of(global: &Global) -> Self {
        if global.json {
            Show::Json
        } else if global.quiet {
            Show::Nothing
        } else if std::io::stderr().is_terminal() {
            Show::Bar(bar())
        } else {
            Show::Lines(None)
        }
    }

    fn event(&mut self, event: &v1::BuildEvent) -> Result<(), CliError> {
        let text = line(event);
        match self {
            Show::Json => return output::json(&event_json(event)),
            Show::Lines(last) => {
                *last = None;
                output::say(text);
            }
            Show::Bar(bar) => bar.println(text),
            Show::Nothing => {}
        }
        Ok(())
    }

    fn progress(&mut self, progress: &v1::BuildProgress) -> Result<(), CliError> {
        let v1::BuildProgress {
            variant,
            files_done,
            files_total,
        } = progress;
        match self {
            Show::Json => {
                return output::json(&json!({
                    "kind": "progress",
                    "variant": variant,
                    "files_done": files_done,
                    "files_total": files_total,
                }));
            }
            Show::Lines(last) => {
                if last.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
                    *last = Some(Instant::now());
                    output::say(format!("{variant}: {files_done} of {files_total} files"));
                }
            }
            Show::Bar(bar) => {
                bar.set_length(u64::from(*files_total));
                bar.set_position(u64::from(*files_done));
                bar.set_message(variant.clone());
            }
            Show::Nothing => {}
        }
        Ok(())
    }

    fn end(&self) {
        if let Show::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{msg:12} {bar:40} {pos}/{len} files, {eta} left");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

fn line(event: &v1::BuildEvent) -> String {
    let time = j::time(event.at.as_ref());
    let words = event.body.as_ref().map_or_else(String::new, words);
    format!("{time} build: {words}")
}

fn because(failure: Option<&v1::Failure>) -> String {
    failure.map_or_else(String::new, |failure| {
        format!(" ({}: {})", j::class(failure.class), shown(&failure.reason))
    })
}

/// Several lines, each safe to print.
fn shown(text: &str) -> String {
    text.lines().map(defuse).collect::<Vec<_>>().join("\n  ")
}

fn words(body: &Body) -> String {
    match body {
        Body::Submitted(submitted) => match submitted.targets {
            1 => "submitted: 1 kernel".to_owned(),
            count => format!("submitted: {count} kernels"),
        },
        Body::Assigned(assigned) => {
            format!(
                "builder {} begins, attempt {}",
                assigned.builder, assigned.attempt
            )
        }
        Body::Note(text) => format!("note: {}", shown(text)),
        Body::BaseFound(commit) => format!("base is {commit}"),
        Body::TargetStarted(variant) => format!("{variant} begins"),
        Body::TargetEnded(ended) => {
            let seconds = ended
                .duration
                .as_ref()
                .map_or(0, |duration| duration.seconds);
            let variant = &ended.variant;
            match ended.state.as_str() {
                "cached" => format!("{variant} had been built before"),
                "built" => format!("{variant} built in {seconds} s"),
                state => format!("{variant} {state}: {}", shown(&ended.reason)),
            }
        }
        Body::AttemptFailed(failed) => {
            let then = if failed.repeated {
                ", will be repeated"
            } else {
                ""
            };
            format!(
                "attempt {} failed{}{then}",
                failed.attempt,
                because(failed.failure.as_ref())
            )
        }
        Body::Ended(ended) => ended.state.clone(),
        Body::CancelRequested(_) => "cancel requested".to_owned(),
    }
}

fn event_json(event: &v1::BuildEvent) -> Value {
    let (kind, details) = match &event.body {
        Some(Body::Submitted(submitted)) => ("submitted", json!({ "targets": submitted.targets })),
        Some(Body::Assigned(assigned)) => (
            "assigned",
            json!({ "builder": assigned.builder, "attempt": assigned.attempt }),
        ),
        Some(Body::Note(text)) => ("note", json!({ "text": text })),
        Some(Body::BaseFound(commit)) => ("base_found", json!({ "commit": commit })),
        Some(Body::TargetStarted(variant)) => ("target_started", json!({ "variant": variant })),
        Some(Body::TargetEnded(ended)) => (
            "target_ended",
            json!({
                "variant": ended.variant,
                "state": ended.state,
                "reason": ended.reason,
                "seconds": ended.duration.as_ref().map(|duration| duration.seconds),
            }),
        ),
        Some(Body::AttemptFailed(failed)) => (
            "attempt_failed",
            json!({
                "attempt": failed.attempt,
                "failure": j::failure(failed.failure.as_ref()),
                "repeated": failed.repeated,
            }),
        ),
        Some(Body::Ended(ended)) => (
            "ended",
            json!({ "state": ended.state, "failure": j::failure(ended.failure.as_ref()) }),
        ),
        Some(Body::CancelRequested(_)) => ("cancel_requested", json!({})),
        None => ("unknown", json!({})),
    };
    json!({
        "seq": event.seq,
        "at": j::time(event.at.as_ref()),
        "kind": kind,
        "details": details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_build_is_an_exit_code() {
        let code = |state: &str, class: Option<v1::FailureClass>| {
            exit_code(&v1::build_event::Ended {
                state: state.to_owned(),
                failure: class.map(|class| v1::Failure {
                    class: class.into(),
                    reason: String::new(),
                }),
            })
        };
        use v1::FailureClass as C;
        assert_eq!(code("done", None), ExitCode::Done);
        assert_eq!(code("failed", Some(C::Kernel)), ExitCode::Failed);
        assert_eq!(
            code("failed", Some(C::Infrastructure)),
            ExitCode::Infrastructure
        );
        assert_eq!(code("cancelled", None), ExitCode::Infrastructure);
    }

    #[test]
    fn what_a_build_says_cannot_act_on_a_terminal() {
        let event = v1::BuildEvent {
            body: Some(Body::Note("a\u{1b}[2Jb\nc".to_owned())),
            ..Default::default()
        };
        assert_eq!(line(&event), " build: note: a\\u{1b}[2Jb\n  c");
    }
}
