//! `klab build`.

use std::io::{IsTerminal as _, Write as _};

use klab_proto::v1;
use klab_report::Table;
use serde_json::{Value, json};

use crate::args::{BuildCommand, BuildStart, Global};
use crate::client::{Client, every_page};
use crate::exit::{CliError, ExitCode};
use crate::{build_watch, json as j, output, submit, wish};

pub(crate) async fn run(global: &Global, command: BuildCommand) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    match command {
        BuildCommand::Start(start) => return self::start(global, &client, start).await,
        BuildCommand::List => list(global, &client).await?,
        BuildCommand::Show { build } => {
            let id = id_of(&client, &build).await?;
            show(global, &get(&client, id).await?)?;
        }
        BuildCommand::Watch { build } => {
            let id = id_of(&client, &build).await?;
            return build_watch::follow(global, &id).await;
        }
        BuildCommand::Log { build, follow } => {
            let id = id_of(&client, &build).await?;
            log(&client, id, follow).await?;
        }
        BuildCommand::Cancel { build } => {
            let id = id_of(&client, &build).await?;
            let request = v1::CancelBuildRequest { id };
            let answer = client.builds().cancel_build(request).await?.into_inner();
            show(global, &answer.build.unwrap_or_default())?;
        }
    }
    Ok(ExitCode::Done)
}

async fn start(global: &Global, client: &Client, start: BuildStart) -> Result<ExitCode, CliError> {
    let Some(path) = start.wish.series.clone() else {
        return Err(CliError::usage(
            "no series: give a mailbox, a patch, a folder, `-` or TREE:BASE..TOPIC",
        ));
    };
    let owner = submit::owner(start.owner)?;
    let wanted = wish::ask(client, &start.wish, &path, (owner, start.arch)).await?;
    if !start.wait {
        for build in &wanted.builds {
            show(global, build)?;
        }
        return Ok(ExitCode::Done);
    }
    build_watch::follow_all(global, &wanted.builds).await
}

async fn get(client: &Client, id: String) -> Result<v1::Build, CliError> {
    let answer = client
        .builds()
        .get_build(v1::GetBuildRequest { id })
        .await?;
    Ok(answer.into_inner().build.unwrap_or_default())
}

/// Every build, newest first.
pub(crate) async fn all(client: &Client) -> Result<Vec<v1::Build>, CliError> {
    every_page(async |page_token| {
        let request = v1::ListBuildsRequest {
            page_size: 100,
            page_token,
        };
        let page = client.builds().list_builds(request).await?.into_inner();
        Ok((page.builds, page.next_page_token))
    })
    .await
}

/// The id of the build that `text` means.
async fn id_of(client: &Client, text: &str) -> Result<String, CliError> {
    if text.parse::<klab_model::BuildTaskId>().is_ok() {
        return Ok(text.to_owned());
    }
    let builds = all(client).await?;
    let ids: Vec<&str> = builds.iter().map(|build| build.id.as_str()).collect();
    crate::client::pick("build", text, &ids)
        .map(str::to_owned)
        .map_err(CliError::usage)
}

/// The builds that a job still waits for.
pub(crate) async fn of_job(client: &Client, job: &v1::Job) -> Result<Vec<v1::Build>, CliError> {
    let wanted = |build: &v1::Build| {
        let mut kernels = build.targets.iter().map(|target| &target.kernel);
        kernels.any(|kernel| {
            job.variants
                .iter()
                .any(|variant| variant.kernels.contains(kernel))
        })
    };
    let live = |build: &v1::Build| ["queued", "building"].contains(&build.state.as_str());
    let builds = all(client).await?;
    Ok(builds
        .into_iter()
        .filter(|build| live(build) && wanted(build))
        .collect())
}

async fn list(global: &Global, client: &Client) -> Result<(), CliError> {
    let builds = all(client).await?;
    if global.json {
        return output::json(&builds.iter().map(json).collect());
    }
    let mut table = Table::new([
        "BUILD", "STATE", "KERNELS", "ARCH", "TREE", "SERIES", "OWNER",
    ]);
    for build in &builds {
        let there =
            |target: &&v1::BuildTarget| ["built", "cached"].contains(&target.state.as_str());
        let built = build.targets.iter().filter(there).count();
        table.row([
            build.id.clone(),
            build.state.clone(),
            format!("{built}/{}", build.targets.len()),
            j::arch(build.arch).to_owned(),
            build.tree.clone(),
            series(build),
            build.owner.clone(),
        ]);
    }
    output::line(table.to_string())
}

/// `v2 mm: fix`, safe to print.
fn series(build: &v1::Build) -> String {
    build.series.as_ref().map_or_else(String::new, |series| {
        format!(
            "v{} {}",
            series.revision,
            klab_series::defuse(&series.subject)
        )
    })
}

/// `v6.1 (8948c67a...)`: what was asked for, and the commit that was found.
fn base(build: &v1::Build) -> String {
    let v1::Build {
        base, base_commit, ..
    } = build;
    match (base.as_str(), base_commit.as_str()) {
        (base, "") => base.to_owned(),
        ("", commit) => commit.to_owned(),
        (base, commit) => format!("{base} ({commit})"),
    }
}

pub(crate) fn show(global: &Global, build: &v1::Build) -> Result<(), CliError> {
    if global.json {
        return output::json(&json(build));
    }
    let mut lines = vec![
        format!("build    {}", build.id),
        format!("state    {}", build.state),
        format!("tree     {}", build.tree),
        format!("arch     {}", j::arch(build.arch)),
    ];
    for (name, text) in [
        ("base", base(build)),
        ("series", series(build)),
        ("builder", build.builder.clone()),
    ] {
        if !text.is_empty() {
            lines.push(format!("{name:8} {text}"));
        }
    }
    if let Some(failure) = &build.failure {
        lines.push(format!(
            "failure  {}: {}",
            j::class(failure.class),
            failure.reason
        ));
    }
    let mut table = Table::new(["VARIANT", "STATE", "KERNEL", "REASON"]);
    for target in &build.targets {
        // The first line says what; the log has the rest.
        let reason = target.failure.as_ref().map_or("", |f| f.reason.as_str());
        let reason = reason.lines().next().unwrap_or_default();
        table.row([
            target.variant.clone(),
            target.state.clone(),
            target.kernel.clone(),
            klab_series::defuse(reason),
        ]);
    }
    output::line(format!("{}\n\n{table}", lines.join("\n")))
}

async fn log(client: &Client, id: String, follow: bool) -> Result<(), CliError> {
    let request = v1::ReadBuildLogRequest {
        id,
        offset: 0,
        follow,
    };
    let mut pieces = client.builds().read_build_log(request).await?.into_inner();
    while let Some(piece) = pieces.message().await? {
        let mut out = std::io::stdout().lock();
        // A file gets what was logged; a terminal obeys what compilers quote of patches.
        let shown = match out.is_terminal() {
            true => klab_series::defuse_lines(&String::from_utf8_lossy(&piece.data)).into_bytes(),
            false => piece.data.to_vec(),
        };
        if out.write_all(&shown).and_then(|()| out.flush()).is_err() {
            return Err(CliError::silent(ExitCode::Done));
        }
    }
    Ok(())
}

pub(crate) fn json(build: &v1::Build) -> Value {
    let targets: Vec<Value> = build
        .targets
        .iter()
        .map(|target| {
            json!({
                "variant": target.variant,
                "kernel": target.kernel,
                "state": target.state,
                "failure": j::failure(target.failure.as_ref()),
            })
        })
        .collect();
    let series = build.series.as_ref().map(|series| {
        json!({
            "subject": series.subject,
            "revision": series.revision,
            "patches": series.patches.len(),
        })
    });
    json!({
        "id": build.id,
        "owner": build.owner,
        "state": build.state,
        "tree": build.tree,
        "base": build.base,
        "base_commit": match build.base_commit.as_str() {
            "" => None,
            commit => Some(commit),
        },
        "arch": j::arch(build.arch),
        "series": series,
        "targets": targets,
        "builder": build.builder,
        "attempt": build.attempt,
        "failure": j::failure(build.failure.as_ref()),
        "created_at": j::time(build.created_at.as_ref()),
    })
}
