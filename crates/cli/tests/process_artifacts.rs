//! `klab artifacts`: lists, and files that are whole or are not there.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use klab_model::Digest;
use serde_json::{Value, json};
use support::board::{Board, done};
use support::{Lab, Told, write};

/// Larger than what travels at once.
fn trace() -> Vec<u8> {
    (0..600_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A lab with one job that has ended. One artifact is named like a part of another.
fn lab_with_artifacts() -> Lab {
    let lab = Lab::ready();
    let mut board = Board::connect(lab.address(), "b1");
    lab.submit("b1", &["--rounds", "1"]);
    let artifacts: [(&str, &str, &[u8]); 3] = [
        ("trace.txt", "trace", &trace()),
        ("trace.txt.part", "log", b"a name like any other"),
        ("empty", "log", b""),
    ];
    board.work(&artifacts, done());
    lab
}

fn listed(lab: &Lab) -> Vec<Value> {
    let list = lab.klab(&["artifacts", "list", "last", "--json"]).json();
    list.as_array().unwrap().clone()
}

fn named(lab: &Lab, name: &str) -> Value {
    let found = listed(lab).into_iter().find(|a| a["name"] == name);
    found.unwrap()
}

/// Where `artifacts get` puts the artifacts of the only trial.
fn place(lab: &Lab, folder: &str) -> PathBuf {
    let run = named(lab, "trace.txt")["run"].clone();
    let run = lab.path().join(folder).join(run.as_str().unwrap());
    run.join("attempt-1/trial-1")
}

/// The file in which the controller keeps an artifact.
fn object(lab: &Lab, name: &str) -> PathBuf {
    let digest = named(lab, name)["digest"].clone();
    let (first, rest) = digest.as_str().unwrap().split_at(2);
    let path = lab.path().join("controller/objects").join(first).join(rest);
    assert!(path.is_file(), "{}", path.display());
    path
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Standard error of a command that failed because of this machine or the lab.
#[track_caller]
fn failed(told: &Told) -> &str {
    assert_eq!((told.code, told.out.as_str()), (3, ""), "{told:?}");
    &told.err
}

#[test]
fn process_artifacts_list_names_run_attempt_and_trial() {
    let lab = lab_with_artifacts();
    let all = listed(&lab);
    assert_eq!(all.len(), 3);
    let trace = named(&lab, "trace.txt");
    let expected = json!({
        "id": trace["id"],
        "run": trace["run"],
        "attempt": 1,
        "trial": 1,
        "name": "trace.txt",
        "kind": "trace",
        "digest": Digest::of(&self::trace()).to_string(),
        "size": 2_400_000,
    });
    assert_eq!(trace, expected);
    let table = lab.klab(&["artifacts", "list", "last"]);
    let mut lines = table
        .ok()
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    let head = [
        "ARTIFACT", "RUN", "ATTEMPT", "TRIAL", "NAME", "KIND", "BYTES",
    ];
    assert_eq!(lines.next().unwrap(), head);
    let [id, run] = ["id", "run"].map(|field| trace[field].as_str().unwrap());
    assert!(lines.any(|line| line == [id, run, "1", "1", "trace.txt", "trace", "2400000"]));
}

#[test]
fn process_artifacts_get_puts_every_file_in_its_place() {
    let lab = lab_with_artifacts();
    let folder = place(&lab, "artifacts");
    let told = lab.klab(&["artifacts", "get", "last"]);
    assert_eq!(names(&folder), ["empty", "trace.txt", "trace.txt.part"]);
    assert!(fs::read(folder.join("trace.txt")).unwrap() == trace());
    let other = fs::read(folder.join("trace.txt.part")).unwrap();
    assert_eq!(other, b"a name like any other");
    for line in told.ok().lines() {
        assert!(lab.path().join(line).starts_with(&folder), "{line}");
    }
    assert_eq!(told.ok().lines().count(), 3);
    // What is there already is not fetched again; what differs is replaced.
    write(&folder, "trace.txt.part", "changed");
    fs::remove_file(object(&lab, "trace.txt")).unwrap();
    let again = lab.klab(&["artifacts", "get", "last", "--json"]).json();
    let paths: Vec<&str> = told.ok().lines().collect();
    assert_eq!(again, json!(paths));
    assert_eq!(fs::read(folder.join("trace.txt.part")).unwrap(), other);
}

#[test]
fn process_artifacts_get_takes_the_id_of_one_artifact() {
    let lab = lab_with_artifacts();
    let id = named(&lab, "trace.txt.part")["id"].clone();
    let words = ["artifacts", "get", id.as_str().unwrap(), "-o", "out"];
    let path = place(&lab, "out").join("trace.txt.part");
    let told = lab.klab(&words);
    assert_eq!(lab.path().join(told.ok().trim_end()), path);
    assert_eq!(names(path.parent().unwrap()), ["trace.txt.part"]);
    let unknown = "01990000-0000-7000-8000-00000000000b";
    let told = lab.klab(&["artifacts", "get", unknown]);
    let expected = format!(
        "klab: there is no job and no artifact {unknown:?}; `klab jobs` and `klab artifacts list \
         JOB` list them\n"
    );
    assert_eq!(told.refused(), expected);
}

#[test]
fn process_artifacts_of_a_job_that_has_none_are_an_empty_list() {
    let lab = Lab::ready();
    lab.submit("b1", &[]);
    assert_eq!(listed(&lab), [] as [Value; 0]);
    let told = lab.klab(&["artifacts", "get", "last"]);
    assert_eq!((told.code, told.out.as_str()), (0, ""));
    assert_eq!(told.err, "there are no artifacts yet\n");
    assert_eq!(lab.klab(&["artifacts", "get", "last", "--quiet"]).ok(), "");
    let none = lab.klab(&["artifacts", "get", "last", "--json", "--quiet"]);
    assert_eq!(none.json(), json!([]));
}

#[test]
fn process_artifacts_get_refuses_bytes_that_do_not_have_the_digest() {
    let lab = lab_with_artifacts();
    let id = named(&lab, "trace.txt")["id"].clone();
    let words = ["artifacts", "get", id.as_str().unwrap()];
    let folder = place(&lab, "artifacts");
    let object = object(&lab, "trace.txt");
    let mut damaged = trace();
    damaged[0] ^= 1;
    fs::write(&object, &damaged).unwrap();
    let damage = "klab: artifact trace.txt arrived damaged (digest differs); get it again\n";
    assert_eq!(failed(&lab.klab(&words)), damage);
    assert_eq!(names(&folder), [] as [&str; 0], "nothing of it is kept");
    // Only what follows a part is fetched, so the damage before it does not matter.
    write(&folder, ".trace.txt.part", &trace()[..1000]);
    lab.klab(&words).ok();
    assert!(fs::read(folder.join("trace.txt")).unwrap() == trace());
    assert_eq!(names(&folder), ["trace.txt"]);
    // A part that does not fit is thrown away.
    fs::write(&object, trace()).unwrap();
    for part in [&b"nonsense"[..], &[0; 2_400_000], &[0; 2_500_000]] {
        fs::remove_file(folder.join("trace.txt")).unwrap();
        write(&folder, ".trace.txt.part", part);
        lab.klab(&words).ok();
        assert!(fs::read(folder.join("trace.txt")).unwrap() == trace());
        assert_eq!(names(&folder), ["trace.txt"]);
    }
}

#[test]
fn process_artifacts_get_says_what_cannot_be_written() {
    let lab = lab_with_artifacts();
    let id = named(&lab, "trace.txt")["id"].clone();
    let get = ["artifacts", "get", id.as_str().unwrap(), "-o"];
    let get = |folder| [&get[..], &[folder]].concat();
    write(lab.path(), "file", "x");
    let told = lab.klab(&get("file"));
    let said = failed(&told);
    assert!(
        said.starts_with("klab: cannot make the folder file/"),
        "{said}"
    );
    assert!(said.ends_with("Not a directory (os error 20)\n"), "{said}");
    fs::create_dir_all(place(&lab, "taken").join("trace.txt")).unwrap();
    let told = lab.klab(&get("taken"));
    let said = failed(&told);
    assert!(said.starts_with("klab: cannot write taken/"), "{said}");
    assert!(
        said.ends_with("trace.txt: Is a directory (os error 21)\n"),
        "{said}"
    );
}

#[test]
fn process_artifacts_get_goes_on_where_a_full_disk_ended_it() {
    let lab = lab_with_artifacts();
    let id = named(&lab, "trace.txt")["id"].clone();
    let get = ["artifacts", "get", id.as_str().unwrap()];
    let folder = place(&lab, "artifacts");
    // Files may not grow beyond 1000 blocks of 512 bytes: as good as a full disk.
    let klab = lab.command(&get);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"])
        .arg(klab.get_program())
        .args(klab.get_args())
        .current_dir(lab.path())
        .env("KLAB_CONTROLLER", lab.address());
    let told = Told::by(&mut limited);
    let said = failed(&told);
    assert!(said.starts_with("klab: cannot write artifacts/"), "{said}");
    assert!(
        said.ends_with(".trace.txt.part: File too large (os error 27)\n"),
        "{said}"
    );
    assert_eq!(
        names(&folder),
        [".trace.txt.part"],
        "nothing looks whole that is not"
    );
    let kept = fs::metadata(folder.join(".trace.txt.part")).unwrap().len();
    assert!(kept > 0);
    lab.klab(&get).ok();
    assert!(fs::read(folder.join("trace.txt")).unwrap() == trace());
    assert_eq!(names(&folder), ["trace.txt"]);
}
