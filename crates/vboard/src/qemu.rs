//! A running board: one QEMU process, kept by a thread of its own.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::command::{describe, tail, tool};
use crate::{Accel, BoardDir, BoardSpec, ConsoleFollower, Error, Machine, Result, qmp};

/// How long QEMU may take to open its monitor.
const OPEN: Duration = Duration::from_secs(30);

/// How a board's QEMU ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The guest switched itself off, or [`VirtualBoard::stop`] did.
    Off,
    /// QEMU failed or was killed; in words.
    Failed(String),
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        if status.success() {
            Self::Off
        } else {
            Self::Failed(describe(status))
        }
    }
}

/// What the keeper thread tells about its process.
#[derive(Default)]
struct Ended {
    exit: Mutex<Option<Exit>>,
    changed: Condvar,
}

impl Ended {
    fn get(&self) -> MutexGuard<'_, Option<Exit>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, exit: Exit) {
        *self.get() = Some(exit);
        self.changed.notify_all();
    }

    fn wait(&self, limit: Duration) -> Option<Exit> {
        let waited = self
            .changed
            .wait_timeout_while(self.get(), limit, |exit| exit.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

/// A board that is switched on. Dropping it pulls the plug.
pub struct VirtualBoard {
    dir: BoardDir,
    pid: u32,
    pidfd: OwnedFd,
    ended: Arc<Ended>,
    keeper: Option<std::thread::JoinHandle<()>>,
}

impl std::fmt::Debug for VirtualBoard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualBoard")
            .field("dir", &self.dir)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

impl VirtualBoard {
    pub(crate) fn start(dir: BoardDir, accel: &Accel) -> Result<Self> {
        let lock = dir.lock()?;
        let log = dir.file("qemu.log");
        let out = File::create(&log).map_err(Error::io("create", &log))?;
        let err = out.try_clone().map_err(Error::io("open", &log))?;
        let _ = std::fs::remove_file(dir.file(qmp::SOCKET));
        let mut command = tool("setpriv");
        command
            .args(["--pdeathsig", "KILL", dir.machine().qemu()])
            .args(arguments(dir.machine(), dir.spec(), accel));
        command
            .current_dir(dir.path())
            .stdout(out)
            .stderr(err)
            .stdin(Stdio::null());
        let ended = Arc::new(Ended::default());
        let (pid, keeper) = keep(command, lock, dir.clone(), Arc::clone(&ended))?;
        let handle = pidfd(pid).map_err(Error::io("open", format!("process {pid}")))?;
        let board = Self {
            dir,
            pid,
            pidfd: handle,
            ended,
            keeper: Some(keeper),
        };
        board.wait_for_monitor()?;
        tracing::info!(board = %board.dir.spec().name, pid, "switched on");
        Ok(board)
    }

    /// Waits until QEMU listens, so that reset and stop work from the start.
    fn wait_for_monitor(&self) -> Result<()> {
        let deadline = Instant::now() + OPEN;
        let socket = self.dir.file(qmp::SOCKET);
        while !socket.exists() && self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = match self.ended.get().clone() {
            None if socket.exists() => return Ok(()),
            None => format!("no monitor within {} s", OPEN.as_secs()),
            Some(Exit::Off) => "exit code 0".to_owned(),
            Some(Exit::Failed(status)) => status,
        };
        let output = std::fs::read(self.dir.file("qemu.log")).unwrap_or_default();
        Err(Error::Start {
            name: self.dir.spec().name.to_string(),
            status,
            output: tail(&output),
        })
    }

    /// The board's folder.
    #[must_use]
    pub fn dir(&self) -> &BoardDir {
        &self.dir
    }

    /// QEMU's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the board is on.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.ended.get().is_none()
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.ended.get().clone()
    }

    /// Waits for the board to switch itself off; `None` if it is still on after `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<Exit> {
        self.ended.wait(limit)
    }

    /// Follows the console from what is printed from now on.
    #[must_use]
    pub fn follow_console(&self) -> ConsoleFollower {
        self.dir.follow_console()
    }

    /// Presses the reset button.
    ///
    /// # Errors
    /// [`Error::Monitor`] if QEMU does not answer.
    pub fn reset(&self) -> Result<()> {
        self.dir.monitor("system_reset")
    }

    /// Switches the board off: what the guest flushed is on the disk, what it did not is lost.
    /// Returns how QEMU ended; it is killed if it does not answer.
    #[must_use]
    pub fn stop(mut self) -> Exit {
        if let Err(error) = self.dir.monitor("quit") {
            tracing::warn!(board = %self.dir.spec().name, %error, "killing QEMU");
        } else if let Some(exit) = self.ended.wait(OPEN) {
            return exit;
        }
        self.end()
    }

    /// Cuts the power: QEMU is killed.
    pub fn kill(mut self) {
        self.end();
    }

    /// Kills QEMU and waits until its lock and process are gone.
    fn end(&mut self) -> Exit {
        if self.is_alive() {
            // Fails only for a process that ended by itself, which is as good.
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        self.exit()
            .unwrap_or_else(|| Exit::Failed("killed".to_owned()))
    }
}

impl Drop for VirtualBoard {
    fn drop(&mut self) {
        self.end();
    }
}

fn pidfd(pid: u32) -> std::io::Result<OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = raw.ok_or_else(|| std::io::Error::other("not a process id"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Starts the command on a thread that lives as long as the process: the parent-death signal is
/// sent when the starting *thread* ends, and a thread of the caller's pool may end at any time.
fn keep(
    mut command: Command,
    lock: File,
    dir: BoardDir,
    ended: Arc<Ended>,
) -> Result<(u32, std::thread::JoinHandle<()>)> {
    let (tell, told) = mpsc::channel();
    let body = move || {
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                ended.set(Exit::Failed(error.to_string()));
                let _ = tell.send(Err(error));
                return;
            }
        };
        let _ = std::fs::write(dir.file("qemu.pid"), format!("{}\n", child.id()));
        let _ = tell.send(Ok(child.id()));
        let exit = wait(child);
        let _ = std::fs::remove_file(dir.file("qemu.pid"));
        // Whoever learns of the end may start the board again at once.
        drop(lock);
        ended.set(exit);
    };
    let keeper = std::thread::Builder::new()
        .name("vboard-keeper".to_owned())
        .spawn(body);
    let keeper = keeper.map_err(Error::io("start", "vboard-keeper thread"))?;
    let answer = told
        .recv()
        .unwrap_or_else(|_| Err(std::io::Error::other("keeper thread ended")));
    Ok((answer.map_err(Error::io("start", "setpriv"))?, keeper))
}

fn wait(mut child: Child) -> Exit {
    child
        .wait()
        .map_or_else(|e| Exit::Failed(e.to_string()), Exit::of)
}

/// QEMU's arguments; file names are relative to the board's folder.
fn arguments(machine: Machine, spec: &BoardSpec, accel: &Accel) -> Vec<String> {
    let mut args: Vec<String> = ["-nodefaults", "-no-user-config", "-display", "none"]
        .iter()
        .chain(machine.board_args())
        .chain(&machine.accel_args(accel.kind))
        .map(|word| (*word).to_owned())
        .collect();
    let sizes = [
        ("-name", spec.name.to_string()),
        ("-m", spec.memory_mib.to_string()),
        ("-smp", spec.cpus.to_string()),
    ];
    args.extend(
        sizes
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value]),
    );
    let fixed = [
        ("-chardev", "file,id=console,path=console.log,append=on"),
        ("-serial", "chardev:console"),
        ("-chardev", "socket,id=qmp,path=qmp.sock,server=on,wait=off"),
        ("-mon", "chardev=qmp,mode=control"),
        // Fixed slots: the root disk is always the first one the guest finds.
        (
            "-drive",
            "if=none,id=root,file=disk.qcow2,format=qcow2,discard=unmap",
        ),
        ("-device", "virtio-blk-pci,drive=root,addr=0x4,bootindex=0"),
        (
            "-drive",
            "if=none,id=seed,file=seed.tar,format=raw,readonly=on",
        ),
        ("-device", "virtio-blk-pci,drive=seed,addr=0x5"),
        ("-netdev", "user,id=n0,restrict=off"),
        ("-device", "virtio-net-pci,netdev=n0,romfile=,addr=0x6"),
        ("-device", "virtio-rng-pci,addr=0x7"),
        ("-device", "i6300esb,addr=0x8"),
        ("-action", "watchdog=reset,reboot=reset"),
    ];
    args.extend(
        fixed
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]),
    );
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_keep_what_boards_rely_on() {
        let mut spec = BoardSpec::new("vb1").expect("valid");
        spec.memory_mib = 512;
        for machine in Machine::ALL {
            let line = arguments(machine, &spec, &Accel::tcg()).join(" ");
            assert!(line.contains("-accel tcg,thread=multi"), "{line}");
            assert!(line.contains("-m 512 -smp 2"), "{line}");
            // The log of earlier starts stays; a reboot is a reboot; the watchdog bites.
            assert!(line.contains("append=on"), "{line}");
            assert!(!line.contains("-no-reboot"), "{line}");
            assert!(
                line.contains("-device i6300esb") && line.contains("watchdog=reset"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_program_that_cannot_start_is_told_at_once() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let lock = File::create(dir.path().join("lock")).expect("lock");
        // The keeper needs a board's folder only for its pid file.
        let boards = dir.path().join("boards");
        std::fs::create_dir_all(boards.join("vb1")).expect("folder");
        let spec = r#"{"spec": {"name": "vb1", "memory_mib": 256, "cpus": 1}, "image": ""}"#;
        std::fs::write(boards.join("vb1/board.json"), spec).expect("write");
        let name = crate::BoardName::new("vb1").expect("valid");
        let board = BoardDir::open(&boards, &name).expect("opens");
        let ended = Arc::new(Ended::default());
        let error = keep(
            Command::new("no-such-program"),
            lock,
            board,
            Arc::clone(&ended),
        )
        .expect_err("no program");
        assert!(error.to_string().starts_with("cannot start"), "{error}");
        assert!(matches!(
            ended.wait(Duration::from_secs(5)),
            Some(Exit::Failed(_))
        ));
    }
}
