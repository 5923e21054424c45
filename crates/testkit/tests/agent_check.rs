//! `klab-agent check` on a board that lacks something, and on one that does not.
#![allow(missing_docs)]

use std::fs;
use std::path::Path;
use std::process::Command;

use klab_testkit::program;

/// Exit code and everything that is printed.
fn check(board: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program("klab-agent"));
    let config = board.join("agent.yaml");
    command.arg("--config").arg(config).arg("check").args(more);
    let output = command.output().expect("the agent starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    let place = board.display().to_string();
    (output.status.code(), said.replace(&place, "BOARD"))
}

#[test]
fn process_agent_check_names_what_the_board_lacks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let board = folder.path();
    let config = format!(
        "board: b1\ncontroller: http://127.0.0.1:1\nstate: {0}/state\nsysroot: {0}\n\
         boot:\n  method: uboot\n  reboot: [/sbin/no-such-reboot]\n",
        board.display()
    );
    fs::write(board.join("agent.yaml"), config).expect("a file");
    let (code, said) = check(board, &[]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "BOARD/boot/boot.scr cannot be read: make it of configs/boot/uboot.cmd with mkimage",
        "/sbin/no-such-reboot is not there: install it",
    ] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    // The file alone is right.
    assert_eq!(check(board, &["--file-only"]), (Some(0), String::new()));

    fs::create_dir_all(board.join("boot/klab")).expect("a folder");
    fs::create_dir_all(board.join("lib/modules")).expect("a folder");
    fs::create_dir_all(board.join("sbin")).expect("a folder");
    fs::write(board.join("sbin/no-such-reboot"), "").expect("a file");
    let script = klab_testkit::repository().join("configs/boot/uboot.cmd");
    fs::copy(script, board.join("boot/boot.scr")).expect("a copy");
    let config = fs::read_to_string(board.join("agent.yaml")).expect("text");
    let config = config.replace("  reboot: [/sbin/no-such-reboot]\n", "");
    fs::write(board.join("agent.yaml"), config).expect("a file");
    let promises = "boot method uboot: survives-panic, clears-itself, marks-cmdline\n";
    assert_eq!(check(board, &[]), (Some(0), promises.to_owned()));
}
