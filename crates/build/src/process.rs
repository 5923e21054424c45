//! A command with everything it starts, in a process group of its own: its output is read
//! while it runs, and cancelling ends the whole group.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::Cancel;

/// How long a cancelled group may take after SIGTERM. `make` uses it to remove the files that
/// it was about to write.
const GRACE: Duration = Duration::from_secs(5);
/// How long output may still come once the command has ended and its group was killed.
const DRAIN: Duration = Duration::from_secs(2);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Whether it was ended because the token was cancelled.
    pub(crate) cancelled: bool,
    /// Whether it had to be killed, so that half-written files may be left.
    pub(crate) killed: bool,
}

/// From which of its two outputs bytes of a command come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Whether both outputs of a command go into one pipe, which keeps their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pipes {
    Merged,
    Apart,
}

/// Runs a command to its end, or until `cancel`. `started` learns the number of the group,
/// `sink` gets what the command prints.
pub(crate) fn run(
    mut command: Command,
    pipes: Pipes,
    cancel: &Cancel,
    started: &mut dyn FnMut(Pid) -> io::Result<()>,
    sink: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<Ended> {
    let (out, write_out) = io::pipe()?;
    let mut open = vec![(Stream::Out, out)];
    if pipes == Pipes::Merged {
        command.stderr(write_out.try_clone()?);
    } else {
        let (err, write_err) = io::pipe()?;
        open.push((Stream::Err, err));
        command.stderr(write_err);
    }
    let child = command.stdout(write_out).process_group(0).spawn()?;
    // The command holds the writing ends; as long as they are open the pipes have no end.
    drop(command);
    let mut group = Group {
        pid: Pid::from_child(&child),
        child,
        reaped: None,
    };
    started(group.pid)?;
    group.follow(&mut open, cancel, sink)
}

/// A started command. Dropping it kills the whole group.
struct Group {
    child: Child,
    pid: Pid,
    reaped: Option<ExitStatus>,
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl Group {
    /// Kills what is left of the group. The leader is reaped last: until then its number, which
    /// is also the group's, cannot belong to anyone else.
    fn finish(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }

    fn follow(
        &mut self,
        open: &mut Vec<(Stream, PipeReader)>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<Ended> {
        let pidfd = pidfd_open(self.pid, PidfdFlags::empty())?;
        let mut kill_at = None;
        let (mut cancelled, mut killed) = (false, false);
        loop {
            let watch_cancel = (!cancelled).then(|| cancel.fd());
            let ready = wait(pidfd.as_fd(), watch_cancel, open, kill_at)?;
            read_ready(open, &ready.pipes, sink)?;
            if ready.ended {
                break;
            }
            if ready.cancel {
                cancelled = true;
                let _ = kill_process_group(self.pid, Signal::TERM);
                kill_at = Some(Instant::now() + GRACE);
            }
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                killed = true;
                let _ = kill_process_group(self.pid, Signal::KILL);
                kill_at = None;
            }
        }
        let status = self.finish()?;
        drain(open, sink)?;
        Ok(Ended {
            status,
            cancelled,
            killed,
        })
    }
}

/// What is ready.
#[derive(Default)]
struct Ready {
    ended: bool,
    cancel: bool,
    /// For each open pipe, whether it can be read.
    pipes: Vec<bool>,
}

fn wait(
    pidfd: BorrowedFd<'_>,
    cancel: Option<BorrowedFd<'_>>,
    open: &[(Stream, PipeReader)],
    until: Option<Instant>,
) -> io::Result<Ready> {
    let fds = [Some(pidfd), cancel].into_iter().flatten();
    let fds = fds.chain(open.iter().map(|(_, pipe)| pipe.as_fd()));
    let mut fds: Vec<PollFd<'_>> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(Timespec::try_from).and_then(Result::ok);
    match poll(&mut fds, left.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
        Err(error) => return Err(error.into()),
    }
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    Ok(Ready {
        ended: ready.next().unwrap_or(false),
        cancel: cancel.is_some() && ready.next().unwrap_or(false),
        pipes: ready.collect(),
    })
}

/// Reads once from every pipe that is ready; a pipe that has ended is closed.
fn read_ready(
    open: &mut Vec<(Stream, PipeReader)>,
    ready: &[bool],
    sink: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut kept = Vec::new();
    for (n, (stream, mut pipe)) in open.drain(..).enumerate() {
        if ready.get(n) == Some(&true) {
            let length = pipe.read(&mut buffer)?;
            if length == 0 {
                continue;
            }
            sink(stream, &buffer[..length]);
        }
        kept.push((stream, pipe));
    }
    *open = kept;
    Ok(())
}

/// Reads what is still in the pipes. A process that left the group may hold them open.
fn drain(
    open: &mut Vec<(Stream, PipeReader)>,
    sink: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<()> {
    let until = Instant::now() + DRAIN;
    while !open.is_empty() && Instant::now() < until {
        let mut fds: Vec<PollFd<'_>> = open
            .iter()
            .map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN))
            .collect();
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        read_ready(open, &ready, sink)?;
    }
    Ok(())
}

/// Cuts a stream of bytes into lines; carriage returns end lines too, as progress meters use
/// them.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

/// Longest line that is kept, in bytes; a longer one is passed on in pieces.
const LONGEST_LINE: usize = 16 << 10;

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8], line: &mut dyn FnMut(&str)) {
        for &byte in bytes {
            if byte == b'\n' || byte == b'\r' || self.rest.len() >= LONGEST_LINE {
                self.end(line);
            }
            if byte != b'\n' && byte != b'\r' {
                self.rest.push(byte);
            }
        }
    }

    pub(crate) fn end(&mut self, line: &mut dyn FnMut(&str)) {
        if !self.rest.is_empty() {
            line(&String::from_utf8_lossy(&self.rest));
            self.rest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn collect(script: &str, pipes: Pipes) -> (Ended, String, String) {
        let cancel = Cancel::new().expect("token");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let ended = run(
            shell(script),
            pipes,
            &cancel,
            &mut |_| Ok(()),
            &mut |stream, bytes| match stream {
                Stream::Out => out.extend_from_slice(bytes),
                Stream::Err => err.extend_from_slice(bytes),
            },
        );
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (ended.expect("runs"), text(out), text(err))
    }

    #[test]
    fn outputs_are_kept_apart_or_in_their_order() {
        let script = "echo a; echo b >&2; echo c; exit 3";
        let (ended, out, err) = collect(script, Pipes::Apart);
        assert_eq!((out.as_str(), err.as_str()), ("a\nc\n", "b\n"));
        assert_eq!(ended.status.code(), Some(3));
        let (_, out, err) = collect(script, Pipes::Merged);
        assert_eq!((out.as_str(), err.as_str()), ("a\nb\nc\n", ""));
    }

    #[test]
    fn a_child_that_stays_behind_ends_with_its_group() {
        let start = Instant::now();
        let (_, out, _) = collect("sleep 60 & echo $!", Pipes::Merged);
        assert!(start.elapsed() < Duration::from_secs(30));
        let pid: i32 = out.trim().parse().expect("a number");
        let pid = Pid::from_raw(pid).expect("a process");
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            pidfd_open(pid, PidfdFlags::empty()).is_err()
                || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()))
                    .is_ok_and(|stat| stat.contains(") Z "))
        });
        assert!(gone, "the child of the command still runs");
    }

    #[test]
    fn cancelling_from_another_thread_ends_even_what_ignores_it() {
        let cancel = Cancel::new().expect("token");
        let other = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            other.cancel();
        });
        let script = "trap '' TERM; while :; do sleep 1; done";
        let start = Instant::now();
        let ended = run(
            shell(script),
            Pipes::Merged,
            &cancel,
            &mut |_| Ok(()),
            &mut |_, _| {},
        )
        .expect("runs");
        thread.join().expect("thread");
        assert!(ended.cancelled && ended.killed);
        assert!(start.elapsed() >= GRACE && start.elapsed() < GRACE * 4);
    }

    #[test]
    fn lines_are_cut_at_line_feeds_and_carriage_returns() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in [&b"a\r\nb"[..], b"c\rd", b"\n\n\xff"] {
            lines.push(piece, &mut |line| found.push(line.to_owned()));
        }
        lines.end(&mut |line| found.push(line.to_owned()));
        assert_eq!(found, ["a", "bc", "d", "\u{fffd}"]);
        let mut longest = 0;
        lines.push(&vec![b'x'; 100_000], &mut |line| {
            longest = longest.max(line.len())
        });
        assert_eq!(longest, LONGEST_LINE);
    }
}
