//! A lab with two small kernels and scripts for workloads.
#![allow(dead_code, reason = "every test program uses its own part")]

use klab_testkit::{FakeBoard, Lab, SmallKernel};
use serde_json::Value;

/// What cyclictest printed on a real board.
pub(crate) const CYCLICTEST: &str = include_str!("../../../parse/tests/data/cyclictest-func.json");

pub(crate) const BASE: &str = "6.1.0-base";
pub(crate) const RT: &str = "6.1.0-rt";

/// Two trials of a cyclictest that is a script, under a load that is one.
pub(crate) const PLAN: &str = "\
name: fake-latency
about: Scripts in place of programs.
load:
  - name: noise
    command: [noise]
    lead: 10ms
workloads:
  - name: cyclictest
    command: [cyclictest, '{out}/cyclictest.json']
    trials: 2
    time-limit: 1m
    artifacts:
      - { file: cyclictest.json, format: cyclictest-json }
time-limits:
  boot: 1m
  settle: 10ms
  no-network: 1m
";

pub(crate) fn kernels() -> [SmallKernel; 2] {
    [SmallKernel::new(BASE, 0xba), SmallKernel::new(RT, 0x27)]
}

/// A lab with kernels `base` and `rt`; each package has a module of `module` bytes.
pub(crate) fn lab(module: usize) -> Lab {
    let lab = Lab::start();
    for (name, kernel) in ["base", "rt"].into_iter().zip(kernels()) {
        let package = kernel.tar_package(lab.folder(), module);
        let package = package.display().to_string();
        let told = lab.klab(&["kernel", "add", name, &package]);
        assert_eq!(told.code, 0, "{told:?}");
    }
    lab.write("plan.yaml", PLAN);
    std::fs::write(lab.folder().join("cyclictest.json"), CYCLICTEST).expect("a file");
    lab
}

/// A board that is not switched on yet; its cyclictest writes down each start in `starts`.
pub(crate) fn board(lab: &Lab, name: &str, controller: &str) -> FakeBoard {
    let board = FakeBoard::create(lab.folder(), name, controller, &kernels());
    install_workloads(lab, &board);
    board
}

/// The scripts that stand for the workloads of [`PLAN`].
pub(crate) fn install_workloads(lab: &Lab, board: &FakeBoard) {
    let result = lab.folder().join("cyclictest.json");
    let (result, folder) = (result.display(), board.path(""));
    let folder = folder.display();
    board.install(
        "cyclictest",
        &format!(
            "#!/bin/sh\ncat {folder}/root/proc/sys/kernel/osrelease >>{folder}/starts\n\
             [ ! -e {folder}/hold ] || sleep 300\ncp {result} \"$1\"\n"
        ),
    );
    board.install("noise", "#!/bin/sh\nexec sleep 300\n");
}

/// A board that is switched on and online.
pub(crate) fn online(lab: &Lab, name: &str) -> FakeBoard {
    let mut board = board(lab, name, &lab.url());
    board.switch_on();
    lab.wait_for_board(name);
    board
}

/// `klab submit` of both kernels on board `b1`, with more arguments.
pub(crate) fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "submit",
        "--variant",
        "base=base",
        "--variant",
        "rt=rt",
        "--plan",
        "plan.yaml",
        "--boards",
        "b1",
    ];
    [&fixed, more].concat()
}

/// Submits without waiting; the id of the job.
pub(crate) fn submitted(lab: &Lab, more: &[&str]) -> String {
    let job = lab.json(&submit(more));
    job["id"].as_str().expect("an id").to_owned()
}

/// The runs of a job that came to its end.
pub(crate) fn runs(lab: &Lab, job: &str) -> Vec<Value> {
    let shown = lab.json(&["job", "show", job]);
    shown["runs"].as_array().expect("runs").clone()
}

/// The parts of artifacts' names that tell runs' trials apart, sorted.
pub(crate) fn artifacts(lab: &Lab, job: &str) -> Vec<(u64, String)> {
    let list = lab.json(&["artifacts", "list", job]);
    let list = list.as_array().expect("artifacts").iter();
    let mut names: Vec<_> = list
        .map(|a| {
            let name = a["name"].as_str().expect("a name").to_owned();
            (a["trial"].as_u64().unwrap_or(0), name)
        })
        .collect();
    names.sort();
    names
}
