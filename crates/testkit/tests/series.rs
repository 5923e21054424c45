//! From a patch series to a comparison: real git, make and compiler, a kernel tree in small.
#![allow(missing_docs)]

mod support;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use klab_testkit::{BuilderProcess, FakeBoard, Lab, SMALL_RELEASE, SmallKernel, SmallTree, until};
use serde_json::Value;

/// A lab with the small tree, and a series of two patches on it.
struct Bench {
    lab: Lab,
    tree: SmallTree,
    series: PathBuf,
}

const FIRST: &str = "int madvise_cold(int n)\n{\n\treturn n + 1;\n}\n";

impl Bench {
    fn new(second: &str) -> Self {
        let lab = Lab::start();
        let tree = SmallTree::create(lab.folder());
        tree.git(&["checkout", "--quiet", "-b", "topic"]);
        tree.commit("mm: count one more", &[("mm/madvise.c", FIRST)]);
        tree.commit("kernel: wake up earlier", &[("kernel/sched.c", second)]);
        let series = lab.folder().join("series.mbox");
        let mails = tree.git(&["format-patch", "--stdout", "--cover-letter", "v1..topic"]);
        fs::write(&series, mails).expect("a mailbox");
        tree.git(&["checkout", "--quiet", "main"]);
        let path = tree.path().display().to_string();
        let told = lab.klab(&["tree", "add", "small", &path]);
        assert_eq!(told.code, 0, "{told:?}");
        Self { lab, tree, series }
    }

    fn builder(&self, name: &str) -> BuilderProcess {
        BuilderProcess::start(self.lab.folder(), name, &self.lab.url())
    }

    /// `klab COMMAND SERIES --tree small --config tinyconfig ...`.
    fn command<'a>(&'a self, command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        let series = self.series.to_str().expect("a path of text");
        let fixed = [series, "--tree", "small", "--config", "tinyconfig"];
        [command, &fixed, more].concat()
    }

    fn build(&self, more: &[&str]) -> klab_testkit::Told {
        self.lab.klab(&self.command(&["build", "start"], more))
    }

    fn last(&self) -> Value {
        self.lab.json(&["build", "show", "last"])
    }
}

const GOOD: &str = "int sched(void)\n{\n\treturn 2;\n}\n";

fn states(build: &Value) -> Vec<(&str, &str)> {
    let targets = build["targets"].as_array().expect("targets");
    targets
        .iter()
        .map(|target| {
            let text = |name: &str| target[name].as_str().unwrap_or_default();
            (text("variant"), text("state"))
        })
        .collect()
}

#[test]
fn process_a_series_becomes_kernels_once() {
    let bench = Bench::new(GOOD);
    let _builder = bench.builder("w1");
    let told = bench.build(&["--variants", "each", "--wait"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.err.contains("as the series expects"),
        "the base was found: {told:?}"
    );
    let build = bench.last();
    assert_eq!(
        states(&build),
        [("base", "built"), ("+1", "built"), ("+1..2", "built")]
    );
    let base = bench.tree.git(&["rev-parse", "v1^{commit}"]);
    assert_eq!(build["base_commit"], base.trim());
    let kernels = bench.lab.json(&["kernel", "list"]);
    let kernels = kernels.as_array().expect("kernels");
    assert_eq!(kernels.len(), 3);
    for kernel in kernels {
        assert_eq!(kernel["release"], SMALL_RELEASE, "{kernel}");
    }
    let log = bench.lab.klab(&["build", "log", "last"]);
    assert!(log.out.contains("CC      mm/madvise.o"), "{log:?}");

    // The same once more, also from the tree itself: nothing is compiled.
    let told = bench.build(&["--wait"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(
        states(&bench.last()),
        [("base", "cached"), ("v1", "cached")]
    );
    let range = ["build", "start", "small:v1..topic", "--tree", "small"];
    let told = bench
        .lab
        .klab(&[&range[..], &["--config", "tinyconfig", "--wait"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(
        states(&bench.last()),
        [("base", "cached"), ("v1", "cached")]
    );
    // A name that became two is not guessed at.
    bench.tree.git(&["branch", "v1", "topic"]);
    let told = bench.build(&["--base", "v1", "--wait"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.err.contains("name one of refs/heads/v1"), "{told:?}");
    assert_eq!(bench.build(&["--base", "tags/v1", "--wait"]).code, 0);
    // The user's own tree is as it was.
    assert_eq!(bench.tree.git(&["status", "--porcelain"]), "");
    assert_eq!(bench.tree.git(&["branch", "--show-current"]).trim(), "main");
}

#[test]
fn process_what_does_not_compile_ends_its_variant_with_the_first_error() {
    let bench = Bench::new("int sched(void)\n{\n\treturn nothing;\n}\n");
    let _builder = bench.builder("w1");
    let told = bench.build(&["--variants", "base,+1,all", "--wait"]);
    assert_eq!(told.code, 1, "{told:?}");
    let build = bench.last();
    assert_eq!(
        states(&build),
        [("base", "built"), ("+1", "built"), ("v1", "failed")]
    );
    let reason = build["targets"][2]["failure"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("kernel/sched.c:3"), "{reason}");
    assert!(told.err.contains("nothing"), "{told:?}");
}

#[test]
fn process_a_patch_that_does_not_apply_is_told_in_the_words_of_git() {
    let bench = Bench::new(GOOD);
    bench
        .tree
        .commit("sched: other", &[("kernel/sched.c", "int other;\n")]);
    let _builder = bench.builder("w1");
    let told = bench.build(&["--variants", "each", "--base", "main", "--wait"]);
    assert_eq!(told.code, 1, "{told:?}");
    let build = bench.last();
    assert_eq!(
        states(&build),
        [("base", "built"), ("+1", "built"), ("+1..2", "failed")]
    );
    let reason = build["targets"][2]["failure"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("kernel/sched.c"), "{reason}");

    let told = bench.build(&["--base", "v9.99", "--wait"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.err.contains("v9.99"), "{told:?}");
    assert_eq!(bench.last()["attempt"], 1, "asked for once is enough");
}

#[test]
fn process_a_job_of_a_series_waits_for_its_kernels() {
    let bench = Bench::new(GOOD);
    let lab = &bench.lab;
    lab.write("plan.yaml", support::PLAN);
    fs::write(lab.folder().join("cyclictest.json"), support::CYCLICTEST).expect("a file");
    let kernels = [SmallKernel::new(SMALL_RELEASE, 7)];
    let mut board = FakeBoard::create(lab.folder(), "b1", &lab.url(), &kernels);
    support::install_workloads(lab, &board);
    board.switch_on();
    lab.wait_for_board("b1");
    let job = ["--plan", "plan.yaml", "--boards", "b1", "--rounds", "1"];
    let told = lab.klab(&bench.command(&["submit"], &job));
    assert_eq!(told.code, 0, "{told:?}");
    let id = told.out.trim();
    assert_eq!(lab.json(&["job", "show", id])["job"]["state"], "queued");
    let _builder = bench.builder("w1");
    let told = lab.klab(&["watch", id]);
    assert_eq!(told.code, 0, "{told:?}");
    let built = told.err.find("v1 built").expect("the build is told");
    let began = told
        .err
        .find("round 1 base: assigned")
        .expect("the runs are told");
    assert!(built < began, "{told:?}");
    let table = lab.klab(&["compare", id]);
    for name in ["base", "v1"] {
        assert!(table.out.contains(name), "{table:?}");
    }
}

#[test]
fn process_a_build_can_begin_with_the_configuration_of_a_board() {
    let bench = Bench::new(GOOD);
    let lab = &bench.lab;
    let mut board = FakeBoard::create(lab.folder(), "b1", &lab.url(), &[]);
    board.switch_on();
    lab.wait_for_board("b1");
    let _builder = bench.builder("w1");
    let series = bench.series.to_str().expect("a path of text");
    let build = ["build", "start", series, "--tree", "small", "--wait"];
    let of_board = [&build[..], &["--config", "board:b1"]].concat();
    let told = lab.klab(&of_board);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("/proc/config.gz"), "{told:?}");

    // It is told at the next connection.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(b"CONFIG_SMP=y\nCONFIG_FTRACE=y\n")
        .expect("memory");
    let packed = packed.finish().expect("memory");
    fs::write(board.path("root/proc/config.gz"), packed).expect("a file");
    assert!(board.kill_agent(), "it ran");
    until("the configuration is there", || {
        lab.klab(&of_board).code == 0
    });
    assert_eq!(states(&bench.last()), [("base", "built"), ("v1", "built")]);
}

#[test]
fn process_a_submission_that_is_refused_builds_nothing() {
    let bench = Bench::new(GOOD);
    bench.lab.write("plan.yaml", support::PLAN);
    let job = [
        "--plan",
        "plan.yaml",
        "--boards",
        "nowhere",
        "--rounds",
        "1",
        "--arch",
        "x86_64",
    ];
    let told = bench.lab.klab(&bench.command(&["submit"], &job));
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("there is no board nowhere"), "{told:?}");
    assert_eq!(bench.last()["state"], "cancelled");
}

/// Makes every file of the tree slow to compile.
fn slow(bench: &Bench) {
    bench.tree.commit("slow", &[("slow", "")]);
}

/// Pids of programs that run below a folder.
fn running_below(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.to_str().expect("a path of text");
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    pids.filter(|pid| {
        let command = fs::read(pid.path().join("cmdline")).unwrap_or_default();
        let cwd = fs::read_link(pid.path().join("cwd")).unwrap_or_default();
        let names = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(folder);
        names(&command) && cwd.to_string_lossy().contains(folder)
    })
    .map(|pid| pid.file_name().to_string_lossy().into_owned())
    .collect()
}

#[test]
fn process_a_cancelled_build_leaves_nothing_running() {
    let bench = Bench::new(GOOD);
    slow(&bench);
    let builder = bench.builder("w1");
    let told = bench.build(&["--base", "main"]);
    assert_eq!(told.code, 0, "{told:?}");
    until("make runs", || {
        !running_below(&builder.work("work")).is_empty()
    });
    let told = bench.lab.klab(&["build", "cancel", "last"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(bench.lab.klab(&["build", "watch", "last"]).code, 3);
    until("nothing runs", || {
        running_below(&builder.work("work")).is_empty()
    });
    assert_eq!(bench.last()["state"], "cancelled");
}

#[test]
fn process_a_builder_that_is_killed_goes_on_where_it_was() {
    let bench = Bench::new(GOOD);
    slow(&bench);
    let mut builder = bench.builder("w1");
    let told = bench.build(&["--base", "main"]);
    assert_eq!(told.code, 0, "{told:?}");
    until("make runs", || {
        !running_below(&builder.work("work")).is_empty()
    });
    builder.kill();
    until("it is given back", || bench.last()["state"] == "queued");
    // The base is looked up again: by now it is one that compiles at once.
    bench.tree.git(&["rm", "--quiet", "slow"]);
    bench.tree.commit("fast", &[]);
    builder.start_again();
    assert_eq!(bench.lab.klab(&["build", "watch", "last"]).code, 0);
    assert_eq!(bench.last()["attempt"], 2);
}
