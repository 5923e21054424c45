//! Fetching a Debian kernel package without installing it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{host_sources, retarget, sources_file};
use crate::command::{run, tool};
use crate::{Error, Machine, Result};

/// Downloads a kernel of `suite` for a machine into `dir` and returns the `.deb`.
///
/// A metapackage like `linux-image-rt-amd64` is followed to the package with the kernel in it.
/// Newer Debian kernels are packages of parts: then it is a folder with all parts unpacked. What
/// is there already in full is not fetched again.
///
/// # Errors
/// [`Error::Packages`] if the sources do not offer the package; [`Error::Tool`] if apt failed.
pub fn fetch_debian_kernel(
    machine: Machine,
    package: &str,
    suite: &str,
    dir: &Path,
) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let dir = &dir.canonicalize().map_err(Error::io("open", dir))?;
    let state = dir.join("apt");
    if let Some(apt) = Apt::system(machine, suite)? {
        match apt.fetch(package, dir) {
            Ok(deb) => return Ok(deb),
            Err(error) => {
                tracing::info!(%error, "the system's package lists do not serve, using private ones")
            }
        }
    }
    let apt = Apt::private(&state, machine, suite)?;
    apt.update()?;
    apt.fetch(package, dir)
}

/// An apt state: the system's, or a private one named by options.
struct Apt {
    machine: Machine,
    options: Vec<String>,
    scratch: PathBuf,
}

impl Apt {
    /// The system's state, if it has lists and serves the suite.
    fn system(machine: Machine, suite: &str) -> Result<Option<Self>> {
        let (sources, host) = host_sources()?;
        let lists = std::fs::read_dir("/var/lib/apt/lists")
            .into_iter()
            .flatten()
            .flatten();
        let filled = lists
            .into_iter()
            .any(|e| e.file_name().to_string_lossy().contains("_Packages"));
        let serves =
            machine.is_of_host() && host == suite && !retarget(&sources, &host, suite).is_empty();
        Ok((filled && serves).then(|| Self {
            machine,
            options: Vec::new(),
            scratch: std::env::temp_dir(),
        }))
    }

    /// A private state below `state` with sources derived from the host's.
    fn private(state: &Path, machine: Machine, suite: &str) -> Result<Self> {
        let root = state.join(format!("{suite}-{}", machine.debian()));
        for sub in ["lists/partial", "cache/archives/partial"] {
            let sub = root.join(sub);
            std::fs::create_dir_all(&sub).map_err(Error::io("create", &sub))?;
        }
        let status = root.join("status");
        std::fs::write(&status, "").map_err(Error::io("write", &status))?;
        let sources = sources_file(&root, suite)?;
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        let options = vec![
            set("Dir::Etc::sourcelist", &sources),
            "Dir::Etc::sourceparts=-".to_owned(),
            set("Dir::State::Lists", &root.join("lists")),
            set("Dir::State::status", &status),
            set("Dir::Cache", &root.join("cache")),
        ];
        Ok(Self {
            machine,
            options,
            scratch: root,
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = tool(program);
        // The download user of apt cannot write into a private folder.
        let fixed = [
            "APT::Sandbox::User=root".to_owned(),
            format!("APT::Architecture={}", self.machine.debian()),
        ];
        for option in fixed.iter().chain(&self.options) {
            command.args(["-o", option]);
        }
        command.current_dir(&self.scratch);
        command
    }

    fn update(&self) -> Result<()> {
        run(self.command("apt-get").arg("update")).map(drop)
    }

    fn fetch(&self, package: &str, dir: &Path) -> Result<PathBuf> {
        let mut package = package.to_owned();
        // A metapackage, or one that leads to another one.
        for _ in 0..3 {
            let depends = self.depends(&package)?;
            let parts = parts(&depends);
            if !parts.is_empty() {
                return self.fetch_parts(&package, &parts, dir);
            }
            match real_kernel(&depends) {
                Some(next) => package = next,
                None => break,
            }
        }
        self.fetch_one(&package, dir)
    }

    /// Fetches the parts of a kernel and unpacks them into one folder.
    fn fetch_parts(&self, package: &str, parts: &[String], dir: &Path) -> Result<PathBuf> {
        let debs: Result<Vec<PathBuf>> =
            parts.iter().map(|part| self.fetch_one(part, dir)).collect();
        let debs = debs?;
        // The packages' versions are in their file names, and so in the folder's.
        let names = debs.iter().filter_map(|deb| deb.file_name());
        let mut hash = blake3::Hasher::new();
        for name in names {
            hash.update(name.as_encoded_bytes());
        }
        let digest = &hash.finalize().to_hex()[..8];
        let folder = dir.join(format!("{package}_{digest}"));
        if folder.is_dir() {
            return Ok(folder);
        }
        let new = dir.join(format!("unpack-{}", std::process::id()));
        for deb in &debs {
            run(tool("dpkg-deb").arg("-x").arg(deb).arg(&new))?;
        }
        std::fs::rename(&new, &folder).map_err(Error::io("move", &new))?;
        Ok(folder)
    }

    fn fetch_one(&self, package: &str, dir: &Path) -> Result<PathBuf> {
        // apt prints nothing for a file that lies in its own folder: ask from elsewhere.
        let printed = run(self
            .command("apt-get")
            .args(["download", "--print-uris", package]))?;
        let (name, size) = parse_uri_line(&printed).ok_or_else(|| Error::Packages {
            what: format!("apt named no file for {package}: {:?}", printed.trim()),
            mend: "run apt-get update and try again".to_owned(),
        })?;
        let deb = dir.join(name);
        if std::fs::metadata(&deb).is_ok_and(|m| m.len() == size) {
            return Ok(deb);
        }
        let part = dir.join(format!("part-{}", std::process::id()));
        std::fs::create_dir_all(&part).map_err(Error::io("create", &part))?;
        run(self
            .command("apt-get")
            .current_dir(&part)
            .args(["download", package]))?;
        let fetched = part.join(deb.file_name().unwrap_or_default());
        std::fs::rename(&fetched, &deb).map_err(Error::io("move", &fetched))?;
        std::fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        Ok(deb)
    }

    /// What a package depends on, in the words of `apt-cache depends`.
    fn depends(&self, package: &str) -> Result<String> {
        run(self.command("apt-cache").args(["depends", package])).map_err(|_| Error::Packages {
            what: format!("the package sources have no {package}"),
            mend: "check the name with apt-cache search linux-image".to_owned(),
        })
    }
}

/// The names after `Depends:`.
fn names(depends: &str) -> impl Iterator<Item = &str> {
    depends.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches('|');
        line.strip_prefix("Depends:").map(str::trim)
    })
}

/// The kernel package a metapackage depends on, from the text of `apt-cache depends`.
fn real_kernel(depends: &str) -> Option<String> {
    let mut kernels = names(depends).filter(|name| name.starts_with("linux-image-"));
    kernels.next().map(str::to_owned)
}

/// The packages that a kernel's parts are in; none for a kernel in one package.
fn parts(depends: &str) -> Vec<String> {
    let of = |kind: &str| names(depends).find(|name| name.starts_with(kind));
    match (of("linux-binary-"), of("linux-modules-")) {
        (Some(binary), Some(modules)) => {
            let base = names(depends).find(|name| {
                let rest = name.strip_prefix("linux-base-");
                rest.is_some_and(|rest| binary.ends_with(rest))
            });
            let all = [Some(binary), Some(modules), base].into_iter().flatten();
            all.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// File name and size in bytes from a line of `apt-get download --print-uris`.
fn parse_uri_line(text: &str) -> Option<(String, u64)> {
    text.lines().rev().find_map(|line| {
        let mut words = line
            .strip_prefix('\'')?
            .split_once("' ")?
            .1
            .split_whitespace();
        let name = words
            .next()
            .filter(|n| n.ends_with(".deb") && !n.contains('/'))?;
        Some((name.to_owned(), words.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metapackage_leads_to_its_kernel() {
        let text = "linux-image-rt-amd64\n  Depends: linux-image-6.1.0-57-rt-amd64\n    linux-x\n";
        assert_eq!(
            real_kernel(text).as_deref(),
            Some("linux-image-6.1.0-57-rt-amd64")
        );
    }

    #[test]
    fn a_kernel_package_leads_nowhere_else() {
        let text = "linux-image-6.1.0-57-rt-amd64\n  Depends: kmod\n |Depends: initramfs-tools\n\
                    \x20 Depends: <linux-initramfs-tool>\n  Recommends: linux-image-x\n";
        assert_eq!(real_kernel(text), None);
    }

    #[test]
    fn a_kernel_in_parts_is_told_from_one_in_one_package() {
        let text = "linux-image-7.2-x\n  PreDepends: linux-base\n |Depends: dracut\n  Depends: \
                    linux-initramfs-tool\n  Depends: linux-base-7.2-x\n  Depends: \
                    linux-binary-7.2-x\n  Depends: linux-modules-7.2-x\n  Breaks: fwupdate\n";
        assert_eq!(
            parts(text),
            [
                "linux-binary-7.2-x",
                "linux-modules-7.2-x",
                "linux-base-7.2-x"
            ]
        );
        assert_eq!(
            parts("linux-image-x\n  Depends: kmod\n  Depends: linux-base\n"),
            [""; 0]
        );
    }

    #[test]
    fn the_uri_line_gives_name_and_size() {
        let text = "W: warning\n'http://m.test/pool/a_1%3a2_amd64.deb' a_1%3a2_amd64.deb 70523596 SHA256:77\n";
        assert_eq!(
            parse_uri_line(text),
            Some(("a_1%3a2_amd64.deb".to_owned(), 70_523_596))
        );
        assert_eq!(
            parse_uri_line("'http://m.test/x' ../x.deb 5 SHA256:1\n"),
            None
        );
        assert_eq!(parse_uri_line(""), None);
    }
}
