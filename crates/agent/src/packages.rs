//! The folder of kernel packages: a few stay, so that rounds do not fetch them again.

use std::path::Path;

/// Removes all but the `keep` newest packages, never `wanted`.
///
/// # Errors
/// If the folder cannot be read or a package cannot be removed.
pub fn prune(folder: &Path, wanted: &Path, keep: usize) -> std::io::Result<()> {
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path() != wanted {
            packages.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    packages.sort();
    let surplus = (packages.len() + 1).saturating_sub(keep);
    for (_, path) in packages.into_iter().take(surplus) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_package_and_the_newest_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "b", "c", "d"] {
            std::fs::write(folder.path().join(name), name).expect("write");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        prune(folder.path(), &folder.path().join("a"), 2).expect("prune");
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("read")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        left.sort();
        assert_eq!(left, ["a", "d"]);
    }
}
