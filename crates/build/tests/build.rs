//! Builds of the small tree: a real git, make and compiler, and a kernel in seconds.
#![allow(missing_docs)]

mod support;

use std::fs::{self, File};
use std::time::Duration;

use klab_build::{
    BaseConfig, BuildEvent, BuildOptions, BuildRequest, Builder, Cancel, ConfigRequest, LaneName,
    Stage, TotalFrom, Watcher,
};
use klab_kernel::{Limits, unpack_canonical, verify_canonical};
use klab_model::Arch;
use support::small::{Bench, RELEASE, config, modules};

/// The bench, or the end of the test.
macro_rules! bench {
    ($name:literal) => {
        match Bench::new($name) {
            Some(bench) => bench,
            None => return,
        }
    };
}

const MADVISE: &str =
    "#include <linux/mm.h>\n\nint madvise(int pages)\n{\n\treturn BATCH + pages;\n}\n";

#[test]
fn process_a_commit_becomes_a_canonical_package() {
    let mut bench = bench!("process_a_commit_becomes_a_canonical_package");
    let built = bench.build("HEAD").expect("builds");
    assert_eq!(built.offer.release, RELEASE);
    assert_eq!(built.offer.arch, Arch::X86_64);
    assert!(built.offer.build_id.is_some());
    verify_canonical(
        File::open(&built.package).expect("package"),
        &Limits::default(),
    )
    .expect("a canonical package");
    let out = bench.desk.path().join("out");
    let file = File::open(&built.package).expect("package");
    let unpacked = unpack_canonical(file, &out, &Limits::default()).expect("unpacks");
    assert_eq!(unpacked.digest, built.offer.digest);
    assert_eq!(unpacked.manifest.modules, 1);
    let config = fs::read_to_string(out.join("boot/config")).expect("configuration");
    assert!(config.contains("CONFIG_MODULES=y\n"), "{config}");
    let loop_ko = format!("lib/modules/{RELEASE}/kernel/drivers/loop.ko");
    for name in ["boot/vmlinuz", "boot/System.map", &loop_ko] {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert!(
        built.tools().0["gcc"].starts_with("gcc "),
        "{:?}",
        built.tools()
    );
    assert!(built.key.to_text().contains("KBUILD_BUILD_USER=klab"));
    let stages = [
        Stage::CheckingOut,
        Stage::Configuring,
        Stage::Building,
        Stage::Packing,
    ];
    let told = bench.desk.events.iter().filter_map(|event| match event {
        BuildEvent::Stage(stage) => Some(*stage),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), stages);
    assert!(bench.read_log().contains("  CC      mm/madvise.o\n"));
}

#[test]
fn process_a_variant_costs_what_its_patches_touch() {
    let mut bench = bench!("process_a_variant_costs_what_its_patches_touch");
    let base = bench.build("HEAD").expect("builds");
    assert_eq!(base.steps, 8, "{}", bench.read_log());
    let first = bench.progress();
    assert_eq!(first.last().expect("steps").done, 8);
    assert!(
        first
            .iter()
            .all(|p| p.total_from == TotalFrom::Configuration)
    );
    assert!(first.iter().all(|p| p.total >= p.done));

    bench.commit(&[("mm/madvise.c", MADVISE)]);
    let one = bench.build("HEAD").expect("builds");
    let files: Vec<String> = bench.progress().into_iter().map(|p| p.current).collect();
    assert_eq!(
        files,
        ["mm/madvise.o", "System.map", "arch/x86/boot/bzImage"]
    );
    assert_eq!(one.steps, 3);
    assert_ne!(one.offer.digest, base.offer.digest);
    assert!(
        bench
            .progress()
            .iter()
            .all(|p| p.total_from == TotalFrom::Dependencies)
    );

    bench.commit(&[("include/linux/mm.h", "#define BATCH 64\n")]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 4);
    bench.commit(&[("README", "no source\n")]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 0);
}

#[test]
fn process_the_way_to_a_variant_does_not_show_in_it() {
    let mut bench = bench!("process_the_way_to_a_variant_does_not_show_in_it");
    let base = bench.build("HEAD").expect("builds");
    bench.commit(&[("mm/madvise.c", MADVISE), ("localversion", "-stray\n")]);
    bench.build("HEAD").expect("builds");
    fs::remove_dir_all(bench.desk.klab().join("kernels")).expect("removed");
    // Files that lie about in the work tree are none of the commit.
    let src = bench.desk.klab().join("work/linux/lane-main/src");
    fs::write(src.join("stray"), "x").expect("write");
    fs::write(src.join("mm/vmscan.c"), "#error changed by hand\n").expect("write");
    let again = bench.build("HEAD~1").expect("builds");
    assert!(!again.cached && !src.join("stray").exists());
    assert_eq!(again.offer, base.offer);
}

#[test]
fn process_folders_that_no_one_uses_can_be_removed() {
    let mut bench = bench!("process_folders_that_no_one_uses_can_be_removed");
    bench.build("HEAD").expect("builds");
    let builder = Builder::open(&bench.desk.klab(), bench.options.clone()).expect("opens");
    let tree = bench.tree.clone();
    let mut prune = |unused| {
        let prune = |w: &mut Watcher<'_>| builder.prune_builds(&tree, unused, w);
        bench.desk.watched(prune).expect("prunes")
    };
    assert_eq!(prune(Duration::from_secs(3600)), 0);
    assert_eq!(prune(Duration::ZERO), 1);
    assert_eq!(prune(Duration::ZERO), 0);
    assert!(bench.build("HEAD").expect("is there").cached);
    bench.commit(&[("mm/madvise.c", MADVISE)]);
    assert_eq!(bench.build("HEAD").expect("builds").steps, 8);
}

#[test]
fn process_two_folders_and_lanes_give_the_same_package() {
    let mut bench = bench!("process_two_folders_and_lanes_give_the_same_package");
    let first = bench.build("HEAD").expect("builds");
    let mut other = bench!("process_two_folders_and_lanes_give_the_same_package");
    other.options.lane = LaneName::parse("second").expect("a name");
    let second = other.build("HEAD").expect("builds");
    assert_ne!(first.package, second.package);
    assert!(!second.cached);
    assert_eq!(first.key, second.key);
    assert_eq!(first.offer, second.offer);
}

#[test]
fn process_the_same_kernel_is_built_once() {
    let mut bench = bench!("process_the_same_kernel_is_built_once");
    let first = bench.build("HEAD").expect("builds");
    let second = bench.build("HEAD").expect("is there");
    assert!(!first.cached && second.cached && second.steps == 0);
    assert_eq!(
        (&first.package, &first.offer),
        (&second.package, &second.offer)
    );
    // Another commit with the same files is the same kernel.
    bench
        .desk
        .git(&["commit", "--quiet", "--amend", "--message=other words"]);
    let tree = bench.tree.clone();
    bench.desk.watched(|w| tree.fetch(w)).expect("fetches");
    assert!(bench.build("HEAD").expect("is there").cached);
    // Another configuration is another kernel.
    let smp = config("CONFIG_MODULES=y\nCONFIG_SMP=y\n");
    assert!(!bench.build_with("HEAD", &smp).expect("builds").cached);
}

#[test]
fn process_two_that_want_the_same_share_one_build() {
    let bench = bench!("process_two_that_want_the_same_share_one_build");
    let (klab, tree) = (bench.desk.klab(), &bench.tree);
    let build = |lane: &str| {
        let options = BuildOptions {
            lane: LaneName::parse(lane).expect("a name"),
            ..bench.options.clone()
        };
        let builder = Builder::open(&klab, options).expect("opens");
        let cancel = Cancel::new().expect("token");
        let mut events = |_| {};
        let mut watcher = Watcher::new(&cancel, &mut events);
        let commit = tree.resolve("HEAD", &watcher).expect("a commit");
        let request = BuildRequest {
            tree,
            commit: &commit,
            config: &modules(),
            arch: Arch::X86_64,
            log: &klab.join(format!("log-{lane}")),
        };
        builder.build(&request, &mut watcher).expect("builds")
    };
    for lanes in [["one", "two"], ["three", "three"]] {
        let _ = fs::remove_dir_all(klab.join("kernels"));
        let build = &build;
        let built = std::thread::scope(|scope| {
            let threads = lanes.map(|lane| scope.spawn(move || build(lane)));
            threads.map(|thread| thread.join().expect("thread"))
        });
        assert_eq!(
            built.iter().filter(|one| one.cached).count(),
            1,
            "{lanes:?}"
        );
        assert_eq!(built[0].offer, built[1].offer);
    }
}

#[test]
fn process_a_boards_configuration_is_a_base() {
    let mut bench = bench!("process_a_boards_configuration_is_a_base");
    let text = b"# Linux/x86 6.1\nCONFIG_X86=y\nCONFIG_X86_64=y\nCONFIG_MODULES=y\nCONFIG_SMP=y\n";
    let config = ConfigRequest {
        base: BaseConfig::file("config.gz", text).expect("a configuration"),
        fragments: Vec::new(),
        allow_untaken: false,
    };
    let built = bench.build_with("HEAD", &config).expect("builds");
    let out = bench.desk.path().join("out");
    let file = File::open(&built.package).expect("package");
    unpack_canonical(file, &out, &Limits::default()).expect("unpacks");
    let config = fs::read_to_string(out.join("boot/config")).expect("configuration");
    assert!(config.contains("CONFIG_SMP=y\n"), "{config}");
}
