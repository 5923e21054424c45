//! Trees made with the real git, and mails made by hand.
#![allow(dead_code, missing_docs)] // Each test program uses a part of it.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use klab_series::{Options, Series, SeriesError, Source};
use tempfile::TempDir;

/// A tree in a temporary folder.
pub(crate) struct Repo {
    folder: TempDir,
    /// Seconds since 1970 of the next commit.
    clock: Cell<i64>,
}

impl Repo {
    pub(crate) fn new() -> Repo {
        let folder = tempfile::tempdir().unwrap();
        let clock = Cell::new(1_700_000_000);
        let repo = Repo { folder, clock };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let date = format!("{} +0000", self.clock.get());
        let mut git = Command::new("git");
        git.args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Jürgen Groß")
            .env("GIT_AUTHOR_EMAIL", "jg@example.org")
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_NAME", "C")
            .env("GIT_COMMITTER_EMAIL", "c@example.org")
            .env("GIT_COMMITTER_DATE", &date)
            .env("LC_ALL", "C.UTF-8");
        git
    }

    /// What git prints; it must succeed.
    #[track_caller]
    pub(crate) fn bytes(&self, arguments: &[&str]) -> Vec<u8> {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "git {arguments:?}: {said}");
        stdout
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.bytes(arguments))
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn make_executable(&self, path: &str) {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path().join(path), mode).unwrap();
    }

    /// Commits everything; gives the id.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str) -> String {
        self.clock.set(self.clock.get() + 60);
        self.git(&["add", "--all"]);
        self.git(&[
            "commit",
            "--quiet",
            "--allow-empty",
            "--cleanup=verbatim",
            "-m",
            message,
        ]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits `lines` numbered lines in `path`, one of them changed.
    #[track_caller]
    pub(crate) fn commit_lines(&self, path: &str, changed: usize, message: &str) -> String {
        let line = |n| {
            if n == changed {
                format!("{message}\n")
            } else {
                format!("line {n}\n")
            }
        };
        self.write(path, (0..20).map(line).collect::<String>());
        self.commit(message)
    }

    /// `TREE:range`, as people write it.
    pub(crate) fn range(&self, range: &str) -> Result<Series, SeriesError> {
        let text = format!("linux:{range}");
        let source = Source::parse(Path::new(&text), |_| self.path().to_owned())?;
        klab_series::read(&source, &Options::default())
    }

    /// Applies a series with the real `git am` on `base`; gives the tree that it makes.
    #[track_caller]
    pub(crate) fn am(&self, series: &Series, base: &str) -> String {
        let mbox = tempfile::NamedTempFile::new().unwrap();
        fs::write(mbox.path(), series.mbox()).unwrap();
        self.git(&["checkout", "--quiet", "--force", "--detach", base]);
        let mut arguments = vec!["am", "--quiet"];
        arguments.extend(series.am_options());
        arguments.push(mbox.path().to_str().unwrap());
        self.git(&arguments);
        self.git(&["rev-parse", "HEAD^{tree}"])
    }
}

/// A base with files of many kinds and a topic that changes all of them.
pub(crate) fn topic() -> Repo {
    let repo = Repo::new();
    let many: String = (0..30).map(|n| format!("int f{n}(void);\n")).collect();
    let crlf = many.replace('\n', "\r\n");
    repo.write("mm/a.c", &many);
    repo.write("mm/old.c", &many);
    repo.write("gone.c", &many);
    repo.write("crlf.txt", &crlf);
    repo.write("latin1.txt", b"gr\xfc\xdfe\n");
    repo.write("logo.bin", [0, 1, 2, 255].repeat(100));
    repo.write("run.sh", "#!/bin/sh\n");
    repo.write("a b/ü.c", "x\n");
    repo.commit("base");
    repo.git(&["tag", "v6.1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);

    repo.write("mm/a.c", many.replace("f3(", "g3("));
    let from = format!(
        "From {} Mon Sep 17 00:00:00 2001\nno mail\n",
        "a".repeat(40)
    );
    repo.commit(&format!(
        "mm: change a\n\nFrom here on\n>From there\n{from}\nReviewed-by: R <r@example.org>\n"
    ));
    repo.git(&["mv", "mm/old.c", "mm/new.c"]);
    repo.write("mm/new.c", many.replace("f7(", "g7("));
    repo.make_executable("run.sh");
    repo.commit("mm: rename, and a mode");
    repo.write("crlf.txt", crlf.replace("f9(", "g9("));
    repo.commit("crlf");
    repo.write("latin1.txt", b"gr\xf6\xdfer\n");
    repo.commit("latin1: größer\n\nMit Umlauten: äöü.\n");
    repo.write("logo.bin", [7, 0, 9].repeat(2000));
    repo.write("new.bin", [0; 5]);
    repo.write("empty", "");
    repo.commit("binary");
    repo.git(&["rm", "--quiet", "gone.c"]);
    repo.write("a b/ü.c", "y\n");
    repo.write("no-end", "no line end");
    std::os::unix::fs::symlink("mm/a.c", repo.path().join("link")).unwrap();
    repo.commit("[media] links and paths");
    repo
}

/// A patch of one new file, as it stands in a mail.
pub(crate) fn diff(path: &str) -> String {
    format!(
        "---\n {path} | 1 +\n 1 file changed, 1 insertion(+)\n\ndiff --git a/{path} b/{path}\n\
         new file mode 100644\nindex 000000000000..0123456789ab\n--- /dev/null\n+++ b/{path}\n\
         @@ -0,0 +1 @@\n+x\n-- \n2.47.3\n"
    )
}

/// A mail by hand.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub id: String,
    pub subject: String,
    pub parents: Vec<String>,
    pub text: String,
    pub header: String,
}

impl Letter {
    pub(crate) fn new(id: &str, subject: &str, text: &str) -> Letter {
        Letter {
            id: id.to_owned(),
            subject: subject.to_owned(),
            parents: Vec::new(),
            text: text.to_owned(),
            header: String::new(),
        }
    }

    pub(crate) fn answers(mut self, parents: &[&str]) -> Letter {
        self.parents = parents.iter().map(|id| format!("<{id}@x>")).collect();
        self
    }

    pub(crate) fn header(mut self, header: &str) -> Letter {
        self.header = format!("{header}\n");
        self
    }

    /// The mail with LF line ends.
    pub(crate) fn mail(&self) -> String {
        let mut mail = format!(
            "From: A <a@example.org>\nDate: Fri, 22 Sep 2023 13:01:02 +0200\nSubject: {}\n",
            self.subject
        );
        if !self.id.is_empty() {
            mail += &format!("Message-ID: <{}@x>\n", self.id);
        }
        if let Some(parent) = self.parents.last() {
            mail += &format!(
                "In-Reply-To: {parent}\nReferences: {}\n",
                self.parents.join(" ")
            );
        }
        mail + &self.header + "\n" + &self.text
    }
}

/// Mails as one mailbox, as lore.kernel.org gives a thread.
pub(crate) fn mbox(letters: &[Letter]) -> Vec<u8> {
    let mails: Vec<String> = letters.iter().map(Letter::mail).collect();
    klab_series::write_mbox(mails.iter().map(String::as_bytes))
}

pub(crate) fn read(bytes: &[u8]) -> Result<Series, SeriesError> {
    klab_series::read_bytes("thread.mbox", bytes, &Options::default())
}

pub(crate) fn revision(bytes: &[u8], revision: u32) -> Result<Series, SeriesError> {
    let options = Options {
        revision: Some(revision),
    };
    klab_series::read_bytes("thread.mbox", bytes, &options)
}

/// `1 mm: a`, `2 mm: b`.
pub(crate) fn subjects(series: &Series) -> Vec<String> {
    let line = |patch: &klab_series::Patch| format!("{} {}", patch.number, patch.subject);
    series.patches.iter().map(line).collect()
}

/// Warnings, without the place they begin with.
pub(crate) fn warnings(series: &Series) -> Vec<String> {
    series.warnings.iter().map(ToString::to_string).collect()
}

/// An error with its causes, as the command line prints it.
pub(crate) fn told(error: &SeriesError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
