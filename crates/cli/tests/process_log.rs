//! `klab log check`: what is said about the logs of kernels that booted, died and never began.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use support::{Told, command, klab, write};

fn log(name: &str) -> Vec<u8> {
    let klog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../klog/tests/data");
    fs::read(klog.join(name)).unwrap()
}

/// `klab log check` of a file that holds `bytes`.
fn check(name: &str, bytes: impl AsRef<[u8]>) -> Told {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), name, bytes);
    klab(folder.path(), &["log", "check", name])
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn process_log_check_tells_boots_and_reports() {
    let mut said = String::new();
    for name in [
        "x86-no-root.txt",
        "x86-oops.txt",
        "stalls.txt",
        "loader-error.txt",
    ] {
        let told = check(name, log(name));
        assert_eq!((told.code, told.err.as_str()), (1, ""), "{name}");
        said += &format!("{}\n", told.out);
    }
    assert_snapshot!(said);
}

#[test]
fn process_log_check_passes_a_kernel_without_reports_of_itself() {
    let told = check("console.log", log("virtual-board.txt"));
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    assert!(
        told.out
            .starts_with("console.log: booted (52 lines, 6 boots)\n"),
        "{}",
        told.out
    );
    // A disk that fails and a process that took all memory are not the kernel's doing.
    let machine = "[    0.000000] Linux version 6.12.0 (a@b)\n[    1.0] x\n\
                   [    2.000000] Run /sbin/init as init process\n\
                   [    9.000000] I/O error, dev vda, sector 8 op 0x0:(READ)\n\
                   [    9.500000] Out of memory: Killed process 7 (stress-ng-vm) total-vm:1kB\n";
    let told = check("a.log", machine);
    assert_eq!(told.code, 0, "{}", told.out);
    assert!(
        told.out.contains("  line 4: io: I/O error, dev vda\n"),
        "{}",
        told.out
    );
}

#[test]
fn process_log_check_reads_packed_and_cut_files_and_standard_input() {
    let plain = log("x86-oops.txt");
    let expected = check("a", &plain).out;
    assert_eq!(check("a", packed(&plain)).out, expected);
    // Random bytes do not pack, so that the cut falls behind the oops.
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()
    };
    let noise: Vec<u8> = std::iter::repeat_with(&mut noise)
        .take(50_000)
        .flatten()
        .collect();
    let packed = packed(&[&plain[..], &noise].concat());
    let cut = check("a", &packed[..packed.len() / 2]);
    assert_eq!(cut.code, 1);
    assert!(
        cut.err
            .contains("a: the gzip file is cut off: what came after line "),
        "{cut:?}"
    );
    assert!(
        cut.out.contains("oops: kernel NULL pointer dereference"),
        "{}",
        cut.out
    );

    let folder = tempfile::tempdir().unwrap();
    let mut check = command(folder.path(), &["log", "check", "-", "--json"]);
    let mut child = check
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&plain).unwrap();
    let output = child.wait_with_output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["file"], "standard input");
    assert_eq!(json["verdict"], "booted");
    assert_eq!(json["boots"][0]["reports"][0]["kind"], "oops");
    assert_eq!(json["boots"][0]["reports"][0]["first_line"], 3);
}

#[test]
fn process_log_check_of_what_is_no_log() {
    let mut said = String::new();
    let elf = fs::read("/bin/sh").unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("text", b"hello\nworld\n"),
        ("elf", &elf),
        ("gzip", b"\x1f\x8bnot gzip at all, although it begins so"),
        ("zeros", &[0; 100_000]),
    ] {
        let told = check(name, bytes);
        said += &format!("{name}: {}\n{}{}", told.code, told.out, told.err);
    }
    let folder = tempfile::tempdir().unwrap();
    for path in [".", "absent"] {
        let told = klab(folder.path(), &["log", "check", path]);
        said += &format!("{path}: {}\n{}{}", told.code, told.out, told.err);
    }
    let said = said
        .lines()
        .filter(|line| !line.starts_with("elf: no kernel"))
        .collect::<Vec<_>>();
    assert_snapshot!(said.join("\n"));
}
