//! `klab`: the command line.
//!
//! [`args`] is the grammar, [`exit`] the meaning of exit codes, [`client`] the way to the
//! controller. Every subcommand has a module of its own; none of them computes anything
//! about measurements: that is the controller's business.

mod args;
mod artifacts;
mod boards;
mod build_args;
mod build_watch;
mod builds;
mod client;
mod console;
mod demo;
mod events;
mod exit;
mod files;
mod jobs;
mod json;
mod kernels;
mod logs;
mod output;
mod plans;
mod processes;
mod progress;
mod series;
mod submit;
mod trees;
mod vboards;
mod watch;
mod wish;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::exit::{CliError, ExitCode};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error(&format!("cannot start the runtime: {error}"));
            return ExitCode::Infrastructure.into();
        }
    };
    let code = match runtime.block_on(run(arguments)) {
        Ok(code) => code,
        Err(error) => {
            if !error.message.is_empty() {
                output::error(&error.message);
            }
            error.code
        }
    };
    // A blocking task that still waits for a device must not hold the exit back.
    runtime.shutdown_background();
    code.into()
}

async fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    let global = &arguments.global;
    match arguments.command {
        Command::Plan(command) => plans::run(global, command),
        Command::Series(command) => series::run(global, command),
        Command::Log(command) => logs::run(global, command),
        Command::Kernel(command) => kernels::run(global, command).await,
        Command::Tree(command) => trees::run(global, command).await,
        Command::Build(command) => builds::run(global, command).await,
        Command::Submit(submit) => submit::run(global, submit).await,
        Command::Jobs => jobs::list(global).await,
        Command::Job(command) => jobs::run(global, command).await,
        Command::Watch { job } => watch::run(global, &job).await,
        Command::Cancel { job } => jobs::cancel(global, &job).await,
        Command::Boards => boards::list(global).await,
        Command::Artifacts(command) => artifacts::run(global, command).await,
        Command::Compare { job, format } => jobs::compare(global, &job, format).await,
        Command::Vboard(command) => vboards::run(global, command).await,
        Command::Demo(demo) => demo::run(global, demo).await,
    }
}
