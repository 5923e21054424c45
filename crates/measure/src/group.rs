//! A command with everything it starts: one process group, watched through a pidfd.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::{child, sysfs};

/// How much of the end of an error output is looked at, in bytes.
const TAIL: i64 = 4096;

/// What is started, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// Names the output files.
    pub(crate) name: &'a str,
    /// Program and arguments, `{out}` still in them.
    pub(crate) command: &'a [String],
    /// The trial folder.
    pub(crate) folder: &'a Path,
    /// The cgroup to join.
    pub(crate) cgroup: Option<&'a Path>,
    /// What stands before the command.
    pub(crate) wrapper: &'a [String],
}

/// A started command. Dropping it kills the whole group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    stderr: PathBuf,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a command in a process group of its own.
    pub(crate) fn start(start: &Start<'_>) -> io::Result<Self> {
        let words = words(start);
        let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let stderr = start.folder.join(format!("{}.stderr", start.name));
        let mut child = Command::new(program)
            .args(args)
            .current_dir(start.folder)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(File::create(
                start.folder.join(format!("{}.stdout", start.name)),
            )?)
            .stderr(File::create(&stderr)?)
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error.into());
            }
        };
        if start.wrapper.is_empty() {
            place(pid, start.cgroup);
        }
        Ok(Self {
            child,
            pid,
            pidfd,
            stderr,
            status: None,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable once the command itself has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// How the command ended, after [`end`].
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// The last line of the error output, cut to 200 characters.
    pub(crate) fn last_words(&self) -> Option<String> {
        let mut file = File::open(&self.stderr).ok()?;
        if file.seek(SeekFrom::End(-TAIL)).is_err() {
            file.rewind().ok()?;
        }
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).ok()?;
        let text = String::from_utf8_lossy(&tail);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().take(200).collect())
    }

    /// Kills what is left of the group. The leader is reaped last: until then its number,
    /// which is also the group's, cannot belong to anyone else.
    fn finish(&mut self) -> io::Result<()> {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.status = Some(self.child.wait()?);
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Ends groups: a signal to each, `grace` for all together, then SIGKILL.
pub(crate) fn end(groups: &mut [Group], signal: Signal, grace: Duration) -> io::Result<()> {
    for group in groups.iter().filter(|group| group.status.is_none()) {
        let _ = kill_process_group(group.pid, signal);
    }
    let deadline = Instant::now() + grace;
    for group in groups {
        if group.status.is_none() {
            wait_any(&[group.pidfd.as_fd()], Some(deadline))?;
        }
        group.finish()?;
    }
    Ok(())
}

/// Sleeps until one of `fds` is ready and gives its place, or `None` at the deadline. This is
/// the only thing that happens in a quiet window.
pub(crate) fn wait_any(
    fds: &[BorrowedFd<'_>],
    deadline: Option<Instant>,
) -> io::Result<Option<usize>> {
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(Timespec::try_from).and_then(Result::ok);
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(polled.iter().position(|fd| !fd.revents().is_empty())),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn words(start: &Start<'_>) -> Vec<String> {
    let out = start.folder.to_string_lossy();
    let mut words = match start.wrapper {
        [] => Vec::new(),
        wrapper => child::wrapped(wrapper, start.cgroup),
    };
    words.extend(start.command.iter().map(|word| word.replace("{out}", &out)));
    words
}

/// Without a wrapper: moves a child a moment after its start. It may have ended by then.
fn place(pid: Pid, cgroup: Option<&Path>) {
    let number = pid.as_raw_pid();
    if let Some(folder) = cgroup {
        let _ = sysfs::write(&folder.join("cgroup.procs"), &number.to_string());
    }
    let _ = sysfs::write(Path::new(&format!("/proc/{number}/oom_score_adj")), "0");
}
