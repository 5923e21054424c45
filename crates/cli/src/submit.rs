//! `klab submit`.

use std::path::Path;

use klab_config::{builtin_plan, parse_plan, parse_plan_bytes};
use klab_proto::v1;

use crate::args::{Format, Global, Submit};
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::{jobs, json, output, watch};

pub(crate) async fn run(global: &Global, submit: Submit) -> Result<ExitCode, CliError> {
    let plan = plan_source(&submit.plan)?;
    // A bad plan is refused here, with its source line, before anything is sent.
    parse_plan(&plan.file_name, &plan.text)
        .map_err(|bad| CliError::bad_plan(&plan.file_name, &bad))?;
    let client = Client::connect(global).await?;
    let wait = submit.wait;
    let job = create(&client, submit, plan).await?;
    if !wait {
        if global.json {
            output::json(&json::job(&job))?;
        } else {
            output::line(&job.id)?;
        }
        return Ok(ExitCode::Done);
    }
    if !global.quiet {
        output::say(format!("job {}: {}", job.id, output::runs(job.runs_total)));
    }
    let code = watch::follow(global, &job.id).await?;
    jobs::print_report(global, &client, &job.id, Format::Text).await?;
    Ok(code)
}

/// Sends a submission.
pub(crate) async fn create(
    client: &Client,
    submit: Submit,
    plan: v1::PlanSource,
) -> Result<v1::Job, CliError> {
    let owner = submit.owner.map(String::from).unwrap_or_else(user);
    let variants = submit
        .variants
        .into_iter()
        .map(|(name, kernel)| v1::Variant {
            name: name.into(),
            kernel: kernel.into(),
        });
    let request = v1::CreateJobRequest {
        owner,
        variants: variants.collect(),
        boards: submit.boards.to_string(),
        rounds: submit.rounds,
        plan: Some(plan),
    };
    let response = client.jobs().create_job(request).await?.into_inner();
    response
        .job
        .ok_or_else(|| CliError::infrastructure("the controller did not name the job"))
}

fn user() -> String {
    std::env::var("USER")
        .ok()
        .filter(|user| !user.is_empty())
        .unwrap_or_else(|| "nobody".into())
}

/// A plan file if there is one, else a built-in plan.
pub(crate) fn plan_source(plan: &str) -> Result<v1::PlanSource, CliError> {
    let looks_like_a_file = plan.contains('/') || plan.ends_with(".yaml") || plan.ends_with(".yml");
    if looks_like_a_file || Path::new(plan).is_file() {
        let bytes = std::fs::read(plan)
            .map_err(|error| CliError::usage(format!("--plan: cannot read {plan}: {error}")))?;
        return match String::from_utf8(bytes) {
            Ok(text) => Ok(v1::PlanSource {
                file_name: plan.to_owned(),
                text,
            }),
            Err(error) => Err(not_text(plan, error.as_bytes())),
        };
    }
    let text = builtin_plan(plan)
        .map_err(|error| CliError::usage(format!("--plan: {error}")))?
        .to_owned();
    Ok(v1::PlanSource {
        file_name: format!("{plan}.yaml"),
        text,
    })
}

/// What is wrong with a plan file that is not text, with the place.
fn not_text(file: &str, bytes: &[u8]) -> CliError {
    match parse_plan_bytes(file, bytes) {
        Err(problems) => CliError::bad_plan(file, &problems),
        Ok(_) => CliError::usage(format!("--plan: {file} is not UTF-8 text")),
    }
}
