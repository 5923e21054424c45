//! The units in `configs/systemd` are understood by systemd.
#![allow(missing_docs)]

use std::fs;
use std::process::Command;

use klab_testkit::{program, repository, skip};

#[test]
fn process_units_are_understood_by_systemd() {
    let name = "process_units_are_understood_by_systemd";
    let known = Command::new("systemd-analyze").arg("--version").output();
    if !known.is_ok_and(|output| output.status.success()) {
        return skip(name, "there is no systemd-analyze");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let units = fs::read_dir(repository().join("configs/systemd")).expect("units");
    let mut count = 0;
    for unit in units.map(|entry| entry.expect("an entry").path()) {
        let text = fs::read_to_string(&unit).expect("a unit");
        // The agent is not installed where tests run.
        let agent = program("klab-agent").display().to_string();
        let text = text.replace("/usr/local/bin/klab-agent", &agent);
        assert!(text.contains(&agent), "{} starts the agent", unit.display());
        let copy = folder.path().join(unit.file_name().expect("a name"));
        fs::write(&copy, text).expect("a copy");
        let said = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&copy)
            .output()
            .expect("it runs");
        let words = String::from_utf8_lossy(&said.stderr).into_owned();
        let about: Vec<_> = words.lines().filter(|line| line.contains("klab")).collect();
        assert!(about.is_empty(), "{}: {about:?}", unit.display());
        assert!(said.status.success(), "{}: {words}", unit.display());
        count += 1;
    }
    assert!(count > 0, "there are units");
}
