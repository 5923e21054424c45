//! The real program in a process of its own.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::Channel;

use super::{channel, within};

pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

/// The program with its folder and the address to listen on.
pub(crate) fn controller(folder: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klab-controller"));
    command.arg("--folder").arg(folder);
    command.args(["--listen", listen]);
    command
}

/// Starts the program and waits until it serves.
pub(crate) async fn start(folder: &Path) -> (Child, Channel) {
    served(controller(folder, ANY_PORT))
        .await
        .expect("it listens")
}

/// Starts a program that ends with serving; `None` if it ends before.
pub(crate) async fn served(mut command: Command) -> Option<(Child, Channel)> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap()?;
    let address = line.strip_prefix("listening on ").unwrap();
    Some((child, channel(address.parse().unwrap()).await))
}

/// A program that refuses to start: its exit code and what it said.
pub(crate) async fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = within(command.kill_on_drop(true).output()).await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

/// A controller whose folder is a tmpfs of 8 MiB. The mount is in a namespace of the
/// process: it ends with it.
pub(crate) struct SmallDisk {
    pub child: Child,
    pub channel: Channel,
    /// The folder as the controller sees it, from outside its namespace.
    folder: PathBuf,
    _mount_point: tempfile::TempDir,
}

const MOUNT: &str = "mount -t tmpfs -o size=8m tmpfs \"$1\"";

impl SmallDisk {
    /// `None`, and the test `name` is skipped, where nothing can be mounted.
    pub(crate) async fn start(name: &str) -> Option<SmallDisk> {
        let mount_point = tempfile::tempdir().unwrap();
        for options in [&["-m"][..], &["-r", "-m"]] {
            let program = controller(mount_point.path(), ANY_PORT);
            let mut command = Command::new("unshare");
            command.args(options).args(["sh", "-c"]);
            command
                .arg(format!("{MOUNT} && shift && exec \"$@\""))
                .arg("sh");
            command.arg(mount_point.path());
            command.arg(program.as_std().get_program());
            command.args(program.as_std().get_args());
            let Some((child, channel)) = served(command).await else {
                continue;
            };
            let root = PathBuf::from(format!("/proc/{}/root", child.id().unwrap()));
            let inside = mount_point.path().strip_prefix("/").unwrap();
            return Some(SmallDisk {
                folder: root.join(inside),
                child,
                channel,
                _mount_point: mount_point,
            });
        }
        klab_testkit::skip(name, "no permission to mount a tmpfs in a namespace");
        None
    }

    /// Fills the disk up to `spare` bytes.
    pub(crate) fn fill(&self, spare: usize) {
        let mut filler = fs::File::create(self.folder.join("filler")).unwrap();
        let (mut size, mut piece) = (0, vec![7; 64 << 10]);
        while !piece.is_empty() {
            match filler.write(&piece) {
                Ok(count) => size += count,
                Err(_) => piece.truncate(piece.len() / 2),
            }
        }
        assert!(size > spare, "only {size} bytes were free");
        filler.set_len((size - spare) as u64).unwrap();
    }

    /// Somebody frees space.
    pub(crate) fn free(&self) {
        fs::remove_file(self.folder.join("filler")).unwrap();
    }

    /// Sizes of all files below a sub-folder of the controller's.
    pub(crate) fn files(&self, name: &str) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut folders = vec![self.folder.join(name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    folders.push(entry.path());
                } else {
                    sizes.push(meta.len());
                }
            }
        }
        sizes
    }
}
