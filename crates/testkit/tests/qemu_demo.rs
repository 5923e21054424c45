//! The demo with two real Debian kernels on a virtual board that really boots them.
//!
//! The base image is shared with the tests of klab-vboard: below the target folder, or where
//! `KLAB_VBOARD_DIR` says.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use klab_testkit::{Lab, program, repository, skip};
use serde_json::Value;

/// Far more than the demo takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(25 * 60);

/// The static agent of an architecture, or nothing where it was not built; then it is said why.
fn agent(test: &str, arch: &str) -> Option<PathBuf> {
    let target = program("klab");
    let target = target.ancestors().nth(2)?;
    let triple = match arch {
        "riscv64" => "riscv64gc-unknown-linux-gnu",
        _ => "x86_64-unknown-linux-gnu",
    };
    let agent = target.join(triple).join("agent/klab-agent");
    if !agent.is_file() {
        skip(
            test,
            "the static agent is not built: `just agent`, or ./test",
        );
        return None;
    }
    Some(agent)
}

fn boards_folder() -> PathBuf {
    let default = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("vboard");
    std::env::var_os("KLAB_VBOARD_DIR").map_or_else(default, PathBuf::from)
}

/// `klab demo` in `folder`; what it says goes into `folder/said`.
fn demo(folder: &Path, arch: &str, agent: &Path) -> Child {
    let said = std::fs::File::create(folder.join("said")).expect("a file");
    let table = std::fs::File::create(folder.join("table")).expect("a file");
    Command::new(program("klab"))
        .args(["demo", "--arch", arch, "--rounds", "1", "--folder"])
        .arg(folder.join("demo"))
        .arg("--vboards")
        .arg(boards_folder())
        .arg("--agent")
        .arg(agent)
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(table)
        .stderr(said)
        .spawn()
        .expect("klab starts")
}

fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("said")).unwrap_or_default()
}

/// Processes that have `folder` on their command line: the controller, QEMU.
fn left_running(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("a path of text");
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let commands = pids.filter_map(|pid| std::fs::read(pid.path().join("cmdline")).ok());
    commands
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .filter(|command| command.contains(folder))
        .collect()
}

/// Waits for the end; the exit code.
fn ended(demo: &mut Child, folder: &Path) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(status) = demo.try_wait().expect("a child") {
            return status.code().unwrap_or(-1);
        }
        if start.elapsed() > LIMIT {
            let _ = demo.kill();
            panic!("the demo does not end:\n{}", said(folder));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Whether the machine, not klab, lacks what a board is made of.
fn cannot_run(said: &str) -> bool {
    said.contains("could not be installed") || said.contains("is missing: install")
}

#[test]
fn qemu_demo_compares_two_real_kernels() {
    compares_two_real_kernels("qemu_demo_compares_two_real_kernels", "x86_64");
}

#[test]
fn qemu_riscv64_demo_compares_two_real_kernels() {
    compares_two_real_kernels("qemu_riscv64_demo_compares_two_real_kernels", "riscv64");
}

fn compares_two_real_kernels(test: &str, arch: &str) {
    let Some(agent) = agent(test, arch) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let mut demo = demo(folder, arch, &agent);
    let code = ended(&mut demo, folder);
    let said = said(folder);
    if code == 3 && cannot_run(&said) {
        skip(test, said.lines().last().unwrap_or_default());
        return;
    }
    assert_eq!(code, 0, "{said}");
    assert_eq!(left_running(folder), [""; 0], "the demo cleans up");
    let table = std::fs::read_to_string(folder.join("table")).expect("the table");
    assert!(table.contains("cyclictest"), "{table}");

    let lab = Lab::start_in(&folder.join("demo/controller"));
    assert_two_kernels(&lab);
    assert_samples_of_both(&lab.json(&["compare", "last"]));
}

/// Two runs, done, that were proved by two build-ids: those of the packages.
fn assert_two_kernels(lab: &Lab) {
    let shown = lab.json(&["job", "show", "last"]);
    assert_eq!(shown["job"]["state"], "done");
    // Every result is understood.
    let report = lab.json(&["compare", "last"]);
    assert_eq!(report["notes"], serde_json::json!([]), "{report}");
    let kernels = lab.json(&["kernel", "list"]);
    let ids = kernels.as_array().expect("kernels").iter();
    let ids: Vec<&str> = ids.filter_map(|k| k["build_id"].as_str()).collect();
    assert_eq!(ids.len(), 2, "{kernels}");
    assert_ne!(ids[0], ids[1]);
    let events = lab.klab(&["watch", "last"]);
    for id in ids {
        assert_eq!(id.len(), 40, "{kernels}");
        let proof = format!("proved by build-id {id}");
        assert!(events.err.contains(&proof), "{proof}: {}", events.err);
    }
}

fn assert_samples_of_both(report: &Value) {
    let boards = report["comparison"]["boards"].as_array().expect("boards");
    let metrics = boards[0]["metrics"].as_array().expect("metrics");
    let latency = metrics.iter().find(|metric| {
        let name = metric["metric"].as_str().unwrap_or_default();
        name.starts_with("cyclictest")
    });
    let rows = latency.expect("a latency")["rows"]
        .as_array()
        .expect("rows");
    let counts = rows.iter().find(|row| row["statistic"] == "n");
    let cells = counts.expect("a row")["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2, "{report}");
    for cell in cells {
        assert!(cell["value"].as_f64() >= Some(1.0), "{report}");
    }
}

#[test]
fn qemu_demo_ends_cleanly_on_ctrl_c() {
    let test = "qemu_demo_ends_cleanly_on_ctrl_c";
    let Some(agent) = agent(test, "x86_64") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let mut demo = demo(folder, "x86_64", &agent);
    let start = Instant::now();
    while !said(folder).contains("starts under") && start.elapsed() < LIMIT {
        if demo.try_wait().expect("a child").is_some() {
            let said = said(folder);
            assert!(cannot_run(&said), "{said}");
            skip(test, said.lines().last().unwrap_or_default());
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let pid = demo.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill").success());
    assert_eq!(ended(&mut demo, folder), 3, "{}", said(folder));
    assert!(said(folder).contains("interrupted"), "{}", said(folder));
    assert_eq!(left_running(folder), [""; 0], "nothing is left");
}
