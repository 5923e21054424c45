//! A board that is a folder, with the real agent on it.
//!
//! ```text
//! FOLDER/root/      what the agent takes for /: proc, sys, boot, lib/modules
//! FOLDER/boot       the boot, as a script that the boot method `hooks` calls
//! FOLDER/state/     the agent's own
//! FOLDER/bin/       first on the agent's PATH: workloads that are scripts
//! ```
//!
//! A reboot changes what `root/proc` says, ends the agent and starts it again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::kernels::SmallKernel;
use crate::programs::program;

/// `boot arm RELEASE MARKER`, `boot disarm`, `boot reboot`. What is armed is used up before
/// it runs. The file `fate` says what becomes of a candidate: `dies` leads back to the
/// known-good kernel, `other` to a kernel that nobody asked for.
const BOOT: &str = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")"
case "$1" in
arm) printf '%s %s\n' "$2" "$3" >armed.new && mv armed.new armed ;;
disarm) rm -f armed ;;
reboot)
    touch down
    release=good marker=
    if [ -e armed ]; then
        read -r release marker <armed
        rm armed
        case "$(cat fate 2>/dev/null)" in
        dies) release=good marker= ;;
        other) release=other ;;
        esac
    fi
    echo "BOOT_IMAGE=/vmlinuz root=/dev/vda $marker" >root/proc/cmdline
    cp "kernels/$release/release" root/proc/sys/kernel/osrelease
    cp "kernels/$release/notes" root/sys/kernel/notes
    echo "6,0,0,-;Linux version $(cat "kernels/$release/release") (klab@fake) #1" >root/dev/kmsg
    cat /proc/sys/kernel/random/uuid >root/proc/sys/kernel/random/boot_id
    echo "$release" >>boots
    rm down
    ;;
esac
"#;

/// A board that is a folder.
#[derive(Debug)]
pub struct FakeBoard {
    folder: PathBuf,
    agent: Arc<Mutex<Option<Child>>>,
    stop: Arc<AtomicBool>,
    supervisor: Option<JoinHandle<()>>,
}

impl FakeBoard {
    /// Makes a board called `name` in `folder`. Its known-good kernel is `good`; it can boot
    /// `candidates`.
    ///
    /// # Panics
    /// If the folder cannot be written.
    #[must_use]
    pub fn create(folder: &Path, name: &str, controller: &str, candidates: &[SmallKernel]) -> Self {
        let folder = folder.join(name);
        for below in [
            "root/proc/sys/kernel/random",
            "root/sys/kernel",
            "root/dev",
            "root/boot",
            "root/lib/modules",
            "bin",
            "kernels",
        ] {
            fs::create_dir_all(folder.join(below)).expect("a folder of the board");
        }
        let known = [
            ("good", SmallKernel::new("6.1.0-good", 1)),
            ("other", SmallKernel::new("5.10.0-other", 2)),
        ];
        let candidates = candidates.iter().map(|k| (k.release.as_str(), k.clone()));
        for (slot, kernel) in known.into_iter().chain(candidates) {
            let slot = folder.join("kernels").join(slot);
            fs::create_dir_all(&slot).expect("a folder of the board");
            fs::write(slot.join("release"), format!("{}\n", kernel.release))
                .expect("a file of the board");
            fs::write(slot.join("notes"), kernel.notes()).expect("a file of the board");
        }
        let board = Self {
            folder,
            agent: Arc::default(),
            stop: Arc::default(),
            supervisor: None,
        };
        board.write_program("boot", BOOT);
        board.write_config(name, controller);
        let booted = Command::new(board.path("boot")).arg("reboot").status();
        assert!(
            booted.is_ok_and(|status| status.success()),
            "the board boots"
        );
        board
    }

    /// A file of the board.
    #[must_use]
    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }

    /// Puts a script on the agent's PATH.
    pub fn install(&self, name: &str, script: &str) {
        self.write_program(&format!("bin/{name}"), script);
    }

    /// Writes the agent's configuration file.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn write_config(&self, name: &str, controller: &str) {
        let boot = self.path("boot").display().to_string();
        let text = format!(
            "board: {name}\ncontroller: {controller}\nstate: {state}\nsysroot: {root}\n\
             arch: x86_64\ntags: {{ kind: fake }}\nboot:\n  method: hooks\n  folder: /boot/klab\n\
             \x20 arm: [{boot}, arm, '{{release}}', '{{marker}}']\n  disarm: [{boot}, disarm]\n\
             \x20 reboot: [{boot}, reboot]\n  marks-cmdline: true\n  clears-itself: true\n",
            state = self.path("state").display(),
            root = self.path("root").display(),
        );
        fs::write(self.path("agent.yaml"), text).expect("the agent's configuration");
    }

    /// Starts the agent, again and again, until the board is dropped.
    pub fn switch_on(&mut self) {
        let (folder, agent, stop) = (self.folder.clone(), self.agent.clone(), self.stop.clone());
        self.supervisor = Some(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                supervise(&folder, &agent);
                std::thread::sleep(Duration::from_millis(10));
            }
        }));
    }

    /// Kills the agent with SIGKILL; it is started again at once. `false` if none runs.
    #[must_use]
    pub fn kill_agent(&self) -> bool {
        let mut agent = lock(&self.agent);
        agent.as_mut().is_some_and(|agent| agent.kill().is_ok())
    }

    /// How often the board was booted, and into what: `good`, `other` or a release.
    #[must_use]
    pub fn boots(&self) -> Vec<String> {
        lines(&self.path("boots"))
    }

    /// What the agent wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("agent.log")).unwrap_or_default()
    }

    fn write_program(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::write(&path, text).expect("a program of the board");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
}

impl Drop for FakeBoard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.kill_agent();
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
        let _ = self.kill_agent();
        if std::thread::panicking() {
            crate::tell(&format!("the agent's log:\n{}", self.log()));
        }
    }
}

/// The lines of a file that may not be there.
#[must_use]
pub fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn lock(agent: &Mutex<Option<Child>>) -> MutexGuard<'_, Option<Child>> {
    agent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One look at the agent: an absent one is started, unless the board is down.
fn supervise(folder: &Path, agent: &Mutex<Option<Child>>) {
    let mut agent = lock(agent);
    if let Some(child) = agent.as_mut()
        && matches!(child.try_wait(), Ok(None))
    {
        return;
    }
    *agent = None;
    if folder.join("down").exists() {
        return;
    }
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("agent.log"))
        .expect("the agent's log");
    let mut path = folder.join("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    let started = Command::new(program("klab-agent"))
        .arg("--config")
        .arg(folder.join("agent.yaml"))
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    *agent = Some(started.expect("the agent starts"));
}
