//! Builds of the small tree: a real git, make and compiler, and a kernel in seconds.
#![allow(missing_docs)]

mod support;

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use klab_build::{
    BaseConfig, BuildError, BuildEvent, BuildOptions, BuildRequest, Builder, Cancel, Complaint,
    ConfigRequest, Fragment, LaneName, Stage, Toolchain, TotalFrom, Watcher,
};
use klab_kernel::{Limits, unpack_canonical, verify_canonical};
use klab_model::{Arch, FailureClass};
use support::small::{Bench, RELEASE, config, modules};

/// The bench, or the end of the test.
macro_rules! bench {
    ($name:literal) => {
        match Bench::new($name) {
            Some(bench) => bench,
            None => return,
        }
    };
}

const MADVISE: &str =
    "#include <linux/mm.h>\n\nint madvise(int pages)\n{\n\treturn BATCH + pages;\n}\n";

#[test]
fn process_a_commit_becomes_a_canonical_package() {
    let mut bench = bench!("process_a_commit_becomes_a_canonical_package");
    let built = bench.build("HEAD").expect("builds");
    assert_eq!(built.offer.release, RELEASE);
    assert_eq!(built.offer.arch, Arch::X86_64);
    assert!(built.offer.build_id.is_some());
    verify_canonical(
        File::open(&built.package).expect("package"),
        &Limits::default(),
    )
    .expect("a canonical package");
    let out = bench.desk.path().join("out");
    let file = File::open(&built.package).expect("package");
    let unpacked = unpack_canonical(file, &out, &Limits::default()).expect("unpacks");
    assert_eq!(unpacked.digest, built.offer.digest);
    assert_eq!(unpacked.manifest.modules, 1);
    let config = fs::read_to_string(out.join("boot/config")).expect("configuration");
    assert!(config.contains("CONFIG_MODULES=y\n"), "{config}");
    let loop_ko = format!("lib/modules/{RELEASE}/kernel/drivers/loop.ko");
    for name in ["boot/vmlinuz", "boot/System.map", &loop_ko] {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert!(
        built.tools().0["gcc"].starts_with("gcc "),
        "{:?}",
        built.tools()
    );
    assert!(built.key.to_text().contains("KBUILD_BUILD_USER=klab"));
    let stages = [
        Stage::CheckingOut,
        Stage::Configuring,
        Stage::Building,
        Stage::Packing,
    ];
    let told = bench.desk.events.iter().filter_map(|event| match event {
        BuildEvent::Stage(stage) => Some(*stage),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), stages);
    assert!(bench.read_log().contains("  CC      mm/madvise.o\n"));
}

#[test]
fn process_a_variant_costs_what_its_patches_touch() {
    let mut bench = bench!("process_a_variant_costs_what_its_patches_touch");
    let base = bench.build("HEAD").expect("builds");
    assert_eq!(base.steps, 8, "{}", bench.read_log());
    let first = bench.progress();
    assert_eq!(first.last().expect("steps").done, 8);
    assert!(
        first
            .iter()
            .all(|p| p.total_from == TotalFrom::Configuration)
    );
    assert!(first.iter().all(|p| p.total >= p.done));

    bench.commit(&[("mm/madvise.c", MADVISE)]);
    let one = bench.build("HEAD").expect("builds");
    let files: Vec<String> = bench.progress().into_iter().map(|p| p.current).collect();
    assert_eq!(
        files,
        ["mm/madvise.o", "System.map", "arch/x86/boot/bzImage"]
    );
    assert_eq!(one.steps, 3);
    assert_ne!(one.offer.digest, base.offer.digest);
    assert!(
        bench
            .progress()
            .iter()
            .all(|p| p.total_from == TotalFrom::Dependencies)
    );

    bench.commit(&[("include/linux/mm.h", "#define BATCH 64\n")]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 4);
    bench.commit(&[("README", "no source\n")]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 0);
}

#[test]
fn process_the_way_to_a_variant_does_not_show_in_it() {
    let mut bench = bench!("process_the_way_to_a_variant_does_not_show_in_it");
    let base = bench.build("HEAD").expect("builds");
    bench.commit(&[("mm/madvise.c", MADVISE), ("localversion", "-stray\n")]);
    bench.build("HEAD").expect("builds");
    fs::remove_dir_all(bench.desk.klab().join("kernels")).expect("removed");
    // Files that lie about in the work tree are none of the commit.
    let src = bench.desk.klab().join("work/linux/lane-main/src");
    fs::write(src.join("stray"), "x").expect("write");
    fs::write(src.join("mm/vmscan.c"), "#error changed by hand\n").expect("write");
    let again = bench.build("HEAD~1").expect("builds");
    assert!(!again.cached && !src.join("stray").exists());
    assert_eq!(again.offer, base.offer);
}

#[test]
fn process_two_folders_and_lanes_give_the_same_package() {
    let mut bench = bench!("process_two_folders_and_lanes_give_the_same_package");
    let first = bench.build("HEAD").expect("builds");
    let mut other = bench!("process_two_folders_and_lanes_give_the_same_package");
    other.options.lane = LaneName::parse("second").expect("a name");
    let second = other.build("HEAD").expect("builds");
    assert_ne!(first.package, second.package);
    assert!(!second.cached);
    assert_eq!(first.key, second.key);
    assert_eq!(first.offer, second.offer);
}

#[test]
fn process_the_same_kernel_is_built_once() {
    let mut bench = bench!("process_the_same_kernel_is_built_once");
    let first = bench.build("HEAD").expect("builds");
    let second = bench.build("HEAD").expect("is there");
    assert!(!first.cached && second.cached && second.steps == 0);
    assert_eq!(
        (&first.package, &first.offer),
        (&second.package, &second.offer)
    );
    // Another commit with the same files is the same kernel.
    bench
        .desk
        .git(&["commit", "--quiet", "--amend", "--message=other words"]);
    let tree = bench.tree.clone();
    bench.desk.watched(|w| tree.fetch(w)).expect("fetches");
    assert!(bench.build("HEAD").expect("is there").cached);
    // Another configuration is another kernel.
    let smp = config("CONFIG_MODULES=y\nCONFIG_SMP=y\n");
    assert!(!bench.build_with("HEAD", &smp).expect("builds").cached);
}

#[test]
fn process_two_that_want_the_same_share_one_build() {
    let bench = bench!("process_two_that_want_the_same_share_one_build");
    let (klab, tree) = (bench.desk.klab(), &bench.tree);
    let build = |lane: &str| {
        let options = BuildOptions {
            lane: LaneName::parse(lane).expect("a name"),
            ..bench.options.clone()
        };
        let builder = Builder::open(&klab, options).expect("opens");
        let cancel = Cancel::new().expect("token");
        let mut events = |_| {};
        let mut watcher = Watcher::new(&cancel, &mut events);
        let commit = tree.resolve("HEAD", &watcher).expect("a commit");
        let request = BuildRequest {
            tree,
            commit: &commit,
            config: &modules(),
            arch: Arch::X86_64,
            log: &klab.join(format!("log-{lane}")),
        };
        builder.build(&request, &mut watcher).expect("builds")
    };
    for lanes in [["one", "two"], ["three", "three"]] {
        let _ = fs::remove_dir_all(klab.join("kernels"));
        let build = &build;
        let built = std::thread::scope(|scope| {
            let threads = lanes.map(|lane| scope.spawn(move || build(lane)));
            threads.map(|thread| thread.join().expect("thread"))
        });
        assert_eq!(
            built.iter().filter(|one| one.cached).count(),
            1,
            "{lanes:?}"
        );
        assert_eq!(built[0].offer, built[1].offer);
    }
}

/// Processes whose work folder is below `folder`.
fn processes_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("proc").flatten();
    entries
        .filter(|entry| {
            let cwd = fs::read_link(entry.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn process_cancelling_ends_the_whole_build_and_the_next_one_is_fine() {
    let mut bench = bench!("process_cancelling_ends_the_whole_build_and_the_next_one_is_fine");
    bench.commit(&[("slow", "")]);
    let cancel = bench.desk.cancel.clone();
    let log = bench.log();
    let canceller = std::thread::spawn(move || {
        let begun = || fs::read_to_string(&log).is_ok_and(|text| text.contains("  CC "));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !begun() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        cancel.cancel();
        Instant::now()
    });
    let error = bench.build("HEAD").expect_err("is cancelled");
    let since = canceller.join().expect("thread").elapsed();
    assert!(matches!(error, BuildError::Cancelled), "{}", error.chain());
    assert!(since < Duration::from_secs(10), "took {since:?}");
    assert_eq!(processes_in(&bench.desk.klab()), [""; 0]);
    bench.desk.cancel = Cancel::new().expect("token");
    bench.build("HEAD~1").expect("builds");
}

#[test]
fn process_a_build_whose_starter_died_is_ended_and_not_waited_for() {
    let mut bench = bench!("process_a_build_whose_starter_died_is_ended_and_not_waited_for");
    bench.build("HEAD").expect("builds");
    let lane = bench.desk.klab().join("work/linux/lane-main");
    let lock = File::options()
        .append(true)
        .open(lane.join("lock"))
        .expect("lock");
    lock.lock().expect("locks");
    let mut orphan = Command::new("sleep")
        .arg("300")
        .process_group(0)
        .stdin(Stdio::from(lock))
        .spawn()
        .expect("starts");
    let mut gone = Command::new("true").spawn().expect("starts");
    let stat = fs::read_to_string(format!("/proc/{}/stat", orphan.id())).expect("stat");
    let start = stat
        .rsplit_once(") ")
        .expect("stat")
        .1
        .split(' ')
        .nth(19)
        .expect("start");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot id");
    let owner = format!(
        r#"{{"boot":"{}","owner":{{"pid":{},"start":1}},"group":{{"pid":{},"start":{start}}}}}"#,
        boot.trim(),
        gone.id(),
        orphan.id()
    );
    gone.wait().expect("ends");
    fs::write(lane.join("owner.json"), owner).expect("write");
    let waiter = std::thread::spawn(move || orphan.wait().expect("ends"));
    bench.commit(&[("mm/madvise.c", MADVISE)]);
    let start = Instant::now();
    bench.build("HEAD").expect("builds");
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(!waiter.join().expect("thread").success());
    let said = |event: &BuildEvent| matches!(event, BuildEvent::Note(n) if n.contains("ended 1"));
    assert!(
        bench.desk.events.iter().any(said),
        "{:?}",
        bench.desk.events
    );
}

#[test]
fn process_the_first_error_is_quoted_with_its_place() {
    let mut bench = bench!("process_the_first_error_is_quoted_with_its_place");
    bench.build("HEAD").expect("builds");
    bench.commit(&[(
        "mm/madvise.c",
        "int a;\nint madvise(int pages)\n{\n\treturn pages + b;\n}\n",
    )]);
    let error = bench.build("HEAD").expect_err("does not compile");
    let BuildError::Make { found, .. } = &error else {
        panic!("{}", error.chain());
    };
    assert_eq!(found.by, Complaint::Compiler);
    assert_eq!(
        (found.file.as_deref(), found.line),
        (Some("mm/madvise.c"), Some(4))
    );
    assert!(found.message.contains("undeclared"), "{found:?}");
    assert!(
        found
            .quote
            .iter()
            .any(|line| line.contains("return pages + b")),
        "{found:?}"
    );
    assert_eq!(error.failure().class, FailureClass::Kernel);
    assert!(error.to_string().contains("mm/madvise.c:4:"), "{error}");
    assert!(bench.read_log().contains("undeclared"));
    bench.build("HEAD~1").expect("is there");
    bench.commit(&[("mm/madvise.c", MADVISE)]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 3);
}

#[test]
fn process_settings_that_do_not_take_are_listed_and_refuse_the_build() {
    let mut bench = bench!("process_settings_that_do_not_take_are_listed_and_refuse_the_build");
    let lines = "CONFIG_MODULES=y\nCONFIG_FUNCTION_TRACER=y\nCONFIG_PREEMPT_RT=y\nCONFIG_TYPO=y\n\
                 CONFIG_SMP=n\nCONFIG_X86=n\n";
    let mut wanted = config(lines);
    let error = bench.build_with("HEAD", &wanted).expect_err("do not take");
    let BuildError::Untaken(untaken) = &error else {
        panic!("{}", error.chain());
    };
    let told: Vec<String> = untaken.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(
        told[0],
        "test.config:2: CONFIG_FUNCTION_TRACER is n, wanted y: it depends on FTRACE (FTRACE is n)"
    );
    assert!(told[1].contains("6.12 or later"), "{}", told[1]);
    assert!(told[2].contains("no such symbol"), "{}", told[2]);
    assert!(told[3].contains("CONFIG_X86 is y, wanted n"), "{}", told[3]);
    assert_eq!(error.failure().class, FailureClass::Kernel);
    wanted.allow_untaken = true;
    let built = bench.build_with("HEAD", &wanted).expect("builds");
    assert_eq!(built.untaken.len(), 4);
    // A later fragment supplies what was missing.
    let more = Fragment::parse("more", "CONFIG_FTRACE=y\nCONFIG_PREEMPT_RT=n\n");
    let mut wanted = config("CONFIG_MODULES=y\nCONFIG_FUNCTION_TRACER=y\nCONFIG_PREEMPT_RT=y\n");
    wanted.fragments.push(more.expect("fragment"));
    let built = bench.build_with("HEAD", &wanted).expect("builds");
    assert_eq!(built.untaken, []);
}

#[test]
fn process_a_boards_configuration_is_a_base() {
    let mut bench = bench!("process_a_boards_configuration_is_a_base");
    let text = b"# Linux/x86 6.1\nCONFIG_X86=y\nCONFIG_X86_64=y\nCONFIG_MODULES=y\nCONFIG_SMP=y\n";
    let config = ConfigRequest {
        base: BaseConfig::file("config.gz", text).expect("a configuration"),
        fragments: Vec::new(),
        allow_untaken: false,
    };
    let built = bench.build_with("HEAD", &config).expect("builds");
    let out = bench.desk.path().join("out");
    let file = File::open(&built.package).expect("package");
    unpack_canonical(file, &out, &Limits::default()).expect("unpacks");
    let config = fs::read_to_string(out.join("boot/config")).expect("configuration");
    assert!(config.contains("CONFIG_SMP=y\n"), "{config}");
}

#[test]
fn process_an_image_that_lies_about_its_release_is_refused() {
    let mut bench = bench!("process_an_image_that_lies_about_its_release_is_refused");
    let makefile = fs::read_to_string(bench.desk.repo().join("Makefile")).expect("Makefile");
    let other = makefile.replace("6.1.0-small", "6.1.0-other");
    bench.commit(&[("Makefile", &other)]);
    let error = bench.build("HEAD").expect_err("another release");
    let text = error.chain();
    assert!(
        text.contains("6.1.0-small") && text.contains("6.1.0-other"),
        "{text}"
    );
}

#[test]
fn process_everything_that_is_missing_is_named_at_once() {
    let mut bench = bench!("process_everything_that_is_missing_is_named_at_once");
    bench.options.path = Some("/nowhere".into());
    let error = bench.build("HEAD").expect_err("no tools");
    let BuildError::MissingTools(missing) = &error else {
        panic!("{}", error.chain());
    };
    let names: Vec<&str> = missing.iter().map(|tool| tool.name.as_str()).collect();
    for name in ["gcc", "ld", "make", "flex", "bison", "bc"] {
        // Administrators' folders are looked into as well, and may hold everything.
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(error.to_string().contains("apt-get install"), "{error}");
    assert_eq!(error.failure().class, FailureClass::Infrastructure);
}

#[test]
fn process_a_cross_compiler_is_found_or_named() {
    let cancel = Cancel::new().expect("token");
    match Toolchain::detect(Arch::Riscv64, &cancel) {
        Ok(toolchain) => {
            let said = format!("{} {}", toolchain.compiler(), toolchain.linker());
            assert!(said.contains("gcc") && said.contains("GNU ld"), "{said}");
        }
        Err(BuildError::MissingTools(missing)) => {
            assert!(
                missing
                    .iter()
                    .any(|tool| tool.package == "gcc-riscv64-linux-gnu")
            );
        }
        Err(error) => panic!("{}", error.chain()),
    }
    let error = Toolchain::detect(Arch::Aarch64, &cancel).expect_err("not built");
    assert!(matches!(error, BuildError::ArchNotBuilt { .. }));
}
