//! The small kernel tree of `tests/tree` in a developer's repository.

use std::fs;
use std::path::{Path, PathBuf};

use klab_build::{
    BaseConfig, BuildError, BuildEvent, BuildOptions, BuildRequest, Builder, Built, Cancel,
    ConfigRequest, Fragment, Priority, Progress, Toolchain, Tree,
};
use klab_model::Arch;
use klab_testkit::{SmallKernel, skip};

use super::Desk;

/// What the small tree's Makefile says.
pub const RELEASE: &str = "6.1.0-small";

/// A desk with the small tree, and a builder over it.
pub struct Bench {
    pub desk: Desk,
    pub tree: Tree,
    pub options: BuildOptions,
}

impl Bench {
    /// Nothing where kernels cannot be built at all; then it is said why.
    pub fn new(test: &str) -> Option<Self> {
        let cancel = Cancel::new().expect("token");
        if let Err(error) = Toolchain::detect(Arch::X86_64, &cancel) {
            skip(test, &error.chain());
            return None;
        }
        let mut desk = Desk::new();
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree"),
            &desk.repo(),
        );
        let boot = desk.repo().join("arch/x86/boot");
        fs::create_dir_all(&boot).expect("folder");
        let image = SmallKernel::new(RELEASE, 7).bz_image();
        fs::write(boot.join("bzImage"), image).expect("image");
        desk.commit("small tree", &[]);
        let tree = desk.tree();
        let options = BuildOptions {
            ccache: false,
            jobs: 2,
            priority: Priority::Normal,
            ..BuildOptions::default()
        };
        Some(Self {
            desk,
            tree,
            options,
        })
    }

    /// Commits files over what the developer has, and fetches.
    pub fn commit(&mut self, files: &[(&str, &str)]) {
        self.desk.commit("change", files);
        let tree = &self.tree;
        self.desk.watched(|w| tree.fetch(w)).expect("fetches");
    }

    pub fn log(&self) -> PathBuf {
        self.desk.path().join("log")
    }

    pub fn read_log(&self) -> String {
        fs::read_to_string(self.log()).expect("log")
    }

    pub fn build(&mut self, revision: &str) -> Result<Built, BuildError> {
        self.build_with(revision, &modules())
    }

    /// Builds; the events are those of this build only.
    pub fn build_with(
        &mut self,
        revision: &str,
        config: &ConfigRequest,
    ) -> Result<Built, BuildError> {
        let builder = Builder::open(&self.desk.klab(), self.options.clone()).expect("opens");
        let (tree, log) = (self.tree.clone(), self.log());
        self.desk.events.clear();
        self.desk.watched(|watcher| {
            let commit = tree.resolve(revision, watcher).expect("a commit");
            let request = BuildRequest {
                tree: &tree,
                commit: &commit,
                config,
                arch: Arch::X86_64,
                log: &log,
            };
            builder.build(&request, watcher)
        })
    }

    /// The progress that the last build told.
    pub fn progress(&self) -> Vec<Progress> {
        let progress = |event: &BuildEvent| match event {
            BuildEvent::Progress(progress) => Some(progress.clone()),
            _ => None,
        };
        self.desk.events.iter().filter_map(progress).collect()
    }
}

/// tinyconfig with these lines over it.
pub fn config(lines: &str) -> ConfigRequest {
    ConfigRequest {
        base: BaseConfig::target("tinyconfig").expect("target"),
        fragments: vec![Fragment::parse("test.config", lines).expect("fragment")],
        allow_untaken: false,
    }
}

pub fn modules() -> ConfigRequest {
    config("CONFIG_MODULES=y\n")
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&to).expect("folder");
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copy");
        }
    }
}
