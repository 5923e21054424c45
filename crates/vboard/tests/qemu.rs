//! Boards that really boot. The base image is built once and kept in the work folder: by default
//! below the target folder, or where KLAB_VBOARD_DIR says.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use klab_vboard::{
    AgentFiles, BoardSpec, CMDLINE, Error, Exit, Machine, Recipe, SeedFile, VirtualBoard, Workdir,
    grub, tools,
};

/// More than any boot needs on a loaded machine under TCG.
const LIMIT: Duration = Duration::from_secs(240);

/// Folders with the modules that a board's initrd is made of.
const MODULES: [&str; 12] = [
    "drivers/virtio",
    "drivers/block",
    "drivers/net/virtio_net.ko",
    "drivers/net/net_failover.ko",
    "drivers/watchdog",
    "drivers/char/hw_random",
    "net/core",
    "fs/ext4",
    "fs/jbd2",
    "fs/fat",
    "fs/nls",
    "fs/mbcache.ko",
];

/// The work folder, or nothing where boards cannot be made; then it is said why.
fn workdir(test: &str, machine: Machine) -> Option<Workdir> {
    match tools::install_missing(machine, |line| eprintln!("{test}: {line}")) {
        Ok(_) => {}
        Err(error @ (Error::MissingTools { .. } | Error::Tool { .. })) => {
            eprintln!("skipped: {test}: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let default = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("vboard");
    let dir = std::env::var_os("KLAB_VBOARD_DIR").map_or_else(default, PathBuf::from);
    Some(Workdir::new(dir).expect("work folder"))
}

/// A listener on loopback whose visitors' messages arrive on the channel.
fn listen() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if tell.send(read(stream)).is_err() {
                return;
            }
        }
    });
    (port, told)
}

fn read(mut stream: TcpStream) -> String {
    let mut bytes = [0; 4096];
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("timeout");
    let n = stream.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..n]).trim().to_owned()
}

/// A kernel's tree: the packages of Debian, unpacked.
fn unpacked(work: &Workdir, machine: Machine, into: &Path) -> PathBuf {
    let (package, suite) = match machine {
        Machine::X86_64 => ("linux-image-rt-amd64", "bookworm"),
        Machine::Riscv64 => ("linux-image-riscv64", "forky"),
    };
    let kernel = work.kernel(machine, package, suite).expect("a kernel");
    if kernel.is_dir() {
        return kernel;
    }
    let mut unpack = Command::new("dpkg-deb");
    let status = unpack.arg("-x").arg(&kernel).arg(into).status();
    assert!(status.expect("dpkg-deb").success());
    into.to_owned()
}

/// The kernel and the modules of a package as seed files, and its release.
fn candidate(work: &Workdir, machine: Machine) -> (Vec<SeedFile>, String) {
    let into = tempfile::tempdir_in(work.path()).expect("temporary folder");
    let tree = unpacked(work, machine, into.path());
    let folders = ["usr/lib/modules", "lib/modules"].map(|folder| tree.join(folder));
    let modules = folders.iter().find(|folder| folder.is_dir());
    let modules = modules.expect("modules");
    let mut releases = std::fs::read_dir(modules).expect("modules");
    let release = releases
        .next()
        .expect("one")
        .expect("entry")
        .file_name()
        .into_string()
        .expect("text");
    let file = |path: String, from: &Path| SeedFile {
        path: path.into(),
        mode: 0o644,
        content: std::fs::read(from).expect("file of the package"),
    };
    let base = modules.join(&release);
    let images = [
        tree.join("boot").join(format!("vmlinuz-{release}")),
        base.join("vmlinuz"),
    ];
    let vmlinuz = images.iter().find(|image| image.is_file());
    let mut files = vec![file(
        "var/tmp/vmlinuz".to_owned(),
        vmlinuz.expect("an image"),
    )];
    let mut todo: Vec<PathBuf> = MODULES
        .iter()
        .flat_map(|m| ["", ".xz"].map(|end| base.join("kernel").join(format!("{m}{end}"))))
        .collect();
    todo.extend(["crypto", "lib", "arch"].map(|d| base.join("kernel").join(d)));
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(
                std::fs::read_dir(&path)
                    .expect("folder")
                    .flatten()
                    .map(|e| e.path()),
            );
        } else if path.is_file() {
            let inside = path
                .strip_prefix(&base)
                .expect("below")
                .display()
                .to_string();
            files.push(file(format!("usr/lib/modules/{release}/{inside}"), &path));
        }
    }
    (files, release)
}

/// The next message of the board. The console's end is in the failure text.
fn next(told: &Receiver<String>, board: &VirtualBoard) -> String {
    told.recv_timeout(LIMIT).unwrap_or_else(|_| {
        let log = std::fs::read(board.dir().console_log()).unwrap_or_default();
        let from = log.len().saturating_sub(4000);
        panic!(
            "the board went silent, its console:\n{}",
            String::from_utf8_lossy(&log[from..])
        );
    })
}

fn expect_boot(told: &Receiver<String>, board: &VirtualBoard, n: u32, release: &str) {
    let message = next(told, board);
    eprintln!("{message}");
    assert!(
        message.starts_with(&format!("boot {n} on {release} after ")),
        "{message}"
    );
}

/// A fresh board with this name; one that an earlier run left is removed.
fn fresh(
    work: &Workdir,
    machine: Machine,
    name: &str,
    agent: &AgentFiles,
) -> (klab_vboard::BoardDir, String) {
    let image = work.image(&Recipe::of(machine)).expect("base image");
    match work.remove(name) {
        Ok(()) | Err(Error::NoBoard { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let spec = BoardSpec {
        memory_mib: 512,
        ..BoardSpec::new(name).expect("name")
    };
    (
        work.create(&spec, &image, agent).expect("board"),
        image.release().to_owned(),
    )
}

/// What the boot loader of a machine takes for one boot: entries by name, and what arms them.
fn entries(machine: Machine) -> ([(&'static str, String); 5], Vec<u8>) {
    let hang = format!("{CMDLINE} init=/bin/busybox-hang klab.watchdog=15");
    let panic = format!("{CMDLINE} init=/bin/false");
    match machine {
        Machine::X86_64 => {
            let entry = |slot, cmdline: &str| grub::candidate_snippet(slot, cmdline, true);
            // The entry of a writer who trusts GRUB to fall back by itself.
            let garbage = "menuentry c --id klab-candidate {\n linux /klab/garbage/vmlinuz\n \
                           initrd /klab/garbage/initrd\n}\n";
            let broken = "menuentry \"x\" --id klab-candidate { if\n";
            let armed = grub::grubenv(&[("next_entry", grub::CANDIDATE)]).expect("fits");
            let entries = [
                ("good", entry("a", CMDLINE)),
                ("garbage", garbage.to_owned()),
                ("panic", entry("a", &panic)),
                ("hang", entry("a", &hang)),
                ("broken", broken.to_owned()),
            ];
            (entries, armed)
        }
        Machine::Riscv64 => {
            let entry = |slot: &str, cmdline: &str| {
                format!(
                    "default c\nlabel c\n  kernel /klab/{slot}/vmlinuz\n  initrd \
                     /klab/{slot}/initrd\n  append {cmdline}\n"
                )
            };
            let entries = [
                ("good", entry("a", CMDLINE)),
                ("garbage", entry("garbage", CMDLINE)),
                ("panic", entry("a", &panic)),
                ("hang", entry("a", &hang)),
                ("broken", "default x\nlabel y\n  kernel\n".to_owned()),
            ];
            (entries, b"klab-candidate\n".to_vec())
        }
    }
}

#[test]
fn qemu_candidates_boot_once_and_every_failure_leads_back() {
    boot_once_and_back(
        "qemu_candidates_boot_once_and_every_failure_leads_back",
        Machine::X86_64,
    );
}

#[test]
fn qemu_riscv64_candidates_boot_once_and_every_failure_leads_back() {
    boot_once_and_back(
        "qemu_riscv64_candidates_boot_once_and_every_failure_leads_back",
        Machine::Riscv64,
    );
}

fn boot_once_and_back(test: &str, machine: Machine) {
    let Some(work) = workdir(test, machine) else {
        return;
    };
    let (port, told) = listen();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agent.sh");
    let mut agent = AgentFiles::new(script, format!("port: {port}\n"));
    let (files, candidate) = candidate(&work, machine);
    agent.more = files;
    let (entries, armed) = entries(machine);
    for (name, text) in entries {
        agent = agent.with_file(format!("/etc/klab/{name}.cfg"), text);
    }
    agent = agent
        .with_file("/etc/klab/armed", armed)
        .with_file("/etc/klab/release", candidate.as_str());
    agent.more.push(SeedFile {
        path: "usr/bin/busybox-hang".into(),
        mode: 0o755,
        content: b"#!/bin/sh\necho hanging\nwhile :; do sleep 1000; done\n".to_vec(),
    });

    let name = format!("once-{}", machine.boot_method());
    let (dir, known_good) = fresh(&work, machine, &name, &agent);
    assert_ne!(known_good, candidate);
    let accel = work
        .accel(&work.image(&Recipe::of(machine)).expect("image"))
        .expect("accelerator");
    eprintln!("{accel:?}");
    let board = dir.start(&accel).expect("on");
    let mut console = dir.follow_console();

    expect_boot(&told, &board, 1, &known_good);
    assert!(
        console
            .wait_for("agent: boot 1", LIMIT)
            .expect("console")
            .is_some()
    );
    let promises = [
        "agent: cgroup cgroup2fs",
        "agent: controllers cpuset cpu io memory",
        "agent: tracers ",
        if machine == Machine::X86_64 {
            "agent: tools 5"
        } else {
            "agent: tools 4"
        },
        "agent: mkinitrd took",
    ];
    for promise in promises {
        let line = console.wait_for(promise, LIMIT).expect("console");
        let line = line.unwrap_or_else(|| panic!("no {promise:?} on the console"));
        eprintln!("{line}");
    }
    expect_boot(&told, &board, 2, &candidate);
    for (n, after) in [
        (3, "candidate"),
        (4, "garbage"),
        (5, "panic"),
        (6, "hang"),
        (7, "broken snippet"),
        (8, "no snippet"),
    ] {
        expect_boot(&told, &board, n, &known_good);
        eprintln!("back on the known-good kernel after: {after}");
    }
    // The known-good kernel itself panics: it comes back too.
    expect_boot(&told, &board, 9, &known_good);
    assert_eq!(board.wait(LIMIT), Some(Exit::Off));
    drop(board);
    work.remove(&name).expect("removed");
}

#[test]
fn qemu_power_cuts_keep_the_disk_and_new_agents_arrive() {
    let Some(work) = workdir(
        "qemu_power_cuts_keep_the_disk_and_new_agents_arrive",
        Machine::X86_64,
    ) else {
        return;
    };
    let (port, told) = listen();
    let tmp = tempfile::tempdir().expect("temporary folder");
    let agent = |version: u32| {
        let script = tmp.path().join("agent");
        let text = format!(
            "#!/bin/sh\necho x >> /var/lib/klab/starts; sync\n\
             echo agent {version} start $(wc -l < /var/lib/klab/starts) on $(hostname) | nc -w 10 10.0.2.2 {port}\nsleep 1000\n"
        );
        std::fs::write(&script, text).expect("script");
        AgentFiles::new(script, "")
    };
    let (dir, _) = fresh(&work, Machine::X86_64, "power", &agent(1));
    let accel = work
        .accel(&work.image(&Recipe::of(Machine::X86_64)).expect("image"))
        .expect("accelerator");
    let board = dir.start(&accel).expect("on");
    assert_eq!(next(&told, &board), "agent 1 start 1 on power");
    assert!(
        matches!(dir.start(&accel), Err(Error::Busy { .. })),
        "two machines on one disk"
    );
    assert!(
        matches!(work.remove("power"), Err(Error::Busy { .. })),
        "removed under a running machine"
    );
    board.reset().expect("reset");
    assert_eq!(next(&told, &board), "agent 1 start 2 on power");
    board.kill();
    assert!(!dir.is_running().expect("known"));

    dir.set_agent(&agent(2)).expect("seed");
    let board = work
        .open("power")
        .expect("there")
        .start(&accel)
        .expect("on");
    assert_eq!(next(&told, &board), "agent 2 start 3 on power");
    assert_eq!(board.stop(), Exit::Off);
    assert!(
        work.list()
            .expect("boards")
            .iter()
            .any(|n| n.as_str() == "power")
    );
    let log = std::fs::read_to_string(dir.console_log()).expect("console");
    assert_eq!(
        log.matches("board: up after").count(),
        3,
        "all starts are in one log:\n{log}"
    );
    work.remove("power").expect("removed");
    assert!(matches!(work.open("power"), Err(Error::NoBoard { .. })));
}
