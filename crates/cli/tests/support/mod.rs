//! The real `klab`, a real controller, and boards that follow a script.
#![allow(dead_code, missing_docs)] // Each test program uses a part of it.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

pub(crate) mod board;
pub(crate) mod packages;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes long; the limit only keeps a broken test from hanging.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) const PLAN: &str = "\
name: quick
workloads:
  - name: cyclictest
    command: [cyclictest, --duration=1s, '--json={out}/cyclictest.json']
    time-limit: 1m
    artifacts:
      - { file: cyclictest.json, format: cyclictest-json }
";

/// What a program said, and with which code it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Told {
    pub(crate) fn by(command: &mut Command) -> Told {
        let output = command.output().unwrap();
        Told {
            code: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output of a command that succeeded and had nothing else to say.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        &self.out
    }

    /// [`ok`](Self::ok), as the one line of JSON that it is.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let out = self.ok();
        assert_eq!(out.lines().count(), 1, "{out}");
        serde_json::from_str(out).unwrap()
    }

    /// Standard error of a command that was refused with exit code 2.
    #[track_caller]
    pub(crate) fn refused(&self) -> &str {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{self:?}");
        &self.err
    }
}

/// `klab` with these arguments, in `folder`.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klab"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("KLAB_CONTROLLER")
        .env("USER", "dev")
        .stdin(Stdio::null());
    command
}

pub(crate) fn klab(folder: &Path, arguments: &[&str]) -> Told {
    Told::by(&mut command(folder, arguments))
}

pub(crate) fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A controller on loopback and a folder to work in.
pub(crate) struct Lab {
    controller: Controller,
    /// Where commands run.
    pub folder: TempDir,
}

impl Lab {
    pub(crate) fn start() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "quick.yaml", PLAN);
        let controller = Controller::start(folder.path(), "127.0.0.1:0");
        Lab { controller, folder }
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.controller.address
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.path(), arguments);
        command.env("KLAB_CONTROLLER", format!("http://{}", self.address()));
        command
    }

    pub(crate) fn klab(&self, arguments: &[&str]) -> Told {
        Told::by(&mut self.command(arguments))
    }

    /// `klab` at work, with its standard error to read from.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Adds a RISC-V kernel.
    pub(crate) fn kernel(&self, name: &str) {
        let image = packages::image(&format!("6.1.0-{name}"));
        let image = write(self.path(), name, image);
        self.klab(&["kernel", "add", name, image.to_str().unwrap()])
            .ok();
    }

    /// Submits a job of kernel `k1` to `board` and gives its id.
    pub(crate) fn submit(&self, board: &str, more: &[&str]) -> String {
        let submit = ["submit", "--variant", "base=k1", "--plan", "quick.yaml"];
        let job = self.klab(&[&submit, &["--boards", board][..], more].concat());
        job.ok().trim_end().to_owned()
    }

    /// A lab with kernel `k1` and the RISC-V board `b1`, which is known and not connected.
    pub(crate) fn ready() -> Lab {
        let lab = Lab::start();
        lab.kernel("k1");
        drop(board::Board::connect(lab.address(), "b1"));
        until("the board is gone", || {
            lab.klab(&["boards", "--json"]).json()[0]["online"] == false
        });
        lab
    }

    pub(crate) fn kill_controller(&mut self) {
        self.controller.child.kill().unwrap();
        self.controller.child.wait().unwrap();
    }

    /// A controller at the same place, with the same folder.
    pub(crate) fn start_controller_again(&mut self) {
        let address = self.address().to_owned();
        self.controller = Controller::start(self.folder.path(), &address);
    }
}

/// The real controller; it ends with the test.
struct Controller {
    child: Child,
    address: String,
}

impl Controller {
    fn start(folder: &Path, listen: &str) -> Controller {
        let klab = Path::new(env!("CARGO_BIN_EXE_klab"));
        let program = klab.with_file_name("klab-controller");
        assert!(
            program.is_file(),
            "{} is missing: run `cargo build --workspace --bins` first, as ./test does",
            program.display()
        );
        let mut child = Command::new(program)
            .arg("--folder")
            .arg(folder.join("controller"))
            .args(["--listen", listen])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap();
        Controller {
            child,
            address: address.to_owned(),
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command at work; it does not outlive the test.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Running { child, lines }
    }

    /// The next line of standard error; `None` after the last.
    fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more is said, and no end comes"),
        }
    }

    /// Reads standard error up to the line that ends with `text`; gives what was read.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> Vec<String> {
        let mut read = Vec::new();
        while let Some(line) = self.line() {
            read.push(line);
            if read.last().is_some_and(|line| line.ends_with(text)) {
                return read;
            }
        }
        panic!("ended before {text:?}: {read:#?}");
    }

    /// Waits for the end; `err` is what was not read before.
    pub(crate) fn end(mut self) -> Told {
        let mut err = String::new();
        while let Some(line) = self.line() {
            err += &format!("{line}\n");
        }
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code();
        Told {
            code: code.expect("it was not killed"),
            out,
            err,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done` holds.
#[track_caller]
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
