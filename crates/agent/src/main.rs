//! `klab-agent`: runs on a board, as a service, for months.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use klab_agent::{Agent, Config, Outside};

/// The agent of a klab board.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// The configuration file.
    #[arg(long, default_value = "/etc/klab/agent.yaml")]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks the configuration file and ends.
    Check,
}

/// As `klab-agent exec-child ...` this program takes its place in a cgroup and becomes a
/// workload. Its arguments are the workload's own and never reach the parser.
fn become_workload_if_told() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "exec-child") {
        let error = klab_measure::exec_child(arguments);
        let _ = writeln!(std::io::stderr(), "klab-agent: {error}");
        std::process::exit(klab_measure::WRAPPER_FAILED);
    }
}

fn main() -> anyhow::Result<()> {
    become_workload_if_told();
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("KLAB_LOG")
                .unwrap_or_else(|_| "info".into()),
        )
        .init();
    let config = Config::load(&arguments.config)?;
    if matches!(arguments.command, Some(Command::Check)) {
        return Ok(());
    }
    for note in klab_measure::protect_self() {
        tracing::warn!("{note}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let mut agent = Agent::open(config, Outside::real())?;
        tokio::select! {
            ended = agent.run() => ended.context("the agent ends; its journal is safe"),
            () = told_to_end() => Ok(()),
        }
    })
}

/// SIGTERM or SIGINT. A trial is not interrupted: the signal is seen after it.
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}
