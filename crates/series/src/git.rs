//! The program git: arguments as arrays, no shell, nothing asked, no network, and none of
//! the user's configuration that changes what it prints.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use crate::display::defuse;

/// Why git did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program is not there.
    #[error("cannot start git: is it installed?")]
    Start {
        /// Why.
        source: io::Error,
    },
    /// The folder holds no git tree.
    #[error("{} is no git tree: {said}", defuse(&.tree.display().to_string()))]
    NoTree {
        /// The folder.
        tree: PathBuf,
        /// What git said.
        said: String,
    },
    /// A name that is no commit.
    #[error(
        "{} has no commit \"{}\": expected a branch, a tag or a commit id",
        defuse(&.tree.display().to_string()), defuse(.name)
    )]
    NoCommit {
        /// The tree.
        tree: PathBuf,
        /// The name.
        name: String,
    },
    /// A name that stands for several commits.
    #[error(
        "\"{}\" is several commits in {}: name one of {}",
        defuse(.name), defuse(&.tree.display().to_string()), defuse(&.references.join(", "))
    )]
    Ambiguous {
        /// The tree.
        tree: PathBuf,
        /// The name.
        name: String,
        /// The full names.
        references: Vec<String>,
    },
    /// Git failed.
    #[error("git {command} failed in {}: {said}", defuse(&.tree.display().to_string()))]
    Failed {
        /// The tree.
        tree: PathBuf,
        /// The subcommand.
        command: &'static str,
        /// What git said.
        said: String,
    },
    /// Git's output could not be read.
    #[error("git {command}: its output could not be read")]
    Output {
        /// The subcommand.
        command: &'static str,
        /// Why.
        source: io::Error,
    },
    /// More output than the limit.
    #[error("git {command}: more than {} MiB of output", .limit >> 20)]
    TooMuch {
        /// The subcommand.
        command: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
}

/// Variables that would lead git elsewhere, or make it print something else.
const UNSET: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_NOTES_REF",
    "GIT_TRACE",
    "GIT_TRACE2",
];

/// Settings of a tree's own configuration that change diffs and mails. What has an option
/// of its own is given there.
const SETTINGS: [&str; 13] = [
    "core.quotePath=true",
    "core.attributesFile=/dev/null",
    "i18n.logOutputEncoding=UTF-8",
    "format.encodeEmailHeaders=true",
    "format.mboxrd=false",
    "format.useAutoBase=false",
    "format.forceInBodyFrom=false",
    "diff.orderFile=/dev/null",
    "diff.suppressBlankEmpty=false",
    "diff.renameLimit=10000",
    "diff.interHunkContext=0",
    "diff.submodule=short",
    "log.showSignature=false",
];

/// A tree.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    tree: PathBuf,
    /// Folders of other owners in which the user allows git, as `safe.directory` has them.
    safe: Vec<String>,
}

impl Git {
    /// Opens a tree, a work tree or a bare one.
    ///
    /// # Errors
    /// [`GitError::Start`] and [`GitError::NoTree`].
    pub(crate) fn open(tree: &Path) -> Result<Self, GitError> {
        let mut git = Self {
            tree: tree.to_owned(),
            safe: Vec::new(),
        };
        let no_tree = |said: String| GitError::NoTree {
            tree: tree.to_owned(),
            said,
        };
        if !tree.is_dir() {
            return Err(no_tree("there is no such folder".to_owned()));
        }
        git.safe = safe_folders()?;
        git.run("rev-parse", ["--git-dir"], b"")
            .map_err(|error| match error {
                GitError::Failed { said, .. } => no_tree(said),
                other => other,
            })?;
        Ok(git)
    }

    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// The full id of a commit; none if there is no such commit.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let peeled = format!("{name}^{{commit}}");
        let arguments = ["--verify", "--quiet", "--end-of-options", &peeled];
        match self.run("rev-parse", arguments, b"") {
            Ok(id) => Ok(Some(text(&id))),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The full names of tags and branches that a name may mean, each with its commit; git would
    /// take the first one.
    pub(crate) fn namesakes(&self, name: &str) -> Result<Vec<(String, String)>, GitError> {
        let names = ["tags", "heads", "remotes"].map(|kind| format!("refs/{kind}/{name}"));
        let format = "--format=%(refname) %(objectname) %(*objectname)";
        let arguments = [format].into_iter().chain(names.iter().map(String::as_str));
        let list = text(&self.run("for-each-ref", arguments, b"")?);
        let read = |line: &str| {
            let mut words = line.split(' ');
            let full = words.next()?.to_owned();
            // An annotated tag stands for what it points to.
            let commit = words.rfind(|word| !word.is_empty())?.to_owned();
            Some((full, commit))
        };
        // A pattern also stands for everything below it.
        let same = |(full, _): &(String, String)| names.contains(full);
        Ok(list.lines().filter_map(read).filter(same).collect())
    }

    /// Runs a subcommand with `input`; gives what it printed.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        self.run_limited(command, arguments, input, crate::limits::MAX_GIT_OUTPUT)
    }

    /// [`Self::run`] with another limit of the output, in bytes.
    pub(crate) fn run_limited<A: AsRef<OsStr>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
        input: &[u8],
        limit: usize,
    ) -> Result<Vec<u8>, GitError> {
        let mut git = quiet_git();
        git.arg("-C").arg(&self.tree);
        for setting in SETTINGS {
            git.args(["-c", setting]);
        }
        for folder in &self.safe {
            git.arg("-c").arg(format!("safe.directory={folder}"));
        }
        git.arg(command).args(arguments);
        let (succeeded, output, said) = communicate(git, input, limit, command)?;
        if !succeeded {
            return Err(GitError::Failed {
                tree: self.tree.clone(),
                command,
                said,
            });
        }
        Ok(output)
    }
}

/// Output of one line, without its end.
pub(crate) fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

/// Git that asks nothing and reads no configuration but the tree's.
fn quiet_git() -> Command {
    let mut git = Command::new("git");
    for name in UNSET {
        git.env_remove(name);
    }
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C");
    git
}

/// What the user and the system allow; the one setting that is not ours to change.
fn safe_folders() -> Result<Vec<String>, GitError> {
    let mut folders = Vec::new();
    for scope in ["--system", "--global"] {
        let mut git = Command::new("git");
        git.args(["config", scope, "--null", "--get-all", "safe.directory"]);
        // Nothing found is an exit code, too.
        let (_, output, _) = communicate(git, b"", crate::limits::MAX_GIT_OUTPUT, "config")?;
        for folder in output.split_inclusive(|byte| *byte == 0) {
            match folder.strip_suffix(&[0]).unwrap_or(folder) {
                // An empty value takes back those before it.
                [] => folders.clear(),
                folder => folders.push(String::from_utf8_lossy(folder).into_owned()),
            }
        }
    }
    Ok(folders)
}

/// Runs a program to its end: whether it succeeded, its output, and its complaint.
fn communicate(
    mut program: Command,
    input: &[u8],
    limit: usize,
    command: &'static str,
) -> Result<(bool, Vec<u8>, String), GitError> {
    let failed = |source| GitError::Output { command, source };
    program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = program
        .spawn()
        .map_err(|source| GitError::Start { source })?;
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Whoever only writes or only reads waits for the other side forever.
    let (output, said) = std::thread::scope(|scope| {
        scope.spawn(move || feed(stdin, input));
        let said = scope.spawn(move || {
            let mut said = Vec::new();
            let read = stderr.map(|pipe| pipe.take(64 << 10).read_to_end(&mut said));
            read.transpose().map(|_| said)
        });
        let mut output = Vec::new();
        let read = stdout.map(|pipe| pipe.take(limit as u64 + 1).read_to_end(&mut output));
        (
            read.transpose().map(|_| output),
            said.join().unwrap_or_else(|_| Ok(Vec::new())),
        )
    });
    let output = output.map_err(failed);
    if output.as_ref().map_or(true, |output| output.len() > limit) {
        // It would wait for a reader.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    let output = output?;
    if output.len() > limit {
        return Err(GitError::TooMuch { command, limit });
    }
    Ok((status.success(), output, complaint(&said.map_err(failed)?)))
}

fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program that does not read to the end says why on its own.
        let _ = stdin.write_all(input);
    }
}

/// The first line that git wrote to standard error.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no word about why");
    let line = line
        .strip_prefix("fatal: ")
        .or_else(|| line.strip_prefix("error: "))
        .unwrap_or(line);
    defuse(line)
}
