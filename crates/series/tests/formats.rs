//! Files and folders of every kind give the same series.
#![allow(missing_docs)]

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use klab_series::{Options, Series, SeriesError, Source, limits};
use support::{Repo, subjects, told, warnings};
use tempfile::TempDir;

/// Three patches with a cover letter, as git writes them into one mailbox.
struct Fixture {
    repo: Repo,
    folder: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let repo = Repo::new();
        repo.commit_lines("a.c", 99, "base");
        repo.git(&["tag", "v6.1"]);
        for n in 1..=3 {
            repo.commit_lines("a.c", n, &format!("a: Änderung {n}"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        Fixture { repo, folder }
    }

    fn mbox(&self) -> Vec<u8> {
        let options = [
            "--stdout",
            "--cover-letter",
            "-v2",
            "--thread",
            "--base=v6.1",
        ];
        self.repo
            .bytes(&[&["format-patch"], &options[..], &["v6.1..main"]].concat())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> std::path::PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, bytes).expect("written");
        path
    }
}

fn read(path: &Path) -> Result<Series, SeriesError> {
    klab_series::read(&Source::Path(path.to_owned()), &Options::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

/// Whether it is the fixture's series; `cover` if its cover letter came along.
#[track_caller]
fn check(fixture: &Fixture, series: &Series, cover: bool) {
    let expected = ["1 a: Änderung 1", "2 a: Änderung 2", "3 a: Änderung 3"];
    assert_eq!(subjects(series), expected);
    assert_eq!((series.revision, series.cover.is_some()), (2, cover));
    let base = fixture.repo.git(&["rev-parse", "v6.1"]);
    assert_eq!(
        series.dependencies.base_commit(),
        cover.then_some(base.as_str())
    );
    let tree = fixture.repo.am(series, "v6.1");
    assert_eq!(tree, fixture.repo.git(&["rev-parse", "main^{tree}"]));
}

/// The mails of the fixture, cover letter first.
fn mails(fixture: &Fixture) -> Vec<Vec<u8>> {
    let series = klab_series::read_bytes("x", &fixture.mbox(), &Options::default());
    let mut mails: Vec<Vec<u8>> = Vec::new();
    let text = String::from_utf8(fixture.mbox()).expect("UTF-8");
    let cover = text.split("\nFrom ").next().expect("a cover letter");
    let (_, cover) = cover.split_once('\n').expect("a separator");
    mails.push(cover.as_bytes().to_vec());
    mails.extend(
        series
            .expect("a series")
            .patches
            .into_iter()
            .map(|patch| patch.raw),
    );
    mails
}

#[test]
fn mailboxes() {
    let fixture = Fixture::new();
    let git = fixture.mbox();
    check(
        &fixture,
        &read(&fixture.write("git.mbox", &git)).expect("git's"),
        true,
    );
    check(
        &fixture,
        &read(&fixture.write("git.mbox.gz", gzip(&git))).expect("gzip"),
        true,
    );
    let mails = mails(&fixture);
    let lore = klab_series::write_mbox(mails.iter().rev().map(Vec::as_slice));
    check(
        &fixture,
        &read(&fixture.write("t.mbox.gz", gzip(&lore))).expect("lore's"),
        true,
    );
    let mut mutt = Vec::new();
    for mail in &mails {
        mutt.extend(b"From jg@example.org Fri Sep 22 13:01:02 2023\n");
        mutt.extend(mail);
        mutt.extend(b"\n");
    }
    check(
        &fixture,
        &read(&fixture.write("mutt", &mutt)).expect("mutt's"),
        true,
    );
    // Without the cover letter the first patch leads, and nothing names the base.
    let patches = klab_series::write_mbox(mails[1..].iter().map(Vec::as_slice));
    let series = read(&fixture.write("patches", &patches)).expect("patches");
    check(&fixture, &series, false);
    assert_eq!(series.subject, "a: Änderung 1");
}

#[test]
fn folders() {
    let fixture = Fixture::new();
    let patches = fixture.path("patches");
    let output = patches.to_str().expect("UTF-8");
    fixture.repo.git(&[
        "format-patch",
        "--quiet",
        "--cover-letter",
        "-v2",
        "--base=v6.1",
        "-o",
        output,
        "v6.1..main",
    ]);
    fixture.write("patches/.hidden.patch", "nothing");
    fixture.write("patches/series", "a quilt's list");
    check(
        &fixture,
        &read(&patches).expect("a folder of patches"),
        true,
    );
    for (n, mail) in mails(&fixture).iter().enumerate() {
        let part = if n % 2 == 0 { "cur" } else { "new" };
        fixture.write(&format!("maildir/{part}/17{n}.M{n}.host:2,S"), mail);
        fixture.write(&format!("eml/{}.eml", 9 - n), mail);
    }
    fixture.write("maildir/tmp/half", "Subject: half");
    check(
        &fixture,
        &read(&fixture.path("maildir")).expect("a maildir"),
        true,
    );
    check(
        &fixture,
        &read(&fixture.path("eml")).expect("saved mails"),
        true,
    );
}

#[test]
fn what_git_send_email_sends() {
    let fixture = Fixture::new();
    let outbox = fixture.path("outbox");
    fs::create_dir_all(outbox.join("new")).expect("made");
    // A sendmail that keeps what it is given.
    let script = format!(
        "#!/bin/sh\ncat > {0}/new/$(ls {0}/new | wc -l).mail\n",
        outbox.display()
    );
    let sendmail = fixture.write("sendmail", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&sendmail, mode).expect("executable");
    let server = format!("--smtp-server={}", sendmail.display());
    let sent = fixture
        .repo
        .command(&[
            "send-email",
            "-v2",
            "--to=list@example.org",
            "--confirm=never",
            "--quiet",
            "--annotate",
            "--cover-letter",
            "--base=v6.1",
            "--8bit-encoding=UTF-8",
            "--transfer-encoding=base64",
            "--suppress-cc=all",
            "--force",
            &server,
            "v6.1..main",
        ])
        .env(
            "GIT_EDITOR",
            "sed -i 's/^Subject: .*HERE.*/Subject: [PATCH v2 0\\/3] a: faster/'",
        )
        .output()
        .expect("git starts");
    if !sent.status.success() {
        // Debian has git-send-email in a package of its own.
        let said = String::from_utf8_lossy(&sent.stderr);
        println!(
            "skipped: what_git_send_email_sends: {}",
            said.lines().next().unwrap_or_default()
        );
        return;
    }
    let series = read(&outbox).expect("a series");
    check(&fixture, &series, true);
    assert_eq!(series.subject, "a: faster");
}

#[test]
fn limits_of_files() {
    let fixture = Fixture::new();
    let one = "From a@b Fri Sep 22 13:01:02 2023\nSubject: [PATCH] a\n\n";
    let line = "x".repeat(99) + "\n";
    // 100 MB, and 100 MB that are small as long as nobody looks into them.
    let mut big = one.as_bytes().to_vec();
    while big.len() < 100_000_000 {
        big.extend(line.bytes());
    }
    let bomb = gzip(&big);
    let mut said = String::new();
    let many = one.repeat(limits::MAX_MAILS + 1);
    let mut cut = gzip(one.as_bytes());
    cut.truncate(30);
    for (name, bytes) in [
        ("big.mbox", big.as_slice()),
        ("bomb.mbox.gz", &bomb),
        ("many.mbox", many.as_bytes()),
        ("cut.mbox.gz", &cut),
        ("empty.mbox", b""),
        ("blank.mbox", b"\n\n \r\n"),
    ] {
        let path = fixture.write(name, bytes);
        let error = told(&read(&path).expect_err(name));
        said += &format!(
            "{}\n",
            error.replace(&fixture.folder.path().display().to_string(), "F")
        );
    }
    fixture.write("nothing/README", "x");
    fixture.write("torn/0001.patch", "");
    fs::create_dir_all(fixture.path("maildir/cur")).expect("made");
    for name in ["nothing", "torn", "maildir", "absent"] {
        let error = told(&read(&fixture.path(name)).expect_err(name));
        said += &format!(
            "{}\n",
            error.replace(&fixture.folder.path().display().to_string(), "F")
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn mails_that_cannot_be_read_are_left_out_unless_they_hold_a_patch() {
    let fixture = Fixture::new();
    let mails = mails(&fixture);
    for (n, mail) in mails.iter().enumerate() {
        fixture.write(&format!("maildir/cur/{n}"), mail);
    }
    fixture.write("maildir/cur/9", "no header\n");
    let series = read(&fixture.path("maildir")).expect("a series");
    check(&fixture, &series, true);
    assert!(warnings(&series)[0].contains("cur/9: mail 1 (line 1): no mail header"));
    let diff = fixture.repo.git(&["diff", "v6.1"]);
    fixture.write("maildir/cur/9", diff);
    let error = told(&read(&fixture.path("maildir")).expect_err("a bare diff"));
    assert!(
        error.contains("make patches with `git format-patch`"),
        "{error}"
    );
}
