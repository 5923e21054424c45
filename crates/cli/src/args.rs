//! The grammar of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use klab_model::{Arch, BoardSelector, KernelName, Owner, VariantName};
use klab_vboard::Machine;

pub(crate) use crate::build_args::{BuildCommand, BuildStart, TreeCommand, Wish};

/// Measures what kernels do to latency and throughput, on real boards.
#[derive(Debug, Parser)]
#[command(name = "klab", version, about, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where the controller listens.
    #[arg(
        long,
        global = true,
        env = "KLAB_CONTROLLER",
        default_value = "http://127.0.0.1:7700",
        value_name = "URL"
    )]
    pub(crate) controller: String,
    /// Print JSON: one document, or one per line when watching.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results only.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check and show plans.
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Show patch series.
    #[command(subcommand)]
    Series(SeriesCommand),
    /// Check kernel logs.
    #[command(subcommand)]
    Log(LogCommand),
    /// Add and list kernels.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Add, list and remove the git trees that kernels are built from.
    #[command(subcommand)]
    Tree(TreeCommand),
    /// Build kernels of a patch series, and look at builds.
    #[command(subcommand)]
    Build(BuildCommand),
    /// Submit a job: variants x boards x a plan, in rounds.
    Submit(Submit),
    /// List jobs, newest first.
    Jobs,
    /// Look at one job.
    #[command(subcommand)]
    Job(JobCommand),
    /// Follow a job from its start to its end.
    Watch {
        /// Job id, a unique part of at least 4 characters, or `last`.
        job: String,
    },
    /// Cancel a job.
    Cancel {
        /// Job id, a unique part of at least 4 characters, or `last`.
        job: String,
    },
    /// List boards.
    Boards,
    /// List and get artifacts.
    #[command(subcommand)]
    Artifacts(ArtifactCommand),
    /// Print the comparison of a job's variants.
    Compare {
        /// Job id, a unique part of at least 4 characters, or `last`.
        job: String,
        /// How to print it.
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Make and run virtual boards.
    #[command(subcommand)]
    Vboard(VboardCommand),
    /// Compare two real kernels on a virtual board, from nothing.
    Demo(Demo),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Check a plan file.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Print a built-in plan.
    Show {
        /// Its name.
        name: String,
    },
    /// List the built-in plans.
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SeriesCommand {
    /// Show what is understood of a series: its patches, its base, and what is wrong with it.
    Show {
        /// A mailbox, a mail, a patch, a maildir, a folder of patches, `-` for standard
        /// input, or TREE:BASE..TOPIC for commits of a git tree.
        file: PathBuf,
        /// The revision to take; the newest if absent.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        revision: Option<u32>,
        /// A git tree in which to look for the base.
        #[arg(long, value_name = "PATH")]
        tree: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Tell whether the kernels in a log booted, and what they reported.
    ///
    /// Exit code 0: they booted and reported nothing about themselves. 1: one of them did not
    /// boot or has a report, or there is no kernel in it.
    Check {
        /// A console log, the output of dmesg, a journal or a pstore dump, packed with gzip or
        /// not; `-` for standard input.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Add a kernel: a Debian package, a `make tar-pkg` or `bindeb-pkg` result, or a folder.
    Add {
        /// The name to give it.
        name: KernelName,
        /// The package, the folder, or the boot image with --modules.
        path: PathBuf,
        /// The folder `lib/modules/RELEASE`, when PATH is a boot image.
        #[arg(long)]
        modules: Option<PathBuf>,
    },
    /// List kernels.
    List,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) wish: Wish,
    /// NAME=KERNEL: a kernel that was added, as a variant; give it once per variant. Boards of
    /// several architectures take NAME=KERNEL,KERNEL, one for each. Without a series the first
    /// is what others are compared with, with one they come after it.
    #[arg(long = "variant", value_name = "NAME=KERNEL", value_parser = variant)]
    pub(crate) kernels: Vec<NamedVariant>,
    /// The architecture to build for; those of the boards if absent.
    #[arg(long, value_parser = Arch::parse, requires = "series")]
    pub(crate) arch: Option<Arch>,
    /// A built-in plan's name or a plan file.
    #[arg(long)]
    pub(crate) plan: String,
    /// NAME,NAME for each of these boards, or TAG=VALUE,... for one board that has them all.
    #[arg(long)]
    pub(crate) boards: BoardSelector,
    /// How often each variant is booted on each board.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Who asks; the user name if absent.
    #[arg(long)]
    pub(crate) owner: Option<Owner>,
    /// Follow the job to its end and print the comparison.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// A variant and its kernels.
pub(crate) type NamedVariant = (VariantName, Vec<KernelName>);

fn variant(text: &str) -> Result<NamedVariant, String> {
    let (name, kernels) = text
        .split_once('=')
        .ok_or("expected NAME=KERNEL, such as base=v6.1")?;
    let name = VariantName::parse(name).map_err(|error| error.to_string())?;
    let kernels = kernels.split(',').map(KernelName::parse);
    let kernels = kernels.collect::<Result<_, _>>();
    Ok((name, kernels.map_err(|error| error.to_string())?))
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Show a job and its runs.
    Show {
        /// Job id, a unique part of at least 4 characters, or `last`.
        job: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// List the artifacts of a job.
    List {
        /// Job id, a unique part of at least 4 characters, or `last`.
        job: String,
    },
    /// Get the artifacts of a job, or one artifact.
    Get {
        /// A job, as elsewhere, or an artifact id.
        what: String,
        /// The folder to put them in.
        #[arg(long, short, default_value = "artifacts")]
        output: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// The layout of mmtests, for a cover letter.
    Text,
    /// Markdown.
    Markdown,
    /// Schema klab.report/v1.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VboardCommand {
    /// Make a virtual board.
    Create(VboardCreate),
    /// Run a virtual board until Ctrl-C.
    Start {
        /// Its name.
        name: String,
        #[command(flatten)]
        place: VboardPlace,
    },
    /// List virtual boards.
    List {
        #[command(flatten)]
        place: VboardPlace,
    },
    /// Remove a virtual board and its disk.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        place: VboardPlace,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct VboardPlace {
    /// Where images and boards are kept.
    #[arg(long, default_value = ".klab/vboards")]
    pub(crate) folder: PathBuf,
    /// The agent's static binary.
    #[arg(long, env = "KLAB_AGENT")]
    pub(crate) agent: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VboardCreate {
    /// Its name.
    pub(crate) name: String,
    /// Its machine: x86_64 or riscv64.
    #[arg(long, default_value_t = Machine::X86_64)]
    pub(crate) arch: Machine,
    /// Memory in MiB.
    #[arg(long, default_value_t = 1024)]
    pub(crate) memory: u32,
    /// Number of virtual CPUs.
    #[arg(long, default_value_t = 2)]
    pub(crate) cpus: u32,
    #[command(flatten)]
    pub(crate) place: VboardPlace,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The board's machine: x86_64 or riscv64.
    #[arg(long, default_value_t = Machine::X86_64)]
    pub(crate) arch: Machine,
    /// Where everything is kept.
    #[arg(long, default_value = ".klab/demo")]
    pub(crate) folder: PathBuf,
    /// Where images and virtual boards are kept, if not there.
    #[arg(long)]
    pub(crate) vboards: Option<PathBuf>,
    /// How often each kernel is booted.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Build two kernels of Linux 6.1 instead, without and with this patch series.
    #[arg(long, value_name = "FILE")]
    pub(crate) series: Option<PathBuf>,
    /// The agent's static binary.
    #[arg(long, env = "KLAB_AGENT")]
    pub(crate) agent: Option<PathBuf>,
}
