//! `klab kernel`, `klab boards`, and a controller that is not there.
#![allow(missing_docs)]

mod support;

use std::net::TcpListener;

use insta::assert_snapshot;
use klab_proto::v1;
use serde_json::json;
use support::board::Board;
use support::packages::{deb, image, kernel_deb};
use support::{Lab, klab, until, write};

const COMMANDS: [&str; 11] = [
    "jobs",
    "job show last",
    "watch last",
    "cancel last",
    "boards",
    "kernel list",
    "kernel add k1 quick.yaml",
    "artifacts list last",
    "artifacts get last",
    "compare last",
    "submit --variant base=k1 --boards b1 --plan rt-latency",
];

#[test]
fn process_without_a_controller_every_command_says_where_it_looked_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on a port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for command in COMMANDS {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.extend(["--controller", &url]);
        let told = klab(folder.path(), &words);
        assert_eq!((told.code, told.out.as_str()), (3, ""), "{told:?}");
        let expected = format!(
            "klab: cannot reach the controller at {url}: start it with `klab-controller`, or say \
             where it is with --controller or KLAB_CONTROLLER\n"
        );
        assert_eq!(told.err, expected, "{command}");
    }
    let told = klab(folder.path(), &["jobs", "--controller", "https://lab"]);
    let expected = "klab: --controller \"https://lab\": expected http://HOST:PORT\n";
    assert_eq!(told.refused(), expected);
}

#[test]
fn process_a_listener_that_is_no_controller_is_an_error_of_the_lab() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || while other.accept().is_ok() {});
    let told = klab(folder.path(), &["jobs", "--controller", &address]);
    assert_eq!((told.code, told.out.as_str()), (3, ""), "{told:?}");
    let expected = "klab: the connection to the controller broke: see that `klab-controller` \
                    runs, and that --controller or KLAB_CONTROLLER says where it listens\n";
    assert_eq!(told.err, expected);
}

#[test]
fn process_the_address_that_the_controller_prints_is_one_that_klab_takes() {
    let lab = Lab::start();
    let told = klab(lab.path(), &["jobs", "--controller", lab.address()]);
    assert!(told.ok().starts_with("JOB "));
}

#[test]
fn process_kernel_add_reads_a_debian_package() {
    let lab = Lab::start();
    kernel_deb(lab.path(), "k.deb", "6.1.0-test");
    let added = lab.klab(&["kernel", "add", "k1", "k.deb"]);
    let words = format!(
        "k1: riscv64 6.1.0-test, build-id {}, digest ",
        "ab".repeat(20)
    );
    let digest = added.ok().trim_end().strip_prefix(&words).unwrap();
    // The same content under the same name is no new kernel.
    let again = lab.klab(&["kernel", "add", "k1", "k.deb", "--json"]).json();
    assert!(again["digest"].as_str().unwrap().starts_with(digest));
    let mut listed = lab.klab(&["kernel", "list", "--json"]).json();
    assert_eq!(listed, json!([again]));
    let kernel = &mut listed[0];
    assert_eq!(kernel["digest"].as_str().unwrap().len(), 64);
    assert!(kernel["size"].as_u64().unwrap() > 0);
    assert!(kernel["added_at"].as_str().unwrap().ends_with('Z'));
    for field in ["digest", "size", "added_at"] {
        kernel[field].take();
    }
    let expected = json!({
        "name": "k1",
        "arch": "riscv64",
        "release": "6.1.0-test",
        "build_id": "ab".repeat(20),
        "digest": null,
        "size": null,
        "added_at": null,
    });
    assert_eq!(*kernel, expected);
    let table = lab.klab(&["kernel", "list"]);
    let lines: Vec<Vec<&str>> = table
        .ok()
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "ARCH", "RELEASE", "BUILD-ID", "DIGEST"]);
    let id = "ab".repeat(20);
    assert_eq!(lines[1], ["k1", "riscv64", "6.1.0-test", &id, digest]);
    assert_eq!(lines.len(), 2);
}

#[test]
fn process_kernel_add_never_changes_a_kernel() {
    let lab = Lab::start();
    lab.kernel("k1");
    let before = lab.klab(&["kernel", "list", "--json"]).json();
    kernel_deb(lab.path(), "other.deb", "6.2.0-other");
    let told = lab.klab(&["kernel", "add", "k1", "other.deb"]);
    let digest = before[0]["digest"].as_str().unwrap();
    let expected = format!(
        "klab: the controller answered: kernel k1 exists already with digest {}: a kernel never \
         changes, add this one under another name\n",
        digest
    );
    assert_eq!(told.refused(), expected);
    assert_eq!(lab.klab(&["kernel", "list", "--json"]).json(), before);
    lab.klab(&["kernel", "add", "k2", "other.deb"]).ok();
}

#[test]
fn process_kernel_add_refuses_what_is_no_kernel_and_says_what_is() {
    let lab = Lab::start();
    let folder = lab.path();
    std::fs::create_dir(folder.join("empty")).unwrap();
    write(folder, "no-image/boot/config-6.1.0", "CONFIG_X=y\n");
    let config: [(&str, &[u8]); 1] = [("boot/config-6.1.0", b"CONFIG_X=y\n")];
    write(folder, "no-image.deb", deb(&config));
    let whole = deb(&[("boot/vmlinuz-6.1.0", &image("6.1.0"))]);
    write(folder, "cut.deb", &whole[..whole.len() - 700]);
    write(folder, "text.deb", "This is no package.\n");
    write(folder, "nothing.deb", "");
    write(folder, "image", image("6.1.0"));
    let mut said = String::new();
    for words in [
        "k1 missing.deb",
        "k1 empty",
        "k1 no-image",
        "k1 no-image.deb",
        "k1 cut.deb",
        "k1 text.deb",
        "k1 nothing.deb",
        "k1 image --modules missing",
        "k1 image --modules empty",
        "K1 image",
    ] {
        let arguments: Vec<&str> = "kernel add".split(' ').chain(words.split(' ')).collect();
        let told = lab.klab(&arguments);
        said += &format!("{words}\n{}\n", told.refused());
    }
    assert_snapshot!(said);
    let listed = lab.klab(&["kernel", "list", "--json"]).json();
    assert_eq!(listed, json!([]), "nothing is half accepted");
}

#[test]
fn process_boards_shows_what_a_board_said_about_itself() {
    let lab = Lab::start();
    assert_eq!(lab.klab(&["boards", "--json"]).json(), json!([]));
    let board = Board::connect(lab.address(), "b1");
    let x86 = Board::of_arch(lab.address(), "b2", v1::Arch::X8664);
    let mut boards = lab.klab(&["boards", "--json"]).json();
    assert!(boards[0]["seen_at"].take().as_str().unwrap().ends_with('Z'));
    let expected = json!({
        "name": "b1",
        "arch": "riscv64",
        "state": "idle",
        "online": true,
        "run": "",
        "model": "Scripted",
        "cpus": 4,
        "memory_kib": 0,
        "release": "6.1.0-good",
        "tags": { "room": "lab" },
        "seen_at": null,
    });
    assert_eq!(boards[0], expected);
    assert_snapshot!(lab.klab(&["boards"]).ok(), @r"
    NAME  ARCH     STATE  LINK  CPUS  RELEASE     TAGS
    b1    riscv64  idle   up    4     6.1.0-good  room=lab
    b2    x86_64   idle   up    4     6.1.0-good  room=lab
    ");
    drop((board, x86));
    until("both are down", || {
        let table = lab.klab(&["boards"]);
        table.ok().matches("offline  down").count() == 2
    });
}
