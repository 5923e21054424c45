//! `make` of a kernel tree: the same arguments and environment for every call, so that nothing
//! of the machine or the user gets into a kernel.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use crate::diagnosis::Diagnosis;
use crate::process::{Lines, Pipes, run};
use crate::target::Target;
use crate::toolchain::Toolchain;
use crate::{BuildError, Cancel, Watcher};

/// What the kernel says about its build in `/proc/version`. The same for all kernels, so that
/// variants differ in nothing but their source.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "klab"),
    ("KBUILD_BUILD_HOST", "klab"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// What of the environment programs may see. Compilers, make and ccache read many variables.
const KEPT: [&str; 2] = ["HOME", "TMPDIR"];

/// How much a build takes of a machine that has other things to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// As any other program.
    Normal,
    /// Only what others leave: lowest priority, disk when idle.
    #[default]
    Background,
}

/// How to call `make` for one source and one folder of results.
#[derive(Debug, Clone)]
pub(crate) struct Make<'a> {
    pub(crate) src: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) toolchain: &'a Toolchain,
    /// The cache of ccache, if that is used.
    pub(crate) ccache: Option<&'a Path>,
    pub(crate) priority: Priority,
    /// The lock that `make` and its children hold through their standard input: as long as one
    /// of them lives, nobody else builds here. The file is at its end, so they read nothing.
    pub(crate) lock: Option<&'a File>,
}

/// How `make` ended.
pub(crate) struct Made {
    pub(crate) killed: bool,
    pub(crate) result: Result<(), BuildError>,
}

impl Make<'_> {
    pub(crate) fn arch(&self) -> Target {
        self.toolchain.target
    }

    /// Arguments that have an influence on the kernel, without folders of this machine.
    pub(crate) fn flags() -> Vec<String> {
        let identity = IDENTITY
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let fixed = ["LOCALVERSION=", "KCFLAGS=-ffile-prefix-map", "strip=1"];
        identity.chain(fixed.map(str::to_owned)).collect()
    }

    /// The command without targets.
    ///
    /// Folders of this machine stay out of names in messages and of debug information, and thus
    /// out of the build-id.
    fn command(&self) -> Result<Command, BuildError> {
        let before: &[&str] = match self.priority {
            Priority::Normal => &[],
            Priority::Background => &self.toolchain.background,
        };
        let mut words = before.iter().chain(&["make"]);
        let mut command = Command::new(words.next().unwrap_or(&"make"));
        command.args(words);
        command.current_dir(self.src).env_clear();
        command.envs(
            KEPT.iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command
            .env("PATH", &self.toolchain.path)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .envs(IDENTITY);
        command
            .arg(option("O=", self.out))
            .arg(format!("ARCH={}", self.arch().make_arch()))
            .arg(format!("CROSS_COMPILE={}", self.toolchain.prefix))
            // Set and empty: no plus sign for a work tree that is at no tag.
            .arg("LOCALVERSION=");
        for name in ["KCFLAGS=", "KAFLAGS="] {
            let mut map = OsString::from(name);
            for folder in [self.src, self.out] {
                map.push(option("-ffile-prefix-map=", folder));
                map.push("/= ");
                map.push(option("-fdebug-prefix-map=", folder));
                map.push("=. ");
            }
            command.arg(map);
        }
        if let (Some(ccache), Some(cache)) = (self.toolchain.ccache(), self.ccache) {
            let mut compiler = option("CC=", ccache);
            compiler.push(format!(" {}gcc", self.toolchain.prefix));
            command
                .arg(compiler)
                .env("CCACHE_DIR", cache)
                .env("CCACHE_MAXSIZE", "10G");
        }
        match self.lock {
            Some(lock) => {
                let lock = lock.try_clone().map_err(BuildError::io("open", self.out))?;
                command.stdin(lock);
            }
            None => {
                command.stdin(Stdio::null());
            }
        }
        Ok(command)
    }

    /// Runs `make`; `line` gets every line that it prints.
    pub(crate) fn run(
        &self,
        args: &[String],
        cancel: &Cancel,
        started: &mut dyn FnMut(Pid) -> io::Result<()>,
        line: &mut dyn FnMut(&str),
    ) -> Result<Made, BuildError> {
        let mut command = self.command()?;
        command.args(args);
        let mut lines = Lines::default();
        let mut diagnosis = Diagnosis::new(self.src, self.out);
        let mut each = |text: &str| {
            diagnosis.line(text);
            line(text);
        };
        let ended = run(command, Pipes::Merged, cancel, started, &mut |_, bytes| {
            lines.push(bytes, &mut each)
        });
        lines.end(&mut each);
        let ended = ended.map_err(|source| BuildError::Start {
            program: "make".to_owned(),
            source,
        })?;
        let result = if ended.cancelled {
            Err(BuildError::Cancelled)
        } else if ended.status.success() {
            Ok(())
        } else {
            Err(BuildError::Make {
                targets: args.join(" "),
                status: ended.status.to_string(),
                found: Box::new(diagnosis.finish()),
            })
        };
        Ok(Made {
            killed: ended.killed,
            result,
        })
    }

    /// Runs `make` for targets whose output is of no interest.
    pub(crate) fn quiet(&self, targets: &[&str], watcher: &Watcher<'_>) -> Result<(), BuildError> {
        let args: Vec<String> = targets.iter().map(|t| (*t).to_owned()).collect();
        self.run(&args, watcher.cancel(), &mut |_| Ok(()), &mut |_| {})?
            .result
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut text = OsString::from(name);
    text.push(path);
    text
}
