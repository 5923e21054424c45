//! `klab jobs`, `klab job`, `klab cancel`, `klab compare`.

use klab_proto::v1;
use klab_report::Table;
use serde_json::json;

use crate::args::{Format, Global, JobCommand};
use crate::client::{Client, of_job};
use crate::exit::{CliError, ExitCode};
use crate::{json, output};

pub(crate) async fn list(global: &Global) -> Result<ExitCode, CliError> {
    let jobs = Client::connect(global).await?.all_jobs().await?;
    if global.json {
        output::json(&jobs.iter().map(json::job).collect())?;
        return Ok(ExitCode::Done);
    }
    let mut table = Table::new([
        "JOB",
        "STATE",
        "RUNS",
        "PLAN",
        "VARIANTS",
        "OWNER",
        "SUBMITTED",
    ]);
    for job in &jobs {
        let variants: Vec<&str> = job.variants.iter().map(|v| v.name.as_str()).collect();
        table.row([
            job.id.clone(),
            json::job_state(job.state).to_owned(),
            format!("{}/{}", job.runs_ended, job.runs_total),
            job.plan.clone(),
            variants.join(","),
            job.owner.clone(),
            json::time(job.created_at.as_ref()),
        ]);
    }
    output::line(table.to_string())?;
    Ok(ExitCode::Done)
}

pub(crate) async fn run(global: &Global, command: JobCommand) -> Result<ExitCode, CliError> {
    let JobCommand::Show { job } = command;
    let client = Client::connect(global).await?;
    let id = client.job_id(&job).await?;
    let request = v1::GetJobRequest { id: id.clone() };
    let answer = client.jobs().get_job(request).await;
    let mut response = answer.map_err(of_job(&id))?.into_inner();
    let job = response.job.take().unwrap_or_default();
    if global.json {
        let runs: Vec<_> = response
            .runs
            .iter()
            .map(|run| json::run(run, &job))
            .collect();
        let reports: Vec<_> = response
            .kernel_reports
            .iter()
            .map(json::kernel_report)
            .collect();
        output::json(&json!({
            "job": json::job(&job),
            "runs": runs,
            "kernel_reports": reports,
            "more_kernel_reports": response.more_kernel_reports,
        }))?;
        return Ok(ExitCode::Done);
    }
    let mut lines = vec![
        format!("job      {}", job.id),
        format!("state    {}", json::job_state(job.state)),
        format!("plan     {}, {} round(s)", job.plan, job.rounds),
    ];
    for variant in &job.variants {
        let kernels = variant.kernels.join(", ");
        lines.push(format!("variant  {} = {kernels}", variant.name));
    }
    let boards: Vec<String> = job.boards.iter().map(json::slot).collect();
    lines.push(format!("boards   {}", boards.join(" ")));
    let mut table = Table::new(["ROUND", "VARIANT", "BOARD", "STATE", "ATTEMPT", "FAILURE"]);
    for run in &response.runs {
        let failure = run.failure.as_ref();
        let failure = failure.map(|f| format!("{}: {}", json::class(f.class), f.reason));
        table.row([
            (run.round + 1).to_string(),
            run.variant.clone(),
            json::board_of(run, &job).to_owned(),
            run.state.clone(),
            run.attempt.to_string(),
            failure.unwrap_or_default(),
        ]);
    }
    let reports = kernel_reports(&response, &job);
    output::line(format!("{}\n\n{table}{reports}", lines.join("\n")))?;
    Ok(ExitCode::Done)
}

/// What the kernels of a job reported, with the first lines of each report.
fn kernel_reports(response: &v1::GetJobResponse, job: &v1::Job) -> String {
    let mut text = String::new();
    for report in &response.kernel_reports {
        let run = response.runs.iter().find(|run| run.id == report.run);
        let place = run.map(|run| {
            let board = json::board_of(run, job);
            format!("round {} {} on {board}", run.round + 1, run.variant)
        });
        let whose = match (report.candidate, report.release.as_str()) {
            (true, _) => String::new(),
            (false, "") => " (another kernel)".to_owned(),
            (false, release) => format!(" (another kernel, Linux {release})"),
        };
        let function = (!report.function.is_empty()).then_some(report.function.as_str());
        text += &format!(
            "\n{}, attempt {}, {} line {}{whose}\n  {}\n",
            place.unwrap_or_default(),
            report.attempt,
            report.file,
            report.first_line,
            output::kernel_report(&report.kind, &report.title, function, report.count),
        );
        text += &output::quote(&report.quote);
    }
    if response.more_kernel_reports > 0 {
        text += &format!("\n{} more\n", response.more_kernel_reports);
    }
    if text.is_empty() {
        return text;
    }
    format!("\nkernel reports\n{text}")
}

pub(crate) async fn cancel(global: &Global, job: &str) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    let id = client.job_id(job).await?;
    let request = v1::CancelJobRequest { id: id.clone() };
    let answer = client.jobs().cancel_job(request).await;
    let response = answer.map_err(of_job(&id))?.into_inner();
    let job = response.job.unwrap_or_default();
    if global.json {
        output::json(&json::job(&job))?;
    } else {
        output::line(cancelled(&job))?;
    }
    Ok(ExitCode::Done)
}

/// What became of a job that was to be cancelled.
fn cancelled(job: &v1::Job) -> String {
    let live = job.runs_total.saturating_sub(job.runs_ended);
    match job.state() {
        v1::JobState::Cancelled => format!("job {} is cancelled", job.id),
        v1::JobState::Done | v1::JobState::Failed => format!(
            "job {} had ended already: {}",
            job.id,
            json::job_state(job.state)
        ),
        _ => format!(
            "job {} is cancelled; still to end: {}",
            job.id,
            output::runs(live)
        ),
    }
}

pub(crate) async fn compare(
    global: &Global,
    job: &str,
    format: Format,
) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    let id = client.job_id(job).await?;
    print_report(global, &client, &id, format).await?;
    Ok(ExitCode::Done)
}

/// Prints the comparison of a job; with `--json` on one line, whatever the format.
pub(crate) async fn print_report(
    global: &Global,
    client: &Client,
    job: &str,
    format: Format,
) -> Result<(), CliError> {
    if global.json {
        let report = report(client, job, Format::Json).await?;
        output::document(&output::on_one_line(&report))
    } else if let Format::Json = format {
        output::document(&report(client, job, format).await?)
    } else {
        output::line(report(client, job, format).await?)
    }
}

/// The comparison of a job, rendered by the controller.
pub(crate) async fn report(client: &Client, job: &str, format: Format) -> Result<String, CliError> {
    let format = match format {
        Format::Text => v1::ReportFormat::Text,
        Format::Markdown => v1::ReportFormat::Markdown,
        Format::Json => v1::ReportFormat::Json,
    };
    let request = v1::GetReportRequest {
        job: job.to_owned(),
        format: format.into(),
    };
    let answer = client.reports().get_report(request).await;
    Ok(answer.map_err(of_job(job))?.into_inner().content)
}
