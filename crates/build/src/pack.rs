//! From a folder of results to the canonical package.

use std::fs::{self, File};
use std::path::Path;

use klab_kernel::KernelPackage;
use klab_model::KernelOffer;

use crate::config::DotConfig;
use crate::make::Make;
use crate::{BuildError, Stage, Watcher, files};

/// Collects image, modules, symbols, configuration and device trees below `stage`, in the
/// layout that klab-kernel reads, and opens the result.
pub(crate) fn collect(
    make: &Make<'_>,
    config: &DotConfig,
    stage: &Path,
    watcher: &mut Watcher<'_>,
) -> Result<KernelPackage, BuildError> {
    watcher.stage(Stage::Packing)?;
    files::remove(stage)?;
    let boot = stage.join("boot");
    files::make_folder(&boot)?;
    let target = make.arch();
    let copies = [
        (target.image().1, "vmlinuz"),
        ("System.map", "System.map"),
        (".config", "config"),
    ];
    for (from, to) in copies {
        let from = make.out.join(from);
        fs::copy(&from, boot.join(to)).map_err(BuildError::io("copy", &from))?;
    }
    if config.is_on("MODULES") {
        let path = format!("INSTALL_MOD_PATH={}", stage.display());
        make.quiet(&["modules_install", &path, "INSTALL_MOD_STRIP=1"], watcher)?;
    }
    if target.has_dtbs() {
        let path = format!("INSTALL_DTBS_PATH={}", boot.join("dtbs").display());
        make.quiet(&["dtbs_install", &path], watcher)?;
    }
    let package = klab_kernel::open(stage).map_err(BuildError::package)?;
    check(&package, make)?;
    Ok(package)
}

/// What the image says about itself must be what was built, with a build-id, by which a board
/// proves that it runs.
fn check(package: &KernelPackage, make: &Make<'_>) -> Result<(), BuildError> {
    let path = make.out.join("include/config/kernel.release");
    let release = fs::read_to_string(&path).map_err(BuildError::io("read", &path))?;
    let (found, expected) = (package.release().as_str(), release.trim());
    if found != expected || package.arch() != make.arch().arch() {
        return Err(BuildError::WrongImage {
            found: format!("{} for {}", found, package.arch()),
            expected: format!("{} for {}", expected, make.arch().arch()),
        });
    }
    match (package.build_id(), &package.manifest().build_id_absent) {
        (Some(_), _) => Ok(()),
        (None, why) => Err(BuildError::NoBuildId {
            why: why.clone().unwrap_or_default(),
        }),
    }
}

/// Writes the package.
pub(crate) fn write(package: &KernelPackage, file: &mut File) -> Result<KernelOffer, BuildError> {
    let summary = package.write_canonical(file).map_err(BuildError::package)?;
    Ok(package.offer(&summary))
}
