//! `klab vboard`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use klab_report::Table;
use klab_vboard::{AgentFiles, BoardSpec, CMDLINE, Machine, Recipe, VirtualBoard, Workdir, tools};
use serde_json::json;

use crate::args::{Global, VboardCommand, VboardCreate, VboardPlace};
use crate::exit::{CliError, ExitCode};
use crate::{console, output};

pub(crate) async fn run(global: &Global, command: VboardCommand) -> Result<ExitCode, CliError> {
    match command {
        VboardCommand::Create(create) => {
            let global = global.clone();
            blocking(move || make(&global, &create)).await?;
        }
        VboardCommand::Start { name, place } => start(global, &name, &place).await?,
        VboardCommand::List { place } => list(global, &place)?,
        VboardCommand::Remove { name, place } => Workdir::new(&place.folder)?.remove(&name)?,
    }
    Ok(ExitCode::Done)
}

/// Runs slow, blocking work beside the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(CliError::infrastructure)?
}

/// The static agent for a machine: given, or where the build puts it.
pub(crate) fn agent_binary(machine: Machine, given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(path) = given {
        if path.is_file() {
            return Ok(path.to_owned());
        }
        let path = path.display();
        return Err(CliError::usage(format!(
            "--agent {path}: there is no such file"
        )));
    }
    let triple = match machine {
        Machine::X86_64 => "x86_64-unknown-linux-gnu",
        Machine::Riscv64 => "riscv64gc-unknown-linux-gnu",
    };
    let names = [
        format!("klab-agent-{machine}"),
        format!("{triple}/agent/klab-agent"),
    ];
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(3);
    let mut places = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
    places.find(|path| path.is_file()).ok_or_else(|| {
        CliError::usage(format!(
            "the static agent for {machine} is missing: build it with `just agent {machine}`, or \
             give --agent"
        ))
    })
}

/// What a virtual board's agent is told.
pub(crate) fn agent_config(board: &str, machine: Machine, port: u16) -> String {
    let method = machine.boot_method();
    format!(
        "board: {board}\n\
         # QEMU's user network: the host's loopback.\n\
         controller: http://10.0.2.2:{port}\n\
         state: /var/lib/klab\n\
         tags: {{ kind: virtual }}\n\
         boot:\n\
         \x20 method: {method}\n\
         \x20 cmdline: \"{CMDLINE}\"\n\
         \x20 mkinitrd: [/usr/lib/klab/mkinitrd]\n"
    )
}

fn make(global: &Global, create: &VboardCreate) -> Result<(), CliError> {
    let machine = create.arch;
    tools::install_missing(machine, |text| {
        if !global.quiet {
            output::say(text);
        }
    })?;
    let agent = agent_binary(machine, create.place.agent.as_deref())?;
    let work = Workdir::new(&create.place.folder)?;
    if !global.quiet {
        output::say("building the base image, unless it is there already");
    }
    let image = work.image(&Recipe::of(machine))?;
    let mut spec = BoardSpec::new(&create.name)?;
    spec.memory_mib = create.memory;
    spec.cpus = create.cpus;
    let config = agent_config(&create.name, machine, port(&global.controller)?);
    let board = work.create(&spec, &image, &AgentFiles::new(agent, config))?;
    if global.json {
        output::json(&json!({ "name": create.name, "folder": board.path().display().to_string() }))
    } else {
        let folder = board.path().display();
        output::line(format!("{}: made in {folder}", create.name))
    }
}

/// The port of a controller's address on this machine.
fn port(address: &str) -> Result<u16, CliError> {
    let port = address
        .rsplit(':')
        .next()
        .map(|text| text.trim_end_matches('/').parse());
    match port {
        Some(Ok(port)) => Ok(port),
        _ => Err(CliError::usage(format!(
            "--controller {address}: the port is missing"
        ))),
    }
}

async fn start(global: &Global, name: &str, place: &VboardPlace) -> Result<(), CliError> {
    let port = port(&global.controller)?;
    let (folder, agent) = (place.folder.clone(), place.agent.clone());
    let board_name = name.to_owned();
    let board = blocking(move || {
        let work = Workdir::new(&folder)?;
        let board = work.open(&board_name)?;
        let config = agent_config(&board_name, board.machine(), port);
        let agent = agent_binary(board.machine(), agent.as_deref())?;
        // The agent follows the program it was made with and the controller's address.
        board.set_agent(&AgentFiles::new(agent, config))?;
        let image = work.image(&Recipe::of(board.machine()))?;
        Ok(board.start(&work.accel(&image)?)?)
    })
    .await?;
    if !global.quiet {
        let log = board.dir().console_log();
        output::say(format!("{name}: running, console in {}", log.display()));
    }
    let follower = board.follow_console();
    let console = console::stream(global.controller.clone(), name.to_owned(), follower);
    let alive = async {
        while board.is_alive() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        () = console => {}
        () = alive => {
            let log = board.dir().console_log();
            let log = log.display();
            return Err(CliError::infrastructure(format!("{name}: QEMU ended; see {log}")));
        }
        _ = tokio::signal::ctrl_c() => {}
    }
    switch_off(board).await
}

/// Switches a board off; that QEMU has ended already is no error.
pub(crate) async fn switch_off(board: VirtualBoard) -> Result<(), CliError> {
    blocking(move || {
        let _ = board.stop();
        Ok(())
    })
    .await
}

fn list(global: &Global, place: &VboardPlace) -> Result<(), CliError> {
    let work = Workdir::new(&place.folder)?;
    let mut table = Table::new(["NAME", "ARCH", "STATE", "MEMORY", "CPUS"]);
    let mut boards = Vec::new();
    for name in work.list()? {
        let board = work.open(name.as_str())?;
        let state = if board.is_running()? {
            "running"
        } else {
            "stopped"
        };
        let (memory, cpus) = (board.spec().memory_mib, board.spec().cpus);
        let machine = board.machine().as_str();
        boards.push(json!({
            "name": name.as_str(),
            "arch": machine,
            "state": state,
            "memory_mib": memory,
            "cpus": cpus,
        }));
        table.row([
            name.as_str(),
            machine,
            state,
            &format!("{memory} MiB"),
            &cpus.to_string(),
        ]);
    }
    if global.json {
        output::json(&boards.into())
    } else {
        output::line(table.to_string())
    }
}
