//! The grammar of trees and builds.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use klab_model::{Arch, GitRef, Owner, TreeName};
use klab_series::VariantsSpec;

#[derive(Debug, Subcommand)]
pub(crate) enum TreeCommand {
    /// Add a git tree that builders can reach.
    Add {
        /// The name to give it.
        name: TreeName,
        /// A folder of a git tree, or a URL.
        source: String,
    },
    /// List trees.
    List,
    /// Forget a tree; kernels that were built of it stay.
    Remove {
        /// Its name.
        name: TreeName,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BuildCommand {
    /// Build kernels of a series.
    Start(BuildStart),
    /// List builds, newest first.
    List,
    /// Show a build and its kernels.
    Show {
        /// Build id, a unique part of at least 4 characters, or `last`.
        build: String,
    },
    /// Follow a build from its start to its end.
    Watch {
        /// Build id, a unique part of at least 4 characters, or `last`.
        build: String,
    },
    /// Print the log of a build.
    Log {
        /// Build id, a unique part of at least 4 characters, or `last`.
        build: String,
        /// Go on until the build ends.
        #[arg(long, short)]
        follow: bool,
    },
    /// Cancel a build.
    Cancel {
        /// Build id, a unique part of at least 4 characters, or `last`.
        build: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BuildStart {
    #[command(flatten)]
    pub(crate) wish: Wish,
    /// The architecture.
    #[arg(long, value_parser = Arch::parse, default_value = "x86_64")]
    pub(crate) arch: Arch,
    /// Who asks; the user name if absent.
    #[arg(long)]
    pub(crate) owner: Option<Owner>,
    /// Follow the build to its end.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Which kernels are wanted of a series.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wish {
    /// The patch series: a mailbox, a mail, a patch, a maildir, a folder of patches, `-` for
    /// standard input, or TREE:BASE..TOPIC for commits of a git tree.
    #[arg(requires = "tree")]
    pub(crate) series: Option<PathBuf>,
    /// The git tree that the series is for; `klab tree list` lists them.
    #[arg(long, requires = "series")]
    pub(crate) tree: Option<TreeName>,
    /// The revision of the series to take; the newest if absent.
    #[arg(long, value_name = "N", requires = "series", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) revision: Option<u32>,
    /// What the series applies to; without it the commit that the series names, or the one
    /// whose files fit.
    #[arg(long, value_name = "REF", requires = "series")]
    pub(crate) base: Option<GitRef>,
    /// The kernels to compare: base, all, each (base, +1, +1..2, ...), +N, a git ref or a kernel
    /// that was added, also as NAME=REF.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "base,all",
        requires = "series"
    )]
    pub(crate) variants: VariantsSpec,
    /// Another series, such as the revision before, to compare with on the same base.
    #[arg(long, value_name = "SERIES", requires = "series")]
    pub(crate) against: Option<PathBuf>,
    /// The configuration to begin with: defconfig, tinyconfig, board:NAME for that of a board's
    /// known-good kernel, or a file (a .config, or one packed with gzip). {arch} stands for the
    /// architecture, here and in fragments.
    #[arg(long, default_value = "defconfig", requires = "series")]
    pub(crate) config: String,
    /// What to lay over it: the name of a built-in fragment, or a file; may be given again.
    #[arg(long = "fragment", value_name = "NAME|FILE", requires = "series")]
    pub(crate) fragments: Vec<String>,
    /// Go on where lines of fragments did not take.
    #[arg(long, requires = "series")]
    pub(crate) allow_missing: bool,
}

impl Wish {
    /// Nothing that has to be built.
    pub(crate) fn none() -> Self {
        Self {
            series: None,
            tree: None,
            revision: None,
            base: None,
            variants: VariantsSpec::default(),
            against: None,
            config: "defconfig".to_owned(),
            fragments: Vec::new(),
            allow_missing: false,
        }
    }
}
