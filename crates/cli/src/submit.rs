//! `klab submit`.

use std::path::Path;

use klab_config::{builtin_plan, parse_plan, parse_plan_bytes};
use klab_model::{Arch, BoardSelector, Owner};
use klab_proto::v1;

use crate::args::{Format, Global, NamedVariant, Submit, Wish};
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::{boards, build_watch, jobs, json, output, watch, wish};

pub(crate) async fn run(global: &Global, submit: Submit) -> Result<ExitCode, CliError> {
    if submit.wish.series.is_none() && submit.kernels.is_empty() {
        return Err(CliError::usage(
            "nothing to submit: name a series, or kernels with --variant NAME=KERNEL",
        ));
    }
    let plan = plan_source(&submit.plan)?;
    // A bad plan is refused here, with its source line, before anything is sent.
    parse_plan(&plan.file_name, &plan.text)
        .map_err(|bad| CliError::bad_plan(&plan.file_name, &bad))?;
    let client = Client::connect(global).await?;
    let wait = submit.wait;
    let (job, builds) = create(&client, submit, plan).await?;
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
    let code = follow(global, &job, &builds).await?;
    jobs::print_report(global, &client, &job.id, Format::Text).await?;
    Ok(code)
}

/// Follows the builds of a job, then the job. How the builds ended is part of its end.
pub(crate) async fn follow(
    global: &Global,
    job: &v1::Job,
    builds: &[v1::Build],
) -> Result<ExitCode, CliError> {
    build_watch::follow_all(global, builds).await?;
    watch::follow(global, &job.id).await
}

/// Asks for the kernels that have to be built and sends the submission.
pub(crate) async fn create(
    client: &Client,
    submit: Submit,
    plan: v1::PlanSource,
) -> Result<(v1::Job, Vec<v1::Build>), CliError> {
    let owner = owner(submit.owner)?;
    let (mut variants, builds) = match &submit.wish.series {
        None => (Vec::new(), Vec::new()),
        Some(path) => {
            let archs = match submit.arch {
                Some(arch) => vec![arch],
                None => archs_of(client, &submit.boards).await?,
            };
            ask_for_each(client, &submit.wish, path, (&owner, &archs)).await?
        }
    };
    variants.extend(submit.kernels);
    let request = v1::CreateJobRequest {
        owner: owner.into(),
        variants: variants
            .into_iter()
            .map(|(name, kernels)| v1::Variant {
                name: name.into(),
                kernels: kernels.into_iter().map(Into::into).collect(),
            })
            .collect(),
        boards: submit.boards.to_string(),
        rounds: submit.rounds,
        plan: Some(plan),
    };
    match client.jobs().create_job(request).await {
        Ok(answer) => answer
            .into_inner()
            .job
            .map(|job| (job, builds))
            .ok_or_else(|| CliError::infrastructure("the controller did not name the job")),
        Err(refusal) => {
            wish::give_up(client, &builds).await;
            Err(refusal.into())
        }
    }
}

/// Asks for the kernels of a series for each architecture; a variant gets one of each.
async fn ask_for_each(
    client: &Client,
    wish: &Wish,
    path: &Path,
    (owner, archs): (&Owner, &[Arch]),
) -> Result<(Vec<NamedVariant>, Vec<v1::Build>), CliError> {
    let mut variants: Vec<NamedVariant> = Vec::new();
    let mut builds = Vec::new();
    for arch in archs {
        let wanted = match wish::ask(client, wish, path, (owner.clone(), *arch)).await {
            Ok(wanted) => wanted,
            Err(error) => {
                wish::give_up(client, &builds).await;
                return Err(error);
            }
        };
        builds.extend(wanted.builds);
        for (name, kernel) in wanted.variants {
            match variants.iter_mut().find(|(known, _)| *known == name) {
                None => variants.push((name, vec![kernel])),
                // A kernel that was added is the same for every architecture.
                Some((_, kernels)) if kernels.contains(&kernel) => {}
                Some((_, kernels)) => kernels.push(kernel),
            }
        }
    }
    Ok((variants, builds))
}

/// The architectures of the boards that are asked for; of one by its tags only one.
async fn archs_of(client: &Client, selector: &BoardSelector) -> Result<Vec<Arch>, CliError> {
    let boards = boards::all(client).await?;
    let fits = |board: &&v1::Board| match selector {
        BoardSelector::Named(names) => names.iter().any(|name| name.as_str() == board.name),
        BoardSelector::Tagged(tags) => tags.0.iter().all(|tag| {
            (tag.key() == "arch" && tag.value() == json::arch(board.arch))
                || board
                    .tags
                    .iter()
                    .any(|of| of.key == tag.key() && of.value == tag.value())
        }),
    };
    let mut archs: Vec<&str> = boards
        .iter()
        .filter(fits)
        .map(|board| json::arch(board.arch))
        .collect();
    archs.sort_unstable();
    archs.dedup();
    let parse = |arch: &&str| Arch::parse(arch).map_err(CliError::infrastructure);
    match (archs.as_slice(), selector) {
        ([_], _) | ([_, ..], BoardSelector::Named(_)) => archs.iter().map(parse).collect(),
        ([], _) => Err(CliError::usage(format!(
            "--boards {selector}: no board that is known fits; `klab boards` lists them"
        ))),
        (archs, _) => Err(CliError::usage(format!(
            "--boards {selector}: boards of {} fit; say with --arch what to build for",
            archs.join(" and ")
        ))),
    }
}

/// Who asks: the owner that was given, or the user.
pub(crate) fn owner(given: Option<Owner>) -> Result<Owner, CliError> {
    given.map_or_else(
        || Owner::parse(&user()).map_err(|error| CliError::usage(format!("--owner: {error}"))),
        Ok,
    )
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
        let bytes = crate::files::read(Path::new(plan), klab_config::MAX_FILE_BYTES as u64)
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
