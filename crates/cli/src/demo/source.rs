//! The git tree of the demo's series: Debian's source of Linux 6.1 as one commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use klab_model::{GitRef, TreeName, TreeSource};
use klab_vboard::{Machine, tools::LINUX_SOURCE};

use super::Story;
use crate::args::Wish;
use crate::client::Client;
use crate::exit::CliError;
use crate::trees;
use crate::vboards::blocking;

/// What the tree is called.
const TREE: &str = "linux";
/// The tag of the only commit.
const TAG: &str = "linux-source-6.1";

/// Makes the tree, unless it was made before, and adds it.
pub(super) async fn add_tree(client: &Client, folder: &Path, story: Story) -> Result<(), CliError> {
    let folder = folder.to_owned();
    let tree = blocking(move || make(&folder, story)).await?;
    let source = TreeSource::parse(&tree.to_string_lossy()).map_err(CliError::usage)?;
    trees::add(client, TREE, source).await?;
    story.say(format!("tree {TREE}: {}", tree.display()));
    Ok(())
}

/// Which kernels the demo wants of a series: the base and all of it, small enough to be built
/// in minutes, with the tracers that the plan asks for.
pub(super) fn wish(series: &Path, machine: Machine) -> Result<Wish, CliError> {
    Ok(Wish {
        series: Some(series.to_owned()),
        tree: Some(TreeName::parse(TREE).map_err(CliError::usage)?),
        // The package moves on with Debian's updates; patches stand for a little while longer.
        base: Some(GitRef::parse(TAG).map_err(CliError::usage)?),
        config: "tinyconfig".to_owned(),
        fragments: vec![format!("virtual-{machine}"), "ftrace".to_owned()],
        // Linux 6.1 has no function tracer for preemptible riscv64 kernels.
        allow_missing: machine == Machine::Riscv64,
        ..Wish::none()
    })
}

/// The tree's folder. It gets its name only once it is whole.
fn make(folder: &Path, story: Story) -> Result<PathBuf, CliError> {
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    let tree = folder.join("linux-6.1");
    if tree.is_dir() {
        return Ok(tree);
    }
    story.say(format!(
        "unpacking {LINUX_SOURCE} into a git tree (kept for the next time)"
    ));
    let new = folder.join("linux-6.1.new");
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new)?;
    let place = new.display().to_string();
    run(
        "tar",
        &["-xf", LINUX_SOURCE, "-C", &place, "--strip-components=1"],
    )?;
    let git = |arguments: &[&str]| {
        let fixed = [
            "-C",
            &place,
            "-c",
            "user.name=klab",
            "-c",
            "user.email=klab@localhost",
        ];
        run("git", &[&fixed, arguments].concat())
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    // What a distribution leaves out by its own ignore rules belongs to the source.
    git(&["add", "--all", "--force"])?;
    git(&["commit", "--quiet", "--message", TAG])?;
    git(&["tag", TAG])?;
    fs::rename(&new, &tree).map_err(CliError::file("rename", &new))?;
    Ok(tree)
}

fn run(program: &str, arguments: &[&str]) -> Result<(), CliError> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| CliError::infrastructure(format!("cannot start {program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or("it said nothing");
    Err(CliError::infrastructure(format!(
        "{program} failed: {last}"
    )))
}
