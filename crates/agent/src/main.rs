//! `klab-agent`: runs on a board, as a service, for months.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use klab_agent::{Agent, AgentError, Builder, BuilderConfig, Config, Outside};

/// The agent of a klab board, or a builder of kernels.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// The configuration file [default: /etc/klab/agent.yaml, /etc/klab/builder.yaml].
    #[arg(long)]
    config: Option<PathBuf>,
    /// What this machine does for its lab.
    #[arg(long, value_enum, default_value_t = Role::Board)]
    role: Role,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Boots kernels and measures them.
    Board,
    /// Builds kernels.
    Builder,
}

impl Role {
    const fn config(self) -> &'static str {
        match self {
            Role::Board => "/etc/klab/agent.yaml",
            Role::Builder => "/etc/klab/builder.yaml",
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks the configuration file, and that a board has what its boot method needs.
    Check {
        /// Only the file: this machine is not the board.
        #[arg(long)]
        file_only: bool,
    },
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

fn main() -> ExitCode {
    become_workload_if_told();
    match start(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There may be nobody to read it.
            let _ = writeln!(std::io::stderr(), "klab-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: Arguments) -> anyhow::Result<()> {
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
    let role = arguments.role;
    let path = arguments.config.unwrap_or_else(|| role.config().into());
    match role {
        Role::Board => {
            let config = Config::load(&path)?;
            if let Some(Command::Check { file_only }) = arguments.command {
                return if file_only { Ok(()) } else { check(&config) };
            }
            for note in klab_measure::protect_self() {
                tracing::warn!("{note}");
            }
            run(async {
                let mut agent = Agent::open(config, Outside::real())?;
                agent.run().await
            })
        }
        Role::Builder => {
            let config = BuilderConfig::load(&path)?;
            if arguments.command.is_some() {
                return Ok(());
            }
            run(async {
                let mut builder = Builder::open(config, Outside::real())?;
                builder.run().await
            })
        }
    }
}

fn check(config: &Config) -> anyhow::Result<()> {
    let promises = config.check_boot()?;
    writeln!(std::io::stdout(), "{promises}").context("cannot print")
}

/// Runs until the work ends or the process is told to.
fn run(work: impl Future<Output = Result<(), AgentError>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        tokio::select! {
            ended = work => ended.context("it ends; nothing that counts is lost"),
            () = told_to_end() => Ok(()),
        }
    })
}

/// SIGTERM or SIGINT. A trial is not interrupted: the signal is seen after it. A build is.
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
