//! `klab demo`: two real kernels on a virtual board, from nothing. They come from Debian, or
//! from a patch series: then [`source`] makes the tree, and a builder the kernels.

mod source;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use klab_model::{BoardName, BoardSelector, KernelName, VariantName};
use klab_vboard::{AgentFiles, BoardSpec, Machine, Recipe, VirtualBoard, Workdir, tools};

use crate::args::{Demo, Format, Global, Submit, Wish};
use crate::client::Client;
use crate::exit::{CliError, ExitCode};
use crate::processes::{Builder, Controller};
use crate::vboards::{agent_binary, agent_config, blocking, switch_off};
use crate::{artifacts, boards, console, jobs, kernels, output, submit};

const PLAN: &str = "rt-latency-quick";

/// A kernel of Debian that the demo compares.
struct Packaged {
    variant: &'static str,
    kernel: &'static str,
    package: &'static str,
    suite: &'static str,
}

/// The two kernels of Debian for a machine.
const fn packaged(machine: Machine) -> [Packaged; 2] {
    match machine {
        Machine::X86_64 => [
            Packaged {
                variant: "base",
                kernel: "debian-cloud",
                package: "linux-image-cloud-amd64",
                suite: "bookworm",
            },
            Packaged {
                variant: "rt",
                kernel: "debian-rt",
                package: "linux-image-rt-amd64",
                suite: "bookworm",
            },
        ],
        Machine::Riscv64 => [
            Packaged {
                variant: "base",
                kernel: "debian-trixie",
                package: "linux-image-riscv64",
                suite: "trixie",
            },
            Packaged {
                variant: "forky",
                kernel: "debian-forky",
                package: "linux-image-riscv64",
                suite: "forky",
            },
        ],
    }
}

/// The name of the demo's board.
const fn board_of(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "vb1",
        Machine::Riscv64 => "rv1",
    }
}

/// An emulated board on a busy machine may take minutes to come up.
const BOARD_LIMIT: Duration = Duration::from_secs(600);

/// Says what the demo does, with the time since its start.
#[derive(Clone, Copy)]
struct Story {
    start: Instant,
    quiet: bool,
}

impl Story {
    fn say(self, text: impl AsRef<str>) {
        if self.quiet {
            return;
        }
        let seconds = self.start.elapsed().as_secs();
        output::say(format!(
            "[{:>2}:{:02}] {}",
            seconds / 60,
            seconds % 60,
            text.as_ref()
        ));
    }
}

pub(crate) async fn run(global: &Global, demo: Demo) -> Result<ExitCode, CliError> {
    let story = Story {
        start: Instant::now(),
        quiet: global.quiet,
    };
    let machine = demo.arch;
    let agent = agent_binary(machine, demo.agent.as_deref())?;
    let builds = demo.series.is_some();
    blocking(move || {
        tools::install_missing(machine, |text| story.say(text))?;
        if builds {
            tools::install_for_builds(machine, |text| story.say(text))?;
        }
        Ok(())
    })
    .await?;
    let controller = Controller::start(&demo.folder.join("controller")).await?;
    story.say(format!("controller listens on {}", controller.address()));
    let global = Global {
        controller: format!("http://{}", controller.address()),
        ..global.clone()
    };
    let ended = tokio::select! {
        ended = with_controller(&global, &demo, agent, story) => ended,
        _ = tokio::signal::ctrl_c() => {
            story.say("interrupted: stopping the board and the controller");
            Err(CliError::infrastructure("interrupted; the next start goes on with what is there"))
        }
    };
    controller.stop().await;
    ended
}

async fn with_controller(
    global: &Global,
    demo: &Demo,
    agent: PathBuf,
    story: Story,
) -> Result<ExitCode, CliError> {
    let Some(series) = demo.series.clone() else {
        return with_board(global, demo, agent, story).await;
    };
    let folder = demo.folder.join("builder");
    let mut builder = Builder::start(&agent, &folder, &global.controller)?;
    story.say(format!("a builder works in {}", folder.display()));
    let ended = tokio::select! {
        ended = async {
            source::add_tree(&Client::connect(global).await?, &demo.folder, story).await?;
            story.say(format!("series {}", series.display()));
            with_board(global, demo, agent, story).await
        } => ended,
        () = builder.ended() => Err(CliError::infrastructure(format!(
            "the builder ended by itself; see {}",
            folder.join("builder.log").display()
        ))),
    };
    builder.stop().await;
    ended
}

async fn with_board(
    global: &Global,
    demo: &Demo,
    agent: PathBuf,
    story: Story,
) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    let port = global
        .controller
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| CliError::infrastructure("the controller has no port"))?;
    let folder = demo.vboards.clone();
    let folder = folder.unwrap_or_else(|| demo.folder.join("vboards"));
    let board = start_board(demo.arch, folder.clone(), agent, port, story);
    let kernels = async {
        match &demo.series {
            None => add_kernels(&client, demo.arch, &folder, story).await,
            Some(_) => Ok(()),
        }
    };
    let (board, ()) = tokio::try_join!(board, kernels)?;
    // Dropping the board switches it off, also when this future is dropped by Ctrl-C.
    let follower = board.follow_console();
    let console = console::stream(
        global.controller.clone(),
        board_of(demo.arch).to_owned(),
        follower,
    );
    tokio::select! {
        ended = compare(global, &client, demo, story) => {
            switch_off(board).await?;
            ended
        }
        () = console => Err(CliError::infrastructure("the console ended")),
        () = until_dead(&board) => Err(CliError::infrastructure(format!(
            "QEMU ended by itself; see {}",
            board.dir().console_log().display()
        ))),
    }
}

async fn until_dead(board: &VirtualBoard) {
    while board.is_alive() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn start_board(
    machine: Machine,
    folder: PathBuf,
    agent: PathBuf,
    port: u16,
    story: Story,
) -> Result<VirtualBoard, CliError> {
    blocking(move || {
        let name = board_of(machine);
        let work = Workdir::new(&folder)?;
        story.say("base image: Debian packages into a disk (kept for the next time)");
        let image = work.image(&Recipe::of(machine))?;
        let files = AgentFiles::new(agent, agent_config(name, machine, port));
        let known = work.list()?.iter().any(|known| known.as_str() == name);
        let board = match known.then(|| work.open(name)).transpose()? {
            Some(board) if board.image_digest() == image.digest() => {
                board.set_agent(&files)?;
                board
            }
            stale => {
                if stale.is_some() {
                    work.remove(name)?;
                }
                work.create(&BoardSpec::new(name)?, &image, &files)?
            }
        };
        let accel = work.accel(&image)?;
        let running = board.start(&accel)?;
        let log = board.console_log();
        story.say(format!(
            "board {name} starts under {} ({}); console in {}",
            accel.kind,
            accel.reason,
            log.display()
        ));
        Ok(running)
    })
    .await
}

async fn add_kernels(
    client: &Client,
    machine: Machine,
    folder: &Path,
    story: Story,
) -> Result<(), CliError> {
    for Packaged {
        kernel,
        package,
        suite,
        ..
    } in packaged(machine)
    {
        let (folder, kernel_name) = (folder.to_owned(), KernelName::parse(kernel));
        let kernel_name = kernel_name.map_err(CliError::usage)?;
        let fetch = move || Ok(Workdir::new(&folder)?.kernel(machine, package, suite)?);
        let deb = blocking(fetch).await?;
        let kernel = add_once(client, kernel_name, deb).await?;
        story.say(format!("kernel {}", kernels::describe(&kernel)));
    }
    Ok(())
}

/// Adds a kernel unless this very file was added before.
async fn add_once(
    client: &Client,
    name: KernelName,
    deb: PathBuf,
) -> Result<klab_proto::v1::Kernel, CliError> {
    let request = klab_proto::v1::GetKernelRequest {
        name: name.to_string(),
    };
    let known = client.kernels().get_kernel(request).await.ok();
    let release_in_name = |release: &str| {
        deb.file_name()
            .is_some_and(|file| file.to_string_lossy().contains(release))
    };
    match known.and_then(|response| response.into_inner().kernel) {
        Some(kernel) if release_in_name(&kernel.release) => Ok(kernel),
        _ => kernels::add(client, name, deb, None).await,
    }
}

async fn wait_for_board(client: &Client, name: &str) -> Result<(), CliError> {
    let deadline = Instant::now() + BOARD_LIMIT;
    while Instant::now() < deadline {
        let boards = boards::all(client).await?;
        if boards
            .iter()
            .any(|board| board.name == name && board.online)
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(CliError::infrastructure(format!(
        "board {name} did not come up; see its console"
    )))
}

async fn compare(
    global: &Global,
    client: &Client,
    demo: &Demo,
    story: Story,
) -> Result<ExitCode, CliError> {
    let name = board_of(demo.arch);
    wait_for_board(client, name).await?;
    story.say(format!("board {name} is online"));
    let plan = submit::plan_source(PLAN)?;
    let (job, builds) = submit::create(client, order(demo)?, plan).await?;
    story.say(format!(
        "job {}: {} of plan {PLAN}",
        job.id,
        output::runs(job.runs_total)
    ));
    let code = submit::follow(global, &job, &builds).await?;
    let table = jobs::report(client, &job.id, Format::Text).await?;
    let report_path = demo.folder.join("report.txt");
    std::fs::write(&report_path, table).map_err(CliError::file("write", &report_path))?;
    jobs::print_report(global, client, &job.id, Format::Text).await?;
    let folder = demo.folder.join("artifacts");
    let paths = artifacts::fetch_all(client, &job.id, &folder).await?;
    story.say(format!("{} artifacts in {}", paths.len(), folder.display()));
    story.say(format!("the table is in {}", report_path.display()));
    Ok(code)
}

/// The submission: two packages of Debian, or the base and the whole of a series.
fn order(demo: &Demo) -> Result<Submit, CliError> {
    let bad = |error: klab_model::InvalidText| CliError::usage(error);
    let mut kernels = Vec::new();
    for Packaged {
        variant, kernel, ..
    } in packaged(demo.arch)
    {
        let variant = VariantName::parse(variant).map_err(bad)?;
        kernels.push((variant, vec![KernelName::parse(kernel).map_err(bad)?]));
    }
    let wish = match &demo.series {
        None => Wish::none(),
        Some(series) => {
            kernels.clear();
            source::wish(series, demo.arch)?
        }
    };
    Ok(Submit {
        wish,
        kernels,
        arch: None,
        plan: PLAN.to_owned(),
        boards: BoardSelector::Named(vec![BoardName::parse(board_of(demo.arch)).map_err(bad)?]),
        rounds: demo.rounds,
        owner: None,
        wait: true,
    })
}
