//! The controller and a builder as child processes that die with their parent.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::exit::CliError;

/// A controller that was started here.
pub(crate) struct Controller {
    child: Child,
    address: String,
}

/// A program of klab that lies beside this one.
fn beside(name: &str) -> Result<PathBuf, CliError> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    let place = path.display();
    Err(CliError::infrastructure(format!(
        "{place} is missing: build it with `./demo` or `just build`"
    )))
}

impl Controller {
    /// Starts one on a free loopback port; its log goes to a file in `folder`.
    pub(crate) async fn start(folder: &Path) -> Result<Self, CliError> {
        std::fs::create_dir_all(folder)?;
        let log_path = folder.join("controller.log");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log_path)?;
        let mut command = lasting_as_this(&beside("klab-controller")?);
        let mut child = command
            .arg("--folder")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(not_started)?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| CliError::infrastructure("no pipe"))?;
        let mut lines = BufReader::new(stdout).lines();
        let first = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
        let address = match first {
            Ok(Ok(Some(line))) => line.strip_prefix("listening on ").map(str::to_owned),
            _ => None,
        };
        let address = address.ok_or_else(|| {
            let log = log_path.display();
            CliError::infrastructure(format!("the controller did not start; see {log}"))
        })?;
        Ok(Self { child, address })
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it and waits for the end.
    pub(crate) async fn stop(self) {
        stop(self.child).await;
    }
}

/// A builder that was started here.
pub(crate) struct Builder(Child);

impl Builder {
    /// Starts one; its configuration, log and work are in `folder`.
    pub(crate) fn start(agent: &Path, folder: &Path, controller: &str) -> Result<Self, CliError> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let config = folder.join("builder.yaml");
        let text = format!(
            "builder: local\ncontroller: {controller}\nfolder: {:?}\narchs: [x86_64]\n",
            folder.join("work")
        );
        std::fs::write(&config, text).map_err(CliError::file("write", &config))?;
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("builder.log"))?;
        let child = lasting_as_this(agent)
            .args(["--role", "builder", "--config"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(not_started)?;
        Ok(Self(child))
    }

    /// Waits until it ends by itself, which it does only if it cannot work.
    pub(crate) async fn ended(&mut self) {
        let _ = self.0.wait().await;
    }

    /// Ends it with what it builds, and waits for the end.
    pub(crate) async fn stop(self) {
        stop(self.0).await;
    }
}

/// A program that the kernel ends should this process be killed.
fn lasting_as_this(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM"])
        .arg(program)
        .stdin(Stdio::null())
        // Ctrl-C is for this process; it ends its children in order.
        .process_group(0)
        .kill_on_drop(true);
    command
}

fn not_started(error: std::io::Error) -> CliError {
    CliError::infrastructure(format!("cannot start setpriv: {error}"))
}

async fn stop(mut child: Child) {
    if let Some(pid) = child.id() {
        let pid = pid.to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status().await;
    }
    let ended = tokio::time::timeout(Duration::from_secs(5), child.wait()).await;
    if ended.is_err() {
        let _ = child.kill().await;
    }
}
