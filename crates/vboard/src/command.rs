//! Running host tools: output captured, failures typed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::{Error, Result};

/// How much of a failed tool's output an error carries, in bytes.
const TAIL: usize = 1500;

/// Folders that hold system tools even when the caller's PATH does not name them.
const SYSTEM_DIRS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The place of a program, searched in PATH and in the system folders.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(SYSTEM_DIRS.iter().map(PathBuf::from));
    dirs.map(|d| d.join(program)).find(|p| p.is_file())
}

/// A command on a host tool that speaks plain C and asks nothing.
pub(crate) fn tool(program: &str) -> Command {
    let mut command = Command::new(find(program).unwrap_or_else(|| program.into()));
    command
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Runs the command to its end and returns what it wrote to standard output.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let shown = show(command);
    tracing::debug!(command = %shown, "run");
    let out = command.output().map_err(|source| Error::Io {
        action: "start",
        path: command.get_program().into(),
        source,
    })?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let text = if out.stderr.is_empty() {
        out.stdout
    } else {
        out.stderr
    };
    Err(Error::Tool {
        command: shown,
        status: describe(out.status),
        output: tail(&text),
    })
}

/// The command line as a person would type it, cut to a readable length.
fn show(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(OsStr::new("?"));
    let words = std::iter::once(name).chain(command.get_args());
    let line = words
        .map(|w| w.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(300) {
        Some((cut, _)) => format!("{} ...", &line[..cut]),
        None => line,
    }
}

/// The end of a tool's output, on whole characters.
pub(crate) fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(TAIL);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}

/// An exit status in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
