//! git as a program: arguments as an array, no shell, no prompt, and nothing of the user's or
//! the system's configuration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use klab_model::ObjectId;
use serde::{Deserialize, Serialize};

use crate::error::{BuildError, last_lines};
use crate::process::{Lines, Pipes, Stream, run};
use crate::{Cancel, Watcher, files};

/// The only configuration that git sees besides that of our own repositories.
///
/// `safe.directory`: a tree's source may belong to another user. What git then reads there are
/// objects and refs; hooks and filters of the source are never run.
const CONFIG: &str = "\
# Written by klab at every start.
[safe]
\tdirectory = *
[core]
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tautocrlf = false
\tfsmonitor = false
\tprecomposeUnicode = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[commit]
\tgpgSign = false
[am]
\tkeepcr = false
\tmessageid = false
[mailinfo]
\tscissors = false
[apply]
\twhitespace = nowarn
[advice]
\tmergeConflict = false
\tdetachedHead = false
[init]
\tdefaultBranch = master
[protocol]
\tallow = never
[protocol \"file\"]
\tallow = always
[protocol \"git\"]
\tallow = always
[protocol \"http\"]
\tallow = always
[protocol \"https\"]
\tallow = always
[protocol \"ssh\"]
\tallow = always
";

/// Who commits: the same everywhere, so that the same patches give the same commits.
const COMMITTER: [(&str, &str); 2] = [
    ("GIT_COMMITTER_NAME", "klab"),
    ("GIT_COMMITTER_EMAIL", "klab@example.org"),
];

/// A commit and the tree of files that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Commit {
    /// The commit.
    pub id: ObjectId,
    /// Its tree: the same files have the same tree, whoever committed them.
    pub tree: ObjectId,
}

/// How to call git.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    config: PathBuf,
}

/// What git printed, and whether it ended well.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) out: String,
    pub(crate) err: String,
    what: String,
}

impl Git {
    /// Writes the configuration into `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self, BuildError> {
        let config = folder.join("gitconfig");
        files::write_atomic(&config, CONFIG.as_bytes())?;
        Ok(Self { config })
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", &self.config)
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            // Neither a program that asks for a password nor ssh may wait for a person.
            .env("GIT_ASKPASS", "/bin/false")
            .env("SSH_ASKPASS", "/bin/false")
            .env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
            .env("GIT_EDITOR", "false")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .envs(COMMITTER)
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs git in `dir`; `line` gets each line of its error output while it runs.
    fn run(
        &self,
        dir: &Path,
        args: &[&OsStr],
        cancel: &Cancel,
        line: &mut dyn FnMut(&str),
    ) -> Result<Output, BuildError> {
        let mut command = self.command(dir);
        command.args(args);
        let what = describe(args);
        let (mut out, mut err, mut lines) = (Vec::new(), Vec::new(), Lines::default());
        let ended = run(
            command,
            Pipes::Apart,
            cancel,
            &mut |_| Ok(()),
            &mut |stream, bytes| match stream {
                Stream::Out => out.extend_from_slice(bytes),
                Stream::Err => {
                    err.extend_from_slice(bytes);
                    lines.push(bytes, line);
                }
            },
        );
        lines.end(line);
        let ended = ended.map_err(|source| BuildError::Start {
            program: "git".to_owned(),
            source,
        })?;
        if ended.cancelled {
            return Err(BuildError::Cancelled);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Output {
            success: ended.status.success(),
            out: text(&out),
            err: text(&err),
            what,
        })
    }

    /// Runs git and gives what it printed, whether it ended well or not.
    pub(crate) fn attempt(
        &self,
        dir: &Path,
        args: &[&OsStr],
        cancel: &Cancel,
    ) -> Result<Output, BuildError> {
        self.run(dir, args, cancel, &mut |_| {})
    }

    /// Runs git, which must end well, and gives the trimmed output.
    pub(crate) fn ok<S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: &[S],
        cancel: &Cancel,
    ) -> Result<String, BuildError> {
        let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        self.attempt(dir, &args, cancel)?.ok()
    }

    /// Runs a transfer, whose progress goes to the watcher.
    pub(crate) fn transfer(
        &self,
        dir: &Path,
        args: &[&OsStr],
        watcher: &mut Watcher<'_>,
    ) -> Result<(), BuildError> {
        let cancel = watcher.cancel();
        let mut line = |text: &str| watcher.tell(crate::BuildEvent::Transfer(text.to_owned()));
        self.run(dir, args, cancel, &mut line)?.ok().map(drop)
    }
}

impl Output {
    /// The trimmed output of a git that ended well.
    pub(crate) fn ok(self) -> Result<String, BuildError> {
        if self.success {
            Ok(self.out.trim_end().to_owned())
        } else {
            Err(BuildError::Git {
                what: self.what,
                message: last_lines(&self.err, 5),
            })
        }
    }
}

fn describe(args: &[&OsStr]) -> String {
    let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
    let mut text = format!("git {}", words.join(" "));
    if text.chars().count() > 200 {
        text = text.chars().take(200).chain("...".chars()).collect();
    }
    text
}
