//! The real builder, and a kernel tree that it builds in a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kernels::SmallKernel;
use crate::programs::program;
use crate::repository;

/// What the small tree's kernels call themselves.
pub const SMALL_RELEASE: &str = "6.1.0-small";

/// A `klab-agent --role builder` of its own.
#[derive(Debug)]
pub struct BuilderProcess {
    folder: PathBuf,
    child: Child,
}

impl BuilderProcess {
    /// Starts a builder called `name` in a folder of that name below `folder`.
    ///
    /// # Panics
    /// If that is not possible.
    #[must_use]
    pub fn start(folder: &Path, name: &str, controller: &str) -> Self {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let config = format!(
            "builder: {name}\ncontroller: {controller}\nfolder: {}\njobs: 2\narchs: [x86_64]\n",
            folder.join("work").display()
        );
        fs::write(folder.join("builder.yaml"), config).expect("a configuration");
        let child = Self::spawn(&folder);
        Self { folder, child }
    }

    fn spawn(folder: &Path) -> Child {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("builder.log"))
            .expect("a log");
        Command::new(program("klab-agent"))
            .args(["--role", "builder", "--config"])
            .arg(folder.join("builder.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the builder starts")
    }

    /// Starts it again after [`BuilderProcess::kill`].
    pub fn start_again(&mut self) {
        self.child = Self::spawn(&self.folder);
    }

    /// Kills it with SIGKILL.
    ///
    /// # Panics
    /// If it was gone already.
    pub fn kill(&mut self) {
        self.child.kill().expect("the builder runs");
        self.child.wait().expect("the builder ends");
    }

    /// A file below its work folder.
    #[must_use]
    pub fn work(&self, below: &str) -> PathBuf {
        self.folder.join("work").join(below)
    }

    /// What it wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("builder.log")).unwrap_or_default()
    }
}

impl Drop for BuilderProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            crate::tell(&format!("the builder's log:\n{}", self.log()));
        }
    }
}

/// A git repository with a kernel tree in small: real make, real compiler, seconds to build.
#[derive(Debug)]
pub struct SmallTree(PathBuf);

impl SmallTree {
    /// Makes one below `folder`, with one commit and the tag `v1`.
    ///
    /// # Panics
    /// If that is not possible.
    #[must_use]
    pub fn create(folder: &Path) -> Self {
        let tree = Self(folder.join("tree"));
        copy(&repository().join("crates/build/tests/tree"), &tree.0);
        let image = SmallKernel::new(SMALL_RELEASE, 7).bz_image();
        let boot = tree.0.join("arch/x86/boot");
        fs::create_dir_all(&boot).expect("a folder");
        fs::write(boot.join("bzImage"), image).expect("an image");
        tree.git(&["init", "--quiet", "--initial-branch=main"]);
        tree.commit("small tree", &[]);
        tree.git(&["tag", "v1"]);
        tree
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Commits everything, with these files written before.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn commit(&self, subject: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(self.0.join(name), text).expect("a file of the tree");
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
    }

    /// Runs git in the tree.
    ///
    /// # Panics
    /// If it fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.0)
            .args(["-c", "user.name=ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a file");
        }
    }
}
