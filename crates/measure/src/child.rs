//! The wrapper between the agent and a child: it joins the cgroup, takes the agent's
//! protection off, and executes the command. Thus no moment passes in which the command runs
//! outside its cgroup.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::sysfs;

/// The exit status with which a program that calls [`exec_child`] ends when that failed, so
/// that the lab is blamed and not the workload.
pub const WRAPPER_FAILED: i32 = 125;

/// Executes a command in place of this process:
/// `[--cgroup FOLDER] [--oom-score-adj N] -- COMMAND ARG...`.
///
/// Returns only if that failed.
pub fn exec_child(args: impl IntoIterator<Item = OsString>) -> io::Error {
    match prepare(args) {
        Ok(mut command) => {
            let program = command.get_program().to_string_lossy().into_owned();
            let error = command.exec();
            io::Error::new(error.kind(), format!("cannot execute {program}: {error}"))
        }
        Err(error) => error,
    }
}

fn prepare(args: impl IntoIterator<Item = OsString>) -> io::Result<Command> {
    let usage = || {
        let text = "usage: exec-child [--cgroup FOLDER] [--oom-score-adj N] -- COMMAND ARG...";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let mut args = args.into_iter();
    loop {
        let name = args.next().ok_or_else(usage)?;
        match name.to_str() {
            Some("--") => break,
            Some("--cgroup") => {
                let folder = args.next().ok_or_else(usage)?;
                let file = Path::new(&folder).join("cgroup.procs");
                // 0 is the writing process itself.
                sysfs::write(&file, "0").map_err(|e| {
                    io::Error::new(e.kind(), format!("cannot join {}: {e}", file.display()))
                })?;
            }
            Some("--oom-score-adj") => {
                let value = args.next().ok_or_else(usage)?;
                sysfs::write(
                    Path::new("/proc/self/oom_score_adj"),
                    &value.to_string_lossy(),
                )?;
            }
            _ => return Err(usage()),
        }
    }
    let mut command = Command::new(args.next().ok_or_else(usage)?);
    command.args(args);
    Ok(command)
}

/// The arguments that [`exec_child`] reads, in front of the command.
pub(crate) fn wrapped(wrapper: &[String], cgroup: Option<&Path>) -> Vec<String> {
    let mut words = wrapper.to_vec();
    if let Some(folder) = cgroup {
        words.extend(["--cgroup".to_owned(), folder.to_string_lossy().into_owned()]);
    }
    words.extend(["--oom-score-adj", "0", "--"].map(str::to_owned));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn wrapping_and_reading_agree() {
        let folder = tempfile::tempdir().expect("folder");
        let procs = folder.path().join("cgroup.procs");
        std::fs::write(&procs, "").expect("file");
        let words = wrapped(&[], Some(folder.path()));
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.extend(args(&["echo", "--", "x"]));
        let command = prepare(words).expect("command");
        assert_eq!(command.get_program(), "echo");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["--", "x"]);
        assert_eq!(std::fs::read_to_string(procs).expect("file"), "0");
    }

    #[test]
    fn nothing_is_executed_outside_its_cgroup() {
        for bad in [
            &["--cgroup", "/nowhere", "--", "true"][..],
            &["true"],
            &["--"],
            &[],
        ] {
            assert!(prepare(args(bad)).is_err(), "{bad:?}");
        }
    }
}
