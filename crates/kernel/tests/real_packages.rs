//! Packages as Debian ships them, when apt can fetch them. Downloads are kept in cargo's
//! temporary folder; without apt or network the tests say that they were skipped.
#![cfg(feature = "read")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use klab_kernel::{KernelPackage, Limits, open, unpack_canonical, verify_canonical};
use klab_model::Arch;

const APT_SOURCES: &str = "/etc/apt/sources.list.d/debian.sources";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The package that `meta` of `suite` depends on, or why it cannot be had.
fn fetch(arch: &str, suite: &str, meta: &str) -> Result<PathBuf, String> {
    let top = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("debian-{suite}-{meta}"));
    let store = top.join(meta);
    if let Some(kept) = kept(&store) {
        return Ok(kept);
    }
    let apt = Apt::prepare(arch, suite, &top)?;
    apt.run("apt-get", &["update", "-qq"], &top)?;
    let depends = apt.run("apt-cache", &["depends", meta], &top)?;
    let name = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| name.starts_with("linux-image-"))
        .ok_or_else(|| format!("{meta} names no image package"))?;
    let partial = top.join(format!("{meta}.partial"));
    fs::create_dir_all(&partial).map_err(|e| e.to_string())?;
    apt.run("apt-get", &["download", "-qq", name], &partial)?;
    fs::rename(&partial, &store).map_err(|e| e.to_string())?;
    kept(&store).ok_or_else(|| "apt-get left no package".to_owned())
}

fn kept(store: &Path) -> Option<PathBuf> {
    let entry = fs::read_dir(store).ok()?.filter_map(Result::ok).next()?;
    Some(entry.path())
}

/// An apt of its own: another arch and suite, nothing of the system touched.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn prepare(arch: &str, suite: &str, top: &Path) -> Result<Self, String> {
        let sources = fs::read_to_string(APT_SOURCES).map_err(|e| format!("{APT_SOURCES}: {e}"))?;
        let mirror = sources
            .lines()
            .find_map(|line| line.strip_prefix("URIs:"))
            .ok_or_else(|| format!("{APT_SOURCES} names no mirror"))?
            .trim();
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(top.join(folder)).map_err(|e| e.to_string())?;
        }
        let list = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        fs::write(top.join("sources.list"), list).map_err(|e| e.to_string())?;
        fs::write(top.join("status"), "").map_err(|e| e.to_string())?;
        let at = |name: &str| top.join(name).display().to_string();
        let options = [
            format!("APT::Architecture={arch}"),
            format!("APT::Architectures={arch}"),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=2".to_owned(),
            "Acquire::http::Timeout=20".to_owned(),
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
        ];
        Ok(Self {
            options: options
                .into_iter()
                .flat_map(|o| ["-o".to_owned(), o])
                .collect(),
        })
    }

    fn run(&self, program: &str, args: &[&str], folder: &Path) -> Result<String, String> {
        let output = Command::new(program)
            .args(&self.options)
            .args(args)
            .current_dir(folder)
            .output()
            .map_err(|e| format!("{program}: {e}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "{program}: {}",
                said.lines().next().unwrap_or("failed")
            ))
        }
    }
}

fn debian(arch: &str, suite: &str, meta: &str, check: impl FnOnce(KernelPackage)) {
    match fetch(arch, suite, meta) {
        Ok(path) => check(open(&path).unwrap()),
        Err(why) => eprintln!("skipped: {meta} from {suite}: {why}"),
    }
}

fn expect(package: &KernelPackage, arch: Arch, flavour: &str, format: &str) {
    let manifest = package.manifest();
    assert_eq!(manifest.arch, arch);
    assert!(
        manifest.release.as_str().ends_with(flavour),
        "{}",
        manifest.release
    );
    assert_eq!(manifest.image_format, format);
    assert_eq!(manifest.build_id_absent, None);
    assert_eq!(manifest.build_id.as_ref().unwrap().as_bytes().len(), 20);
    assert!(manifest.modules > 900, "{}", manifest.modules);
    assert!(package.files().any(|path| path == "boot/config"));
}

/// lz4 inside the image.
#[test]
fn real_debian_packages_cloud_amd64() {
    debian("amd64", "bookworm", "linux-image-cloud-amd64", |package| {
        expect(&package, Arch::X86_64, "-cloud-amd64", "bzImage");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kernel.tar.zst");
        let summary = package
            .write_canonical(fs::File::create(&file).unwrap())
            .unwrap();
        let again = package.write_canonical(io::sink()).unwrap();
        assert_eq!(summary, again);
        let out = dir.path().join("out");
        let packed = fs::File::open(&file).unwrap();
        let unpacked = unpack_canonical(packed, &out, &Limits::default()).unwrap();
        assert_eq!(unpacked.digest, summary.digest);
        assert_eq!(unpacked.files, package.files().count());
        let packed = fs::File::open(&file).unwrap();
        let verified = verify_canonical(packed, &Limits::default()).unwrap();
        assert_eq!(verified, package.offer(&summary));
    });
}

/// xz inside the image.
#[test]
fn real_debian_packages_rt_amd64() {
    debian("amd64", "bookworm", "linux-image-rt-amd64", |package| {
        expect(&package, Arch::X86_64, "-rt-amd64", "bzImage");
    });
}

/// A flat Image with embedded ELF files, device trees, and modules below usr/lib.
#[test]
fn real_debian_packages_riscv64() {
    debian("riscv64", "trixie", "linux-image-riscv64", |package| {
        expect(&package, Arch::Riscv64, "-riscv64", "Image");
        assert!(
            package
                .files()
                .any(|p| p.starts_with("boot/dtbs/") && p.ends_with(".dtb"))
        );
    });
}
