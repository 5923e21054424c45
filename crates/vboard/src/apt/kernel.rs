//! Fetching a Debian kernel package without installing it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{host_sources, retarget, sources_file};
use crate::command::{run, tool};
use crate::{Error, Result};

/// Downloads a kernel package of `suite` into `dir` and returns the `.deb`.
///
/// A metapackage like `linux-image-rt-amd64` is followed to the package with the kernel in it.
/// A file that is there already in full is not fetched again.
///
/// # Errors
/// [`Error::Packages`] if the sources do not offer the package; [`Error::Tool`] if apt failed.
pub fn fetch_debian_kernel(package: &str, suite: &str, dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let dir = &dir.canonicalize().map_err(Error::io("open", dir))?;
    let state = dir.join("apt");
    if let Some(apt) = Apt::system(suite)? {
        match apt.fetch(package, dir) {
            Ok(deb) => return Ok(deb),
            Err(error) => {
                tracing::info!(%error, "the system's package lists do not serve, using private ones")
            }
        }
    }
    let apt = Apt::private(&state, suite)?;
    apt.update()?;
    apt.fetch(package, dir)
}

/// An apt state: the system's, or a private one named by options.
struct Apt {
    options: Vec<String>,
    scratch: PathBuf,
}

impl Apt {
    /// The system's state, if it has lists and serves the suite.
    fn system(suite: &str) -> Result<Option<Self>> {
        let (sources, host) = host_sources()?;
        let lists = std::fs::read_dir("/var/lib/apt/lists")
            .into_iter()
            .flatten()
            .flatten();
        let filled = lists
            .into_iter()
            .any(|e| e.file_name().to_string_lossy().contains("_Packages"));
        let serves = host == suite && !retarget(&sources, &host, suite).is_empty();
        Ok((filled && serves).then(|| Self {
            options: Vec::new(),
            scratch: std::env::temp_dir(),
        }))
    }

    /// A private state below `state` with sources derived from the host's.
    fn private(state: &Path, suite: &str) -> Result<Self> {
        let root = state.join(suite);
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
            options,
            scratch: root,
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = tool(program);
        // The download user of apt cannot write into a private folder.
        let fixed = ["APT::Sandbox::User=root", "APT::Architecture=amd64"].map(str::to_owned);
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
        let package = self.resolve(package)?;
        // apt prints nothing for a file that lies in its own folder: ask from elsewhere.
        let printed = run(self
            .command("apt-get")
            .args(["download", "--print-uris", &package]))?;
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
            .args(["download", &package]))?;
        let fetched = part.join(deb.file_name().unwrap_or_default());
        std::fs::rename(&fetched, &deb).map_err(Error::io("move", &fetched))?;
        std::fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        Ok(deb)
    }

    /// Follows a metapackage to the real kernel package.
    fn resolve(&self, package: &str) -> Result<String> {
        let text = run(self.command("apt-cache").args(["depends", package])).map_err(|_| {
            Error::Packages {
                what: format!("the package sources have no {package}"),
                mend: "check the name with apt-cache search linux-image".to_owned(),
            }
        })?;
        Ok(real_kernel(&text).unwrap_or_else(|| package.to_owned()))
    }
}

/// The kernel package a metapackage depends on, from the text of `apt-cache depends`.
fn real_kernel(depends: &str) -> Option<String> {
    let names = depends.lines().filter_map(|l| {
        let l = l.trim_start().trim_start_matches('|');
        l.strip_prefix("Depends:").map(str::trim)
    });
    names
        .into_iter()
        .find(|n| n.starts_with("linux-image-"))
        .map(str::to_owned)
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
