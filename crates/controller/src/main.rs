//! The program `klab-controller`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use klab_controller::{Controller, ControllerConfig, Seams};
use klab_task::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Schedules jobs, gives orders to boards, keeps what they measured.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Options {
    /// Folder for database, objects and console logs; made if it is not there
    #[arg(long, env = "KLAB_FOLDER", value_name = "FOLDER")]
    folder: PathBuf,
    /// Address to listen on; loopback only, port 0 takes any free port
    #[arg(long, default_value = "127.0.0.1:7700", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// PostgreSQL database, postgres://USER:PASSWORD@HOST/NAME; SQLite in FOLDER without it
    ///
    /// A database has one controller: a second one is refused. The lock belongs to the
    /// connection, so give the server itself or a pooler in session mode, never a pooler in
    /// transaction mode.
    #[arg(
        long,
        env = "KLAB_DATABASE",
        value_name = "URL",
        hide_env_values = true
    )]
    database: Option<String>,
}

/// Infrastructure failed, in the exit codes that all klab programs share.
const INFRASTRUCTURE: u8 = 3;

fn main() -> ExitCode {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .init();
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("failed to start the runtime")
        .and_then(|runtime| runtime.block_on(run(options)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There may be nobody to read it.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(INFRASTRUCTURE)
        }
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    let stop = stop_on_signals()?;
    let config = ControllerConfig {
        folder: options.folder,
        listen: options.listen,
        database: options.database,
    };
    let controller = Controller::open(&config, Seams::system()).await?;
    let listener = controller.bind().await?;
    let address = listener
        .local_addr()
        .context("failed to read the address")?;
    // Whoever started the program waits for this line; it may have stopped reading.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "listening on {address}").and_then(|()| stdout.flush());
    controller.serve(listener, stop).await?;
    Ok(())
}

/// A token that SIGINT or SIGTERM cancels.
fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let mut signals = signal(kind).context("failed to watch for signals")?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}
