//! What can go wrong, with the place and the mend.

use std::path::{Path, PathBuf};

/// Why a virtual board could not be made, found or driven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a machine that boards can be.
    #[error("{found:?} is no machine of virtual boards: expected x86_64 or riscv64")]
    Machine {
        /// What was given.
        found: String,
    },
    /// Host tools are missing.
    #[error("missing host tools: {}; install them with: {install}", .tools.join(", "))]
    MissingTools {
        /// Names of the tools or files that were not found.
        tools: Vec<String>,
        /// The one command that mends it.
        install: String,
    },
    /// A host tool ran and failed.
    #[error("{command} failed ({status}): {output}")]
    Tool {
        /// The command line that ran.
        command: String,
        /// Its exit status in words.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The verb, as in "cannot read".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The host's package sources do not offer what is wanted.
    #[error("{what}; {mend}")]
    Packages {
        /// What was looked for and what was found.
        what: String,
        /// What to do about it.
        mend: String,
    },
    /// A line of an apt sources file is not understood.
    #[error("{file}:{line}: {problem}")]
    Sources {
        /// The file as named by the caller.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// What was found and what is expected.
        problem: String,
    },
    /// A board name is not usable as host name and folder name.
    #[error(
        "board name {name:?} is not valid: use 1 to 63 of a-z, 0-9 and '-', starting with a letter"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// A size or count of a board or an image is out of range.
    #[error("{field} is {found}, expected {expected}")]
    Range {
        /// Field name.
        field: &'static str,
        /// The value as given.
        found: u64,
        /// The range in words.
        expected: &'static str,
    },
    /// There is already a board of that name.
    #[error("board {name} exists in {}; remove it first or choose another name", .path.display())]
    Exists {
        /// The board's name.
        name: String,
        /// Its folder.
        path: PathBuf,
    },
    /// There is no board of that name.
    #[error("no board {name} in {}; create it first", .path.display())]
    NoBoard {
        /// The name asked for.
        name: String,
        /// The folder that was looked in.
        path: PathBuf,
    },
    /// A file of the board's folder cannot be understood.
    #[error("{}: {problem}; remove the board and create it again", .path.display())]
    BadBoard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The board runs already, in this process or another.
    #[error("board {name} is running (lock {} is taken); stop it first", .path.display())]
    Busy {
        /// The board's name.
        name: String,
        /// The lock file.
        path: PathBuf,
    },
    /// QEMU ended before the board was on.
    #[error("QEMU for board {name} ended at once ({status}): {output}")]
    Start {
        /// The board's name.
        name: String,
        /// Exit status in words.
        status: String,
        /// The end of QEMU's own log.
        output: String,
    },
    /// The monitor of a running board did not answer as expected.
    #[error("monitor of board {name}: {problem}")]
    Monitor {
        /// The board's name.
        name: String,
        /// What was found.
        problem: String,
    },
    /// A grubenv or GRUB image has an unexpected shape.
    #[error("{what}: {problem}")]
    Grub {
        /// The file or block.
        what: String,
        /// What was found and what is expected.
        problem: String,
    },
}

impl Error {
    /// Makes a closure that wraps an I/O error with the verb and the path.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
