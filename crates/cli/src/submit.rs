//! `klab submit`.

use std::path::Path;

use klab_config::{builtin_plan, parse_plan};
use klab_proto::v1;

use crate::args::{Format, Global, Submit};
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::{jobs, json, output, watch};

pub(crate) async fn run(global: &Global, submit: Submit) -> Result<ExitCode, CliError> {
    let plan = plan_source(&submit.plan)?;
    // A bad plan is refused here, with its source line, before anything is sent.
    parse_plan(&plan.file_name, &plan.text).map_err(|bad| CliError::usage(bad.render()))?;
    let client = Client::connect(global).await?;
    let wait = submit.wait;
    let job = create(&client, submit, plan).await?;
    if global.json && !wait {
        output::json(&json::job(&job));
    } else if !wait {
        output::line(&job.id);
    }
    if !wait {
        return Ok(ExitCode::Done);
    }
    if !global.quiet {
        output::say(format!("job {}: {} runs", job.id, job.runs_total));
    }
    let code = watch::follow(global, &job.id).await?;
    let format = if global.json {
        Format::Json
    } else {
        Format::Text
    };
    output::line(jobs::report(&client, &job.id, format).await?);
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
        let text = std::fs::read_to_string(plan)
            .map_err(|error| CliError::usage(format!("cannot read plan {plan}: {error}")))?;
        return Ok(v1::PlanSource {
            file_name: plan.to_owned(),
            text,
        });
    }
    let text = builtin_plan(plan).map_err(CliError::usage)?.to_owned();
    Ok(v1::PlanSource {
        file_name: format!("{plan}.yaml"),
        text,
    })
}
