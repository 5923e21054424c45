//! `klab series show`: what is printed of a series, and how bad ones are refused.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use support::{Told, command, klab, write};
use tempfile::TempDir;

fn git(tree: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(arguments)
        .current_dir(tree)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000");
    for (who, name) in [("AUTHOR", "Jürgen Groß"), ("COMMITTER", "C")] {
        git.env(format!("GIT_{who}_NAME"), name);
        git.env(format!("GIT_{who}_EMAIL"), "jg@example.org");
    }
    let told = Told::by(&mut git);
    assert_eq!(told.code, 0, "git {arguments:?}: {}", told.err);
    told.out
}

/// A folder with the tree `linux`: `v6.6`, and two commits on top of it on `main`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("linux");
    let lines =
        |name: &str| -> String { (1..40).map(|n| format!("int {name}{n}(void);\n")).collect() };
    write(&tree, "mm/vmscan.c", lines("f"));
    write(&tree, "mm/swap.c", lines("s"));
    git(&tree, &["init", "--quiet", "--initial-branch=main"]);
    let commit = |message: &str| {
        git(&tree, &["add", "--all"]);
        git(&tree, &["commit", "--quiet", "-m", message]);
    };
    commit("base");
    git(&tree, &["tag", "v6.6"]);
    write(&tree, "mm/vmscan.c", lines("f").replace("f3(", "g3("));
    commit("mm/vmscan: rename f3\n\nSigned-off-by: Jürgen Groß <jg@example.org>");
    std::fs::rename(tree.join("mm/swap.c"), tree.join("mm/swap_main.c")).unwrap();
    write(&tree, "mm/swap_main.c", lines("s").replace("s9(", "t9("));
    write(&tree, "mm/logo.bin", [0, 1, 2, 255]);
    commit("mm/swap: another name");
    folder
}

/// The thread of the two commits as v2, with an answer and a reviewer.
fn thread(folder: &Path) -> String {
    let options = "format-patch --stdout --binary --thread -v2 --base=v6.6 v6.6..main";
    let options: Vec<&str> = options.split(' ').collect();
    let patches = git(&folder.join("linux"), &options);
    // Git makes ids of the time.
    let ids = patches
        .lines()
        .filter_map(|line| line.strip_prefix("Message-ID: "));
    let named = ids.zip(1..).fold(patches.clone(), |text, (id, n)| {
        text.replace(id, &format!("<p{n}@example.org>"))
    });
    let reply = "From r@example.org Tue Nov 14 22:13:20 2023\nFrom: R <r@example.org>\n\
                 Subject: Re: [PATCH v2 1/2] mm/vmscan: rename f3\nMessage-ID: <r1@example.org>\n\
                 In-Reply-To: <p1@example.org>\n\n> It is g3 now.\n\
                 Reviewed-by: R <r@example.org>\n";
    named + reply
}

#[test]
fn process_series_show_prints_what_is_understood() {
    let folder = folder();
    write(folder.path(), "v2.mbox", thread(folder.path()));
    assert_snapshot!(klab(folder.path(), &["series", "show", "v2.mbox"]).ok());
    let tree = ["series", "show", "v2.mbox", "--tree", "linux"];
    let told = klab(folder.path(), &tree);
    assert!(
        told.ok().contains(", which is in the tree\n"),
        "{}",
        told.out
    );
    let unnamed = thread(folder.path()).replace("base-commit: ", "base: ");
    write(folder.path(), "unnamed.mbox", unnamed);
    assert_snapshot!(
        klab(
            folder.path(),
            &["series", "show", "unnamed.mbox", "--tree", "linux"]
        )
        .ok()
    );
}

#[test]
fn process_series_show_reads_folders_ranges_and_standard_input() {
    let folder = folder();
    git(
        &folder.path().join("linux"),
        &["format-patch", "--quiet", "-o", "../out", "v6.6..main"],
    );
    let range = klab(
        folder.path(),
        &["series", "show", "linux:v6.6..main", "--json"],
    )
    .json();
    let patches = klab(folder.path(), &["series", "show", "out", "--json"]).json();
    // Git numbers both alike; only the range knows its base.
    assert_eq!(range["patches"], patches["patches"]);
    assert_eq!(
        (range["revision"].as_u64(), patches["revision"].as_u64()),
        (Some(1), Some(1))
    );
    assert_eq!(patches["base_commit"], "");
    let base = git(&folder.path().join("linux"), &["rev-parse", "v6.6"]);
    assert_eq!(range["base"]["commit"], base.trim_end());
    let mut show = command(folder.path(), &["series", "show", "-", "--json"]);
    show.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = show.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(thread(folder.path()).as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let piped: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (
            piped["revision"].as_u64(),
            piped["patches"].as_array().map(Vec::len)
        ),
        (Some(2), Some(2))
    );
    assert_eq!(
        piped["patches"][0]["trailers"][1]["reply"],
        "r1@example.org"
    );
}

#[test]
fn process_series_show_refuses_with_place_and_mend() {
    let folder = folder();
    let thread = thread(folder.path());
    let cut = thread.split_once("GIT binary patch").unwrap().0;
    let second = thread.find("\nFrom ").unwrap() + 1;
    write(folder.path(), "v2.mbox", &thread);
    write(folder.path(), "first.mbox", &thread[..second]);
    write(
        folder.path(),
        "cut.mbox",
        format!("{cut}GIT binary patch\nliteral 4\n"),
    );
    write(
        folder.path(),
        "evil.mbox",
        thread.replace("/mm/vmscan.c", "/../../etc/passwd"),
    );
    write(folder.path(), "empty.mbox", "");
    write(folder.path(), "other/readme", "x");
    git(&folder.path().join("other"), &["init", "--quiet"]);
    let mut said = String::new();
    for arguments in [
        "first.mbox",
        "cut.mbox",
        "evil.mbox",
        "empty.mbox",
        "other",
        "absent.mbox",
        "v2.mbox --revision 3",
        "v2.mbox --tree other",
        "v2.mbox --tree absent",
        "linux:v6.6..nope",
        "linux:main..v6.6",
        "nowhere:a..b",
    ] {
        let words = [vec!["series", "show"], arguments.split(' ').collect()].concat();
        said += &format!("{arguments}\n  {}", klab(folder.path(), &words).refused());
    }
    let tree = git(&folder.path().join("linux"), &["rev-parse", "v6.6"]);
    assert_snapshot!(said.replace(tree.trim_end(), "BASE"));
}

#[test]
fn process_series_show_prints_hostile_text_so_that_it_only_shows() {
    let folder = folder();
    let hostile = "mm: \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}evil\u{2066}";
    let thread = thread(folder.path()).replace("mm/vmscan: rename f3", hostile);
    write(
        folder.path(),
        "hostile.mbox",
        thread.replace("R <r@", "\u{9b}31mR <r@"),
    );
    for more in [&[][..], &["--json"]] {
        let words = [&["series", "show", "hostile.mbox"], more].concat();
        let told = klab(folder.path(), &words);
        let acts = ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2066}'];
        assert!(
            told.ok().contains("u{1b}[2J") && !told.out.contains(acts),
            "{}",
            told.out
        );
    }
}

#[test]
fn process_series_show_without_git_is_an_error_of_the_machine() {
    let folder = folder();
    let show = ["series", "show", "linux:v6.6..main"];
    let told = Told::by(command(folder.path(), &show).env("PATH", "/nonexistent"));
    assert_eq!((told.code, told.out.as_str()), (3, ""));
    assert!(
        told.err
            .starts_with("klab: cannot start git: is it installed?"),
        "{}",
        told.err
    );
}

#[test]
fn process_series_show_heeds_what_the_user_allows_git() {
    let folder = folder();
    // Somebody else's tree, which git reads only where the user said so.
    let mut chown = Command::new("chown");
    chown
        .args(["-R", "54321", "linux"])
        .current_dir(folder.path());
    if Told::by(&mut chown).code != 0 {
        let name = "process_series_show_heeds_what_the_user_allows_git";
        println!("skipped: {name}: only root gives files away");
        return;
    }
    let show = |home: &str| {
        let home = folder.path().join(home);
        std::fs::create_dir_all(&home).unwrap();
        let mut show = command(folder.path(), &["series", "show", "linux:v6.6..main"]);
        show.env("HOME", &home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("SUDO_UID");
        Told::by(show.env_remove("GIT_CONFIG_GLOBAL"))
    };
    write(folder.path(), "strict/.gitconfig", "");
    write(folder.path(), "lax/.gitconfig", "[safe]\n\tdirectory = *\n");
    write(
        folder.path(),
        "taken-back/.gitconfig",
        "[safe]\n\tdirectory = *\n\tdirectory =\n",
    );
    assert!(show("lax").ok().contains("mm/vmscan: rename f3"));
    for home in ["strict", "taken-back"] {
        let told = show(home);
        assert!(
            told.refused().contains("dubious ownership"),
            "{home}: {told:?}"
        );
    }
}
