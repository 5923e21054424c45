//! Commands that a boot method runs: no shell, with a time limit, last words kept.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::BootError;

/// Longest time a command may take, in seconds: making an initrd on a slow board included.
const LIMIT_SECS: i64 = 600;

/// How much of the end of a command's output is looked at, in bytes.
const TAIL: i64 = 4096;

/// Runs program and arguments to the end.
pub(crate) fn run(command: &[String]) -> Result<(), BootError> {
    let text = command.join(" ");
    let failed = |outcome: String, stderr| BootError::Command {
        command: text.clone(),
        outcome,
        stderr,
    };
    let (program, args) = command
        .split_first()
        .ok_or_else(|| failed("is empty".to_owned(), None))?;
    let start = || -> io::Result<(Child, File)> {
        let output = File::from(memfd_create("klab-command", MemfdFlags::CLOEXEC)?);
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0)
            .spawn()?;
        Ok((child, output))
    };
    let (mut child, mut output) =
        start().map_err(|e| failed(format!("cannot be started: {e}"), None))?;
    match wait(&mut child) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(failed(
            format!("failed with {status}"),
            last_line(&mut output),
        )),
        Ok(None) => Err(failed(
            format!("was ended after {LIMIT_SECS} s"),
            last_line(&mut output),
        )),
        Err(e) => Err(failed(format!("cannot be waited for: {e}"), None)),
    }
}

/// Waits for the end; `None` if the time limit ended it.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let limit = Timespec {
        tv_sec: LIMIT_SECS,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let ended = loop {
        match poll(&mut fds, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other? > 0,
        }
    };
    if !ended {
        kill_process_group(pid, Signal::KILL)?;
    }
    let status = child.wait()?;
    Ok(ended.then_some(status))
}

fn last_line(output: &mut File) -> Option<String> {
    let mut tail = Vec::new();
    if output.seek(SeekFrom::End(-TAIL)).is_err() {
        output.rewind().ok()?;
    }
    output.read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

/// Where a program is found, below `sysroot`: an absolute path as it is, a name on `PATH`
/// and in the folders of system programs.
pub(crate) fn find(program: &str, sysroot: &Path) -> Option<PathBuf> {
    let below = |path: &Path| sysroot.join(path.strip_prefix("/").unwrap_or(path));
    let runs = |path: &PathBuf| {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    if program.contains('/') {
        return Some(below(Path::new(program))).filter(runs);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = OsStr::new("/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin");
    std::env::split_paths(&path)
        .chain(std::env::split_paths(system))
        .filter(|folder| folder.is_absolute())
        .map(|folder| below(&folder).join(program))
        .find(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_failing_command_tells_its_last_words() {
        assert!(run(&words(&["true"])).is_ok());
        let error = run(&words(&[
            "sh",
            "-c",
            "echo one; echo 'no room' >&2; echo; exit 3",
        ]));
        assert_eq!(
            error.expect_err("exit 3").to_string(),
            "sh -c echo one; echo 'no room' >&2; echo; exit 3 failed with exit status: 3: no room"
        );
        assert!(run(&words(&["/nowhere/x"])).is_err());
        assert!(run(&[]).is_err());
    }

    #[test]
    fn programs_are_looked_for_below_the_sysroot() {
        let root = tempfile::tempdir().expect("folder");
        assert_eq!(find("sh", root.path()), None);
        assert!(find("sh", Path::new("/")).is_some());
        assert_eq!(
            find("/bin/sh", Path::new("/")),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(find("/etc/passwd", Path::new("/")), None);
    }
}
