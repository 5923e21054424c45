//! Real kernels from Debian's linux-source-6.1. They take minutes, so they run only when asked
//! for: `KLAB_REAL_KERNEL=yes` unpacks the package's archive, `KLAB_REAL_KERNEL=FOLDER` takes a
//! git repository with that source at its branch `master`.
#![allow(missing_docs, clippy::print_stdout)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use klab_build::{
    BaseConfig, BuildEvent, BuildOptions, BuildRequest, Builder, Built, Cancel, ConfigRequest,
    Fragment, RawPatch, TotalFrom, TreeSource, Watcher,
};
use klab_model::Arch;
use klab_testkit::{repository, skip};

const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";
const WANTED: &str = "KLAB_REAL_KERNEL";

/// A git repository with the source, or nothing; then it is said why.
fn source(test: &str) -> Option<PathBuf> {
    match std::env::var_os(WANTED) {
        None => {
            skip(test, &format!("takes minutes: set {WANTED}=yes"));
            None
        }
        Some(folder) if folder != "yes" => Some(folder.into()),
        Some(_) if !Path::new(ARCHIVE).is_file() => {
            skip(test, &format!("no {ARCHIVE}: install linux-source-6.1"));
            None
        }
        Some(_) => Some(unpacked()),
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("starts");
    assert!(status.success(), "{command:?}: {status}");
}

/// The unpacked archive as a repository of one commit; kept in cargo's temporary folder.
fn unpacked() -> PathBuf {
    let top = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux-source");
    let done = top.join("linux-source-6.1");
    if done.join(".git/klab-done").is_file() {
        return done;
    }
    let _ = fs::remove_dir_all(&top);
    fs::create_dir_all(&top).expect("folder");
    run(Command::new("tar").arg("xf").arg(ARCHIVE).current_dir(&top));
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=klab", "-c", "user.email=klab@example.org"];
        run(Command::new("git")
            .args(who)
            .args(args)
            .current_dir(&done)
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000"));
    };
    git(&["init", "--quiet", "--initial-branch=master"]);
    git(&["add", "--all", "--force"]);
    git(&["commit", "--quiet", "--message=linux-source-6.1"]);
    fs::write(done.join(".git/klab-done"), "").expect("file");
    done
}

fn fragment(name: &str) -> Fragment {
    let path = repository().join("configs/kernel").join(name);
    let text = fs::read_to_string(&path).expect("a fragment");
    Fragment::parse(name, &text).expect("parses")
}

/// A builder in a folder of its own.
struct Bench {
    folder: tempfile::TempDir,
    builder: Builder,
    cancel: Cancel,
    total_from: Vec<TotalFrom>,
    first_total: u64,
}

impl Bench {
    fn new(ccache: bool) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("folder");
        let options = BuildOptions {
            ccache,
            ..BuildOptions::default()
        };
        Self {
            builder: Builder::open(&folder.path().join("klab"), options).expect("opens"),
            folder,
            cancel: Cancel::new().expect("token"),
            total_from: Vec::new(),
            first_total: 0,
        }
    }

    /// Builds the source with the first `patches` patches of the series.
    fn build(&mut self, source: &Path, config: &ConfigRequest, patches: usize) -> Built {
        let (total_from, first_total) = (&mut self.total_from, &mut self.first_total);
        *first_total = 0;
        let mut events = |event| {
            if let BuildEvent::Progress(progress) = event {
                if *first_total == 0 {
                    *first_total = progress.total;
                }
                if total_from.last() != Some(&progress.total_from) {
                    total_from.push(progress.total_from);
                }
            }
        };
        let mut watcher = Watcher::new(&self.cancel, &mut events);
        let name = support::tree_name("linux");
        let source = TreeSource::Path(source.to_owned());
        let tree = self
            .builder
            .trees()
            .add(&name, &source, &mut watcher)
            .expect("is added");
        let base = tree.resolve("master", &watcher).expect("a commit");
        let mail = fs::read(repository().join("tests/data/series/madvise-resched.mbox"));
        let mail = mail.expect("a series");
        let patch = RawPatch {
            mail: &mail,
            keep_cr: false,
        };
        let applied = tree.apply(&base, &[patch], &mut watcher).expect("works");
        let commit = applied.prefix(patches).expect("applies");
        let log = self.folder.path().join("log");
        let request = BuildRequest {
            tree: &tree,
            commit,
            config,
            arch: Arch::X86_64,
            log: &log,
        };
        let built = self.builder.build(&request, &mut watcher);
        built.unwrap_or_else(|error| panic!("{}", error.chain()))
    }
}

fn tell(what: &str, built: &Built, first_total: u64) {
    println!(
        "{what}: {:.1} s in all, make {:.1} s, {} steps of {first_total} expected at first, \
         {} bytes, digest {}, cached {}",
        built.time.as_secs_f64(),
        built.make_time.as_secs_f64(),
        built.steps,
        built.offer.size,
        built.offer.digest.short(),
        built.cached
    );
}

#[test]
fn real_kernel_is_the_same_from_two_folders() {
    let Some(source) = source("real_kernel_is_the_same_from_two_folders") else {
        return;
    };
    let more = "CONFIG_64BIT=y\nCONFIG_MODULES=y\nCONFIG_BLOCK=y\nCONFIG_BLK_DEV=y\n\
                CONFIG_BLK_DEV_LOOP=m\nCONFIG_PRINTK=y\nCONFIG_DEBUG_KERNEL=y\n\
                CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT=y\n";
    let config = ConfigRequest {
        base: BaseConfig::target("tinyconfig").expect("target"),
        fragments: vec![Fragment::parse("test", more).expect("fragment")],
        allow_untaken: false,
    };
    let (mut one, mut two) = (Bench::new(false), Bench::new(false));
    let first = one.build(&source, &config, 0);
    tell("first", &first, one.first_total);
    let second = two.build(&source, &config, 0);
    tell("second, elsewhere", &second, two.first_total);
    assert!(!second.cached);
    assert_eq!(first.key, second.key);
    assert_eq!(first.offer, second.offer);
    let again = one.build(&source, &config, 0);
    assert!(again.cached);
}

#[test]
fn real_kernel_of_a_virtual_board_and_of_a_series_over_it() {
    let Some(source) = source("real_kernel_of_a_virtual_board_and_of_a_series_over_it") else {
        return;
    };
    let names = ["virtual-x86_64.config", "ftrace.config", "debug-off.config"];
    let config = ConfigRequest {
        base: BaseConfig::target("tinyconfig").expect("target"),
        fragments: names.iter().map(|name| fragment(name)).collect(),
        allow_untaken: false,
    };
    let mut bench = Bench::new(true);
    let base = bench.build(&source, &config, 0);
    tell("base", &base, bench.first_total);
    let patched = bench.build(&source, &config, 1);
    tell("+1", &patched, bench.first_total);
    assert_eq!(base.key.config, patched.key.config);
    assert_ne!(base.offer.build_id, patched.offer.build_id);
    assert!(patched.steps < base.steps / 10, "{} steps", patched.steps);
    assert_eq!(
        bench.total_from,
        [TotalFrom::Configuration, TotalFrom::Dependencies]
    );
    let again = bench.build(&source, &config, 0);
    tell("base again", &again, bench.first_total);
    assert!(again.cached);
    // Without the cache of kernels: the same bytes come out of the moved work tree.
    fs::remove_dir_all(base.package.parent().expect("folder")).expect("removed");
    let rebuilt = bench.build(&source, &config, 0);
    tell("base once more", &rebuilt, bench.first_total);
    assert!(!rebuilt.cached);
    assert_eq!(rebuilt.offer, base.offer);
    if let Some(keep) = std::env::var_os("KLAB_KEEP_KERNELS") {
        for (name, built) in [("base", &rebuilt), ("patched", &patched)] {
            let to = Path::new(&keep).join(format!("{name}.tar.zst"));
            fs::copy(&built.package, to).expect("copied");
        }
    }
}
