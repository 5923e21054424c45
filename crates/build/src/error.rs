//! Why there is no kernel: each error names the place and the mend.

use std::io;
use std::path::PathBuf;

use klab_kernel::KernelError;
use klab_model::{Arch, Failure, InvalidText, TreeName};

use crate::Refusal;
use crate::config::Untaken;
use crate::diagnosis::FirstError;
use crate::tools::{self, MissingTool};

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The token was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// What a caller found out: nothing can be built of this.
    #[error("{what}")]
    Unusable {
        /// One sentence.
        what: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {program}: install it, or look at PATH")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// git failed.
    #[error("{what} failed: {message}")]
    Git {
        /// The command.
        what: String,
        /// The end of what it said.
        message: String,
    },
    /// `make` does not build below such a folder.
    #[error(
        "kernels cannot be built below {}: make wants a path of UTF-8 without blanks and colons",
        .path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// Not the name of a git object.
    #[error(transparent)]
    ObjectId(#[from] InvalidText),
    /// Not a place that trees come from.
    #[error(
        "tree source {found:?} is not valid: expected an absolute path, a URL of https, http, \
         git, ssh or file, or user@host:path"
    )]
    Source {
        /// The text.
        found: String,
    },
    /// The name stands for another tree.
    #[error("tree {name} is there already, from {source_now}: choose another name")]
    TreeTaken {
        /// The name.
        name: TreeName,
        /// Where that tree comes from.
        source_now: String,
    },
    /// No tree of that name.
    #[error("no tree {name}; {}", known_trees(.known))]
    NoTree {
        /// The name.
        name: TreeName,
        /// The names that there are.
        known: Vec<TreeName>,
    },
    /// No such commit.
    #[error("tree {tree} has no commit {revision:?}: fetch the tree, or look at the spelling")]
    NoCommit {
        /// The tree.
        tree: TreeName,
        /// What was asked for.
        revision: String,
    },
    /// A name that stands for several commits.
    #[error("{revision:?} is several commits in tree {tree}: name one of {}", references.join(", "))]
    Ambiguous {
        /// The tree.
        tree: TreeName,
        /// What was asked for.
        revision: String,
        /// The full names, each with its commit.
        references: Vec<String>,
    },
    /// A patch does not apply.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The series is shorter than what was asked for.
    #[error("the variant needs {}, the series has {found}", patches(*.wanted))]
    TooFewPatches {
        /// Patches that are needed.
        wanted: usize,
        /// Patches that there are.
        found: usize,
    },
    /// A fragment of a configuration is wrong.
    #[error("{name}:{line}: {what}")]
    Fragment {
        /// The fragment.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A base of a configuration is wrong.
    #[error("configuration {name:?}: {what}")]
    ConfigBase {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Settings are not in the final configuration.
    #[error(
        "{} did not take: {}; change the fragments, or allow it",
        settings(.0.len()), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Untaken(Vec<Untaken>),
    /// klab does not build for it.
    #[error("kernels for {arch} are not built, only those for x86_64 and riscv64")]
    ArchNotBuilt {
        /// The architecture.
        arch: Arch,
    },
    /// Programs or headers are missing.
    #[error("{}", tools::describe(.0))]
    MissingTools(Vec<MissingTool>),
    /// `make` failed.
    #[error("make {targets} failed ({status}): {found}")]
    Make {
        /// What it was to make.
        targets: String,
        /// How it ended.
        status: String,
        /// The first error in what it printed.
        found: Box<FirstError>,
    },
    /// What was built is no package.
    #[error("the kernel that was built cannot be packed")]
    Package(#[source] Box<KernelError>),
    /// The image is not the one that was built.
    #[error("the image says {found}, and {expected} was built: the tree does not follow kbuild")]
    WrongImage {
        /// What the image says.
        found: String,
        /// What was built.
        expected: String,
    },
    /// The image has no build-id.
    #[error("a board could not prove that this kernel runs: {why}")]
    NoBuildId {
        /// Why.
        why: String,
    },
    /// Not the text of a key.
    #[error("line {line} of a build key: {found:?} is not what a key has there")]
    Key {
        /// The line, counted from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
}

impl BuildError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn package(source: KernelError) -> Self {
        Self::Package(Box::new(source))
    }

    /// The error with what caused it, in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        text
    }

    /// Whose fault it is: the kernel's where its source does not apply, configure or build, the
    /// lab's for everything else.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Refused(_)
            | Self::TooFewPatches { .. }
            | Self::Untaken(_)
            | Self::NoBuildId { .. }
            | Self::WrongImage { .. }
            // What was asked for cannot be had; asking again does not help.
            | Self::NoCommit { .. }
            | Self::Ambiguous { .. }
            | Self::ConfigBase { .. }
            | Self::Fragment { .. }
            | Self::Source { .. }
            | Self::Unusable { .. } => Failure::kernel(self.chain()),
            Self::Make { found, .. } if found.by.is_of_the_source() => {
                Failure::kernel(self.chain())
            }
            _ => Failure::infrastructure(self.chain()),
        }
    }
}

/// The last `count` lines that are not empty.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// `1 patch`, `2 patches`.
fn patches(count: usize) -> String {
    match count {
        1 => "1 patch".to_owned(),
        _ => format!("{count} patches"),
    }
}

/// `1 setting`, `2 settings`.
fn settings(count: usize) -> String {
    match count {
        1 => "1 setting".to_owned(),
        _ => format!("{count} settings"),
    }
}

fn known_trees(known: &[TreeName]) -> String {
    if known.is_empty() {
        return "no tree was added yet".to_owned();
    }
    let names: Vec<&str> = known.iter().map(TreeName::as_str).collect();
    format!("there is {}", names.join(", "))
}
