//! Builds that do not end well, or not by themselves.
#![allow(missing_docs)]

mod support;

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use klab_build::{BuildError, BuildEvent, Cancel, Complaint, Fragment, Toolchain};
use klab_model::{Arch, FailureClass};
use support::small::{Bench, config};

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
    let (log, klab) = (bench.log(), bench.desk.klab());
    let canceller = std::thread::spawn(move || {
        let begun = || fs::read_to_string(&log).is_ok_and(|text| text.contains("  CC "));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !begun() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Whoever is left of a build holds its lane.
        let lock = klab.join("work/linux/lane-main/lock");
        let holds = |pid: &String| {
            fs::read_link(format!("/proc/{pid}/fd/0")).is_ok_and(|file| file == lock)
        };
        let holders = processes_in(&klab).iter().filter(|pid| holds(pid)).count();
        cancel.cancel();
        (Instant::now(), holders)
    });
    let error = bench.build("HEAD").expect_err("is cancelled");
    let (since, holders) = canceller.join().expect("thread");
    let since = since.elapsed();
    assert!(holders >= 2, "{holders} processes hold the lock");
    assert!(matches!(error, BuildError::Cancelled), "{}", error.chain());
    assert!(since < Duration::from_secs(10), "took {since:?}");
    assert_eq!(processes_in(&bench.desk.klab()), [""; 0]);
    bench.desk.cancel = Cancel::new().expect("token");
    bench.build("HEAD~1").expect("builds");
    // What a killed `make` left where configurations are made is not used again.
    let kconfig = bench.desk.klab().join("work/linux/lane-main/kconfig");
    fs::write(kconfig.join("half"), "").expect("write");
    fs::write(kconfig.join(".klab-configuring"), "").expect("write");
    bench.build("HEAD~1").expect("is there");
    assert!(!kconfig.join("half").exists() && !kconfig.join(".klab-configuring").exists());
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
fn process_an_image_that_lies_about_its_release_is_refused() {
    let mut bench = bench!("process_an_image_that_lies_about_its_release_is_refused");
    let makefile = fs::read_to_string(bench.desk.repo().join("Makefile")).expect("Makefile");
    let other = makefile.replace("6.1.0-small", "6.1.0-other");
    bench.commit(&[("Makefile", &other)]);
    for config in [config("CONFIG_SMP=y\n"), config("CONFIG_MODULES=y\n")] {
        let error = bench
            .build_with("HEAD", &config)
            .expect_err("another release");
        let text = error.chain();
        assert!(
            text.contains("6.1.0-small") && text.contains("6.1.0-other"),
            "{text}"
        );
    }
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
