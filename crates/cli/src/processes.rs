//! The controller as a child process that dies with its parent.

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
        // The kernel ends it should this process be killed.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(beside("klab-controller")?)
            .arg("--folder")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C is for this process; it ends its children in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| CliError::infrastructure(format!("cannot start setpriv: {error}")))?;
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
    pub(crate) async fn stop(mut self) {
        if let Some(pid) = self.child.id() {
            let pid = pid.to_string();
            let _ = Command::new("kill").args(["-TERM", &pid]).status().await;
        }
        let ended = tokio::time::timeout(Duration::from_secs(5), self.child.wait()).await;
        if ended.is_err() {
            let _ = self.child.kill().await;
        }
    }
}
