//! Trials with real small programs, in temporary folders.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use klab_measure::{Cgroups, Finished, Host, MeasureError, Trial, clean_up, preflight};
use klab_model::{
    ArtifactKind, ArtifactName, ArtifactRule, FailureClass, IfMissing, Load, Plan, PlanName,
    ResultFormat, Span, TimeLimits, TracePlan, Workload, WorkloadName,
};

struct Lab {
    root: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().expect("folder"),
        }
    }

    fn host(&self) -> Host {
        Host {
            sysroot: self.root.path().join("sysroot"),
            tracefs: self.root.path().join("tracefs"),
            cgroup_root: None,
            wrapper: Vec::new(),
            trace_cap: 100,
        }
    }

    fn trial(&self, script: &str, limit: Span) -> Trial {
        Trial {
            folder: self.root.path().join("trial"),
            workload: Workload {
                name: WorkloadName::parse("work").expect("name"),
                command: sh(script),
                trials: 1,
                time_limit: limit,
                artifacts: Vec::new(),
            },
            loads: Vec::new(),
            trace: None,
        }
    }

    fn run(&self, script: &str) -> Finished {
        self.trial(script, Span::secs(60))
            .prepare(&self.host())
            .expect("prepared")
            .run(None)
    }

    /// A tracefs made of ordinary files.
    fn tracefs(&self) -> PathBuf {
        let tracefs = self.root.path().join("tracefs");
        for (file, text) in [
            ("available_tracers", "wakeup_rt function nop\n"),
            ("current_tracer", "nop\n"),
            ("tracing_on", "1\n"),
            ("buffer_size_kb", "7 (expanded: 1408)\n"),
            ("tracing_max_latency", "99\n"),
            ("options/function-trace", "1\n"),
            ("trace", "old\n"),
            (
                "per_cpu/cpu0/stats",
                "entries: 5\noverrun: 3\ncommit overrun: 0\ndropped events: 1\n",
            ),
            (
                "per_cpu/cpu1/stats",
                "entries: 5\noverrun: 4\ndropped events: 0\n",
            ),
        ] {
            let path = tracefs.join(file);
            fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            fs::write(path, text).expect("file");
        }
        tracefs
    }
}

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

fn rule(file: &str, format: Option<ResultFormat>) -> ArtifactRule {
    ArtifactRule {
        file: ArtifactName::parse(file).expect("name"),
        format,
    }
}

fn load(name: &str, script: &str) -> Load {
    Load {
        name: WorkloadName::parse(name).expect("name"),
        command: sh(script),
        lead: Span::from_millis(100).expect("span"),
        artifacts: Vec::new(),
    }
}

fn wakeup_rt(if_missing: IfMissing) -> TracePlan {
    TracePlan {
        tracer: "wakeup_rt".to_owned(),
        if_missing,
        buffer_kib: 4096,
        function_trace: false,
    }
}

fn names(finished: &Finished) -> Vec<&str> {
    finished
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect()
}

fn reason(finished: &Finished) -> &str {
    &finished.failure.as_ref().expect("failure").reason
}

/// Whether a process has ended or ends soon: a killed one takes a moment to go.
fn goes(pid: &str) -> bool {
    let lives = || {
        // A zombie that nobody reaps is dead all the same.
        fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    (0..2000).any(|_| {
        let gone = !lives();
        if !gone {
            std::thread::sleep(Duration::from_millis(10));
        }
        gone
    })
}

/// Waits for a file that a script writes; bounded, so that a failure is one.
fn wait_for(path: &Path) -> String {
    for _ in 0..2000 {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("{} did not appear", path.display());
}

#[test]
fn a_good_trial_gives_its_files() {
    let lab = Lab::new();
    let mut trial = lab.trial("echo result > {out}/hist.txt; echo said", Span::secs(60));
    trial.workload.artifacts = vec![
        rule("hist.txt", Some(ResultFormat::CyclictestHistogram)),
        rule("stderr", None),
    ];
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(finished.failure, None);
    assert_eq!(
        names(&finished),
        ["hist.txt", "work.stderr", "work.stdout", "facts.json"]
    );
    assert_eq!(
        finished.files[0].kind,
        ArtifactKind::Result(ResultFormat::CyclictestHistogram)
    );
    assert_eq!(finished.commands[0].status, "exit status: 0");
    assert!(finished.facts.notes[0].contains("no cgroups v2"));
    let facts = fs::read_to_string(&finished.files[3].path).expect("facts");
    assert!(facts.contains("\"exit status: 0\""), "{facts}");
}

#[test]
fn the_agent_sleeps_while_the_workload_runs() {
    let finished = Lab::new().run("sleep 1");
    assert_eq!(finished.failure, None);
    // Other tests may run in this process, so there is no upper bound to be stated here but
    // one that a busy loop or a timer of some Hertz would break.
    assert!(
        (1..50).contains(&finished.perturbation.wakeups),
        "{:?}",
        finished.perturbation
    );
    assert!(finished.duration >= Duration::from_secs(1));
}

#[test]
fn a_failing_workload_is_told_with_its_last_words() {
    let finished = Lab::new().run("echo partial; echo one >&2; echo 'no such CPU' >&2; exit 3");
    assert_eq!(
        finished.failure.as_ref().map(|f| f.class),
        Some(FailureClass::Workload)
    );
    assert_eq!(
        reason(&finished),
        "workload work failed: exit status: 3: no such CPU"
    );
    assert_eq!(
        names(&finished),
        ["work.stdout", "work.stderr", "facts.json"]
    );
    let finished = Lab::new().run("kill -9 $$");
    assert_eq!(
        reason(&finished),
        "workload work failed: signal: 9 (SIGKILL)"
    );
}

#[test]
fn a_missing_file_fails_the_trial() {
    let lab = Lab::new();
    let mut trial = lab.trial("ln -s /etc/passwd link.txt", Span::secs(60));
    trial.workload.artifacts = vec![rule("link.txt", None), rule("stdout", None)];
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert!(
        reason(&finished).starts_with("work left no file link.txt"),
        "{}",
        reason(&finished)
    );
    assert_eq!(names(&finished), ["work.stdout", "facts.json"]);
}

#[test]
fn the_time_limit_ends_the_whole_group() {
    let lab = Lab::new();
    let script = "trap '' TERM; (trap '' TERM; sleep 300) & echo $! > child; \
                  (sh -c 'echo $$ > grandchild; exec sleep 300') & wait; sleep 300";
    let trial = lab.trial(script, Span::secs(1));
    let folder = trial.folder.clone();
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(
        reason(&finished),
        "workload work did not end within its time limit of 1s"
    );
    for file in ["child", "grandchild"] {
        assert!(goes(&wait_for(&folder.join(file))), "{file}");
    }
}

#[test]
fn a_load_that_ends_early_fails_the_trial() {
    let lab = Lab::new();
    let mut trial = lab.trial("sleep 300", Span::secs(300));
    trial.loads = vec![
        load("steady", "sleep 300"),
        load("weak", "sleep 1; echo 'out of memory' >&2; exit 2"),
    ];
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(
        reason(&finished),
        "load weak ended before the workload: exit status: 2: out of memory"
    );
    assert_eq!(
        finished.failure.map(|f| f.class),
        Some(FailureClass::Workload)
    );
    let ends: Vec<_> = finished
        .commands
        .iter()
        .map(|c| (c.name.as_str(), &*c.status))
        .collect();
    assert_eq!(ends[0], ("steady", "signal: 2 (SIGINT)"));
    assert_eq!(ends.last(), Some(&("work", "signal: 15 (SIGTERM)")));
}

#[test]
fn loads_run_before_and_beside_and_write_results_when_interrupted() {
    let lab = Lab::new();
    let mut trial = lab.trial("cat {out}/up > {out}/seen; exec sleep 1", Span::secs(60));
    let mut noise = load(
        "noise",
        "trap 'echo yaml > {out}/noise.yaml; exit 0' INT; echo up > {out}/up; \
         while :; do sleep 0.1; done",
    );
    noise.lead = Span::secs(2);
    noise.artifacts = vec![rule("noise.yaml", Some(ResultFormat::StressNgYaml))];
    trial.loads = vec![noise];
    let folder = trial.folder.clone();
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(finished.failure, None);
    assert_eq!(
        fs::read_to_string(folder.join("seen")).expect("seen"),
        "up\n"
    );
    assert_eq!(names(&finished), ["noise.yaml", "facts.json"]);
    // The lead does not count.
    assert!(
        finished.duration < Duration::from_millis(2900),
        "{:?}",
        finished.duration
    );
}

#[test]
fn the_abort_descriptor_ends_a_trial() {
    let lab = Lab::new();
    let (reader, writer) = std::io::pipe().expect("pipe");
    let prepared = lab
        .trial("sleep 300", Span::secs(300))
        .prepare(&lab.host())
        .expect("prepared");
    drop(writer);
    let finished = prepared.run(Some(reader.as_fd()));
    assert!(finished.aborted);
    assert_eq!(
        finished.failure.map(|f| f.class),
        Some(FailureClass::Infrastructure)
    );
}

#[test]
fn the_tracer_is_on_only_while_the_workload_runs() {
    let lab = Lab::new();
    let tracefs = lab.tracefs();
    let t = tracefs.display();
    let mut trial = lab.trial(
        &format!(
            "cat {t}/tracing_on {t}/current_tracer {t}/buffer_size_kb {t}/options/function-trace \
             {t}/trace {t}/tracing_max_latency | tr '\\n' ' ' > state; \
             seq 100 > {t}/trace; echo 250 > {t}/tracing_max_latency"
        ),
        Span::secs(60),
    );
    trial.trace = Some(wakeup_rt(IfMissing::Fail));
    let folder = trial.folder.clone();
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(finished.failure, None);
    assert_eq!(
        fs::read_to_string(folder.join("state")).expect("state"),
        "1wakeup_rt409600"
    );
    let trace = finished.trace.as_ref().expect("trace");
    assert_eq!(
        (trace.max_latency_us, trace.overrun, trace.dropped),
        (Some(250), 7, 1)
    );
    assert!(trace.cut && trace.bytes == 100);
    assert!(
        finished
            .facts
            .notes
            .iter()
            .any(|n| n.contains("7 events overwritten, 1 dropped"))
    );
    assert_eq!(names(&finished), ["trace.txt", "facts.json"]);
    let read = |file: &str| fs::read_to_string(tracefs.join(file)).expect("file");
    assert_eq!(read("current_tracer"), "nop");
    assert_eq!(read("tracing_on"), "1");
    assert_eq!(read("buffer_size_kb"), "7");
    assert_eq!(read("options/function-trace"), "1");
}

#[test]
fn the_tracer_is_undone_when_a_trial_is_given_up() {
    let lab = Lab::new();
    let tracefs = lab.tracefs();
    let mut trial = lab.trial("true", Span::secs(60));
    trial.trace = Some(wakeup_rt(IfMissing::Fail));
    let prepared = trial.prepare(&lab.host()).expect("prepared");
    let tracer = || fs::read_to_string(tracefs.join("current_tracer")).expect("file");
    assert_eq!(tracer(), "wakeup_rt");
    drop(prepared);
    assert_eq!(tracer(), "nop");
}

#[test]
fn a_missing_tracer_fails_or_is_noted() {
    let lab = Lab::new();
    let mut trial = lab.trial("true", Span::secs(60));
    trial.trace = Some(wakeup_rt(IfMissing::Fail));
    let error = trial.clone().prepare(&lab.host()).expect_err("no tracefs");
    let failure = error.failure();
    assert_eq!(failure.class, FailureClass::Kernel);
    assert_eq!(
        failure.reason,
        "the kernel cannot trace with wakeup_rt (tracefs is not mounted, or there is no ftrace): \
         build it in, or say `if-missing: note` in the plan"
    );
    lab.tracefs();
    let mut other = wakeup_rt(IfMissing::Note);
    other.tracer = "osnoise".to_owned();
    trial.trace = Some(other);
    let finished = trial.prepare(&lab.host()).expect("prepared").run(None);
    assert_eq!(finished.failure, None);
    assert_eq!(
        finished.facts.notes[0],
        "not traced with osnoise: it has wakeup_rt, function, nop"
    );
}

#[test]
fn only_folders_of_trials_are_replaced() {
    let lab = Lab::new();
    assert_eq!(lab.run("echo 1 > left").failure, None);
    let folder = lab.root.path().join("trial");
    assert_eq!(lab.run("test ! -e left").failure, None);
    fs::remove_dir_all(&folder).expect("removed");
    fs::create_dir(&folder).expect("folder");
    fs::write(folder.join("precious"), "").expect("file");
    let error = lab
        .trial("true", Span::secs(1))
        .prepare(&lab.host())
        .expect_err("not empty");
    assert!(matches!(error, MeasureError::Io { .. }), "{error}");
    assert!(folder.join("precious").exists());
}

#[test]
fn programs_are_looked_for_before_anything_runs() {
    let lab = Lab::new();
    let mut trial = lab.trial("true", Span::secs(1));
    trial.workload.command = vec!["/nowhere/stress-ng".to_owned()];
    let plan = Plan {
        name: PlanName::parse("p").expect("name"),
        about: String::new(),
        loads: vec![load("l", "true")],
        workloads: vec![trial.workload.clone()],
        trace: None,
        time_limits: TimeLimits {
            boot: Span::secs(1),
            settle: Span::secs(1),
            no_network: Span::secs(1),
        },
    };
    let path = std::env::var_os("PATH").expect("PATH");
    let missing: Vec<_> = preflight(&plan, &path, Path::new("/"))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(missing, ["/nowhere/stress-ng (Debian package stress-ng)"]);
    let error = trial.prepare(&lab.host()).expect_err("missing");
    assert_eq!(
        error.to_string(),
        "program /nowhere/stress-ng is not on the board: install it (Debian package stress-ng)"
    );
}

#[test]
fn a_wrapper_that_fails_is_not_the_workloads_fault() {
    let lab = Lab::new();
    let script = lab.root.path().join("wrapper");
    fs::write(&script, "echo \"$@\" >&2; exit 125").expect("script");
    let mut host = lab.host();
    host.wrapper = vec!["sh".to_owned(), script.display().to_string()];
    let finished = lab
        .trial("true", Span::secs(60))
        .prepare(&host)
        .expect("prepared")
        .run(None);
    assert_eq!(
        reason(&finished),
        "cannot start work: exit status: 125: --oom-score-adj 0 -- sh -c true"
    );
    assert_eq!(
        finished.failure.map(|f| f.class),
        Some(FailureClass::Infrastructure)
    );
}

#[test]
fn what_a_dead_agent_left_is_killed() {
    let lab = Lab::new();
    lab.tracefs();
    let random = lab.host().sysroot.join("proc/sys/kernel/random");
    fs::create_dir_all(&random).expect("folder");
    fs::write(random.join("boot_id"), "b1\n").expect("file");
    fs::write(lab.root.path().join("tracefs/current_tracer"), "function\n").expect("file");
    let trial = lab.trial("echo $$ > pid; sleep 300", Span::secs(300));
    let pid_file = trial.folder.join("pid");
    let folder = trial.folder.clone();
    let prepared = trial.prepare(&lab.host()).expect("prepared");
    let (reader, _writer) = std::io::pipe().expect("pipe");
    let running = std::thread::spawn(move || prepared.run(Some(reader.as_fd())));
    let pid = wait_for(&pid_file);
    let done = clean_up(&lab.host(), Some(&folder));
    assert!(
        done.killed >= 1 && done.tracer && done.problems.is_empty(),
        "{done:?}"
    );
    assert!(reason(&running.join().expect("trial")).contains("SIGKILL"));
    assert!(goes(&pid));
    assert_eq!(clean_up(&lab.host(), Some(&folder)), Default::default());
}

/// A cgroup of our own, where this machine lets us make one.
fn own_cgroup() -> Option<PathBuf> {
    let root = Cgroups::find(Path::new("/"))?.join(format!("klab-test-{}", std::process::id()));
    fs::create_dir(&root).ok()?;
    Some(root)
}

#[test]
fn processes_that_leave_their_group_do_not_leave_their_cgroup() {
    let Some(root) = own_cgroup() else {
        eprintln!("skipped: no cgroup v2 can be made here");
        return;
    };
    let lab = Lab::new();
    let mut host = lab.host();
    host.cgroup_root = Some(root.clone());
    // The moment before the move is over when setsid runs.
    let script = "sleep 0.5; setsid sh -c 'echo $$ > away; exec sleep 300' & \
                  while ! test -s away; do sleep 0.1; done; cat /proc/self/cgroup";
    let trial = lab.trial(script, Span::secs(60));
    let folder = trial.folder.clone();
    let finished = trial.prepare(&host).expect("prepared").run(None);
    assert_eq!(finished.failure, None, "{:?}", finished.facts.notes);
    let cgroup = fs::read_to_string(folder.join("work.stdout")).expect("output");
    assert!(cgroup.contains("/klab/work"), "{cgroup}");
    assert!(goes(&wait_for(&folder.join("away"))));
    assert!(!root.join("klab").exists());
    fs::remove_dir(root).expect("cgroup is empty");
}
