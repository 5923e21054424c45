//! A lab on loopback: the real controller, and the real command line to speak with it.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::program;

/// Nothing in a lab of folders takes long; the limit only keeps a broken test from hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// A controller with its folder, and a place for boards.
#[derive(Debug)]
pub struct Lab {
    folder: TempDir,
    /// The controller's own folder.
    own: PathBuf,
    controller: Child,
    address: SocketAddr,
}

/// What a command of `klab` gave.
#[derive(Debug)]
pub struct Told {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Told {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// If the command failed or printed something else.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Lab {
    /// Starts a controller in a temporary folder.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = folder.path().join("controller");
        Self::with(folder, own)
    }

    /// Starts a controller in a folder that one has used before.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_in(controller: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::with(folder, controller.to_owned())
    }

    fn with(folder: TempDir, own: PathBuf) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let log = folder.path().join("controller.log");
        let (controller, address) = start_controller(&own, &log, any);
        Self {
            folder,
            own,
            controller,
            address,
        }
    }

    /// The lab's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the controller listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as an URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills the controller with SIGKILL.
    ///
    /// # Panics
    /// If it was gone already.
    pub fn kill_controller(&mut self) {
        self.controller.kill().expect("the controller runs");
        self.controller.wait().expect("the controller ends");
    }

    /// Starts the controller again, on the same folder and address.
    pub fn start_again(&mut self) {
        let log = self.folder().join("controller.log");
        (self.controller, self.address) = start_controller(&self.own, &log, self.address);
    }

    /// A command of `klab`, not yet started.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("klab"));
        command
            .args(arguments)
            .env("KLAB_CONTROLLER", self.url())
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
    }

    /// Runs `klab` to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn klab(&self, arguments: &[&str]) -> Told {
        Told::of(&self.command(arguments).output().expect("klab starts"))
    }

    /// Runs `klab --json` and reads what it prints.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.klab(&[arguments, &["--json"]].concat()).json()
    }

    /// Writes a file into the lab's folder.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder().join(name), text).expect("a file of the lab");
    }

    /// Waits until the controller has a board online.
    pub fn wait_for_board(&self, name: &str) {
        until(&format!("board {name} is online"), || {
            let boards = self.json(&["boards"]);
            let boards = boards.as_array().cloned().unwrap_or_default();
            boards
                .iter()
                .any(|board| board["name"] == name && board["online"] == true)
        });
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.controller.kill();
        let _ = self.controller.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder().join("controller.log"));
            crate::tell(&format!(
                "the controller's log:\n{}",
                log.unwrap_or_default()
            ));
        }
    }
}

/// Asks again and again until it is so.
///
/// # Panics
/// If that takes too long.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < LIMIT, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start_controller(folder: &Path, log: &Path, listen: SocketAddr) -> (Child, SocketAddr) {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("the controller's log");
    let mut child = Command::new(program("klab-controller"))
        .arg("--folder")
        .arg(folder)
        .args(["--listen", &listen.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("the controller starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    let _ = BufReader::new(stdout).read_line(&mut line);
    let address = line.trim().strip_prefix("listening on ");
    let address = address.and_then(|address| address.parse().ok());
    (
        child,
        address.expect("the controller says where it listens"),
    )
}
