//! The seed: a small read-only disk with a tar archive on it, which the board unpacks at boot
//! when its version is new. It carries the agent, so that another agent needs no other image.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// First member of every seed; must be the path in rcS.
const VERSION: &str = "var/lib/klab-seed.new";

/// A further file for the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFile {
    /// Path on the board, from `/`.
    pub path: PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// Content.
    pub content: Vec<u8>,
}

/// What makes a board's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFiles {
    /// The agent's program on the host; an x86-64 binary that runs on the recipe's release
    /// (static is best), or a script.
    pub binary: PathBuf,
    /// Content of `/etc/klab/agent.yaml`.
    pub config: String,
    /// Further files: certificates, tokens.
    pub more: Vec<SeedFile>,
}

impl AgentFiles {
    /// An agent with its configuration and nothing else.
    pub fn new(binary: impl Into<PathBuf>, config: impl Into<String>) -> Self {
        Self {
            binary: binary.into(),
            config: config.into(),
            more: Vec::new(),
        }
    }

    /// Adds a file, readable by root only.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.more.push(SeedFile {
            path: path.into(),
            mode: 0o600,
            content: content.into(),
        });
        self
    }

    /// All members in the order of the archive, for a board with this host name.
    fn members(&self, hostname: &str) -> Result<Vec<SeedFile>> {
        let binary =
            std::fs::read(&self.binary).map_err(Error::io("read the agent", &self.binary))?;
        let file = |path: &str, mode, content| SeedFile {
            path: path.into(),
            mode,
            content,
        };
        let mut members = vec![
            file("usr/sbin/klab-agent", 0o755, binary),
            file(
                "etc/klab/agent.yaml",
                0o600,
                self.config.clone().into_bytes(),
            ),
            file("etc/hostname", 0o644, format!("{hostname}\n").into_bytes()),
        ];
        let more = self.more.iter().cloned().map(|mut f| {
            f.path = f
                .path
                .strip_prefix("/")
                .map(Path::to_owned)
                .unwrap_or(f.path);
            f
        });
        members.extend(more);
        Ok(members)
    }
}

/// Writes the seed to `path`. A running QEMU keeps the old one until it is started again.
pub(crate) fn write(agent: &AgentFiles, hostname: &str, path: &Path) -> Result<()> {
    let members = agent.members(hostname)?;
    let version = SeedFile {
        path: VERSION.into(),
        mode: 0o644,
        content: format!("{}\n", version(&members)).into_bytes(),
    };
    let new = path.with_extension("new");
    let file = File::create(&new).map_err(Error::io("create", &new))?;
    let mut archive = tar::Builder::new(file);
    for member in std::iter::once(&version).chain(&members) {
        append(&mut archive, member).map_err(Error::io("write", &new))?;
    }
    archive
        .into_inner()
        .and_then(|f| f.sync_all())
        .map_err(Error::io("write", &new))?;
    std::fs::rename(&new, path).map_err(Error::io("move", &new))
}

fn append(archive: &mut tar::Builder<File>, member: &SeedFile) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(member.content.len() as u64);
    header.set_mode(member.mode);
    archive.append_data(&mut header, &member.path, member.content.as_slice())
}

/// A digest over paths, modes and contents.
fn version(members: &[SeedFile]) -> String {
    let mut hash = blake3::Hasher::new();
    for member in members {
        let path = member.path.as_os_str().as_encoded_bytes();
        for part in [path, &member.mode.to_le_bytes(), &member.content] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hash.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn seed(config: &str) -> Vec<(String, u32, String)> {
        let dir = tempfile::tempdir().expect("temporary folder");
        let binary = dir.path().join("agent");
        std::fs::write(&binary, "#!/bin/sh\n").expect("write");
        let agent = AgentFiles::new(&binary, config).with_file("/etc/klab/token", "secret");
        let path = dir.path().join("seed.tar");
        write(&agent, "vb1", &path).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("there").len() % 512, 0);
        let mut archive = tar::Archive::new(File::open(&path).expect("open"));
        let read = |entry: std::io::Result<tar::Entry<'_, File>>| {
            let mut entry = entry.expect("member");
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            let name = entry.path().expect("path").display().to_string();
            (name, entry.header().mode().expect("mode"), text)
        };
        archive.entries().expect("entries").map(read).collect()
    }

    #[test]
    fn the_version_comes_first_and_follows_the_content() {
        let (a, b) = (seed("x: 1\n"), seed("x: 2\n"));
        assert_eq!(a[0].0, VERSION);
        assert_ne!(a[0].2, b[0].2);
        assert_eq!(seed("x: 1\n"), a);
        assert!(include_str!("files/rcS").contains(VERSION));
    }

    #[test]
    fn the_agent_is_where_init_looks_for_it() {
        let members = seed("x: 1\n");
        let names: Vec<_> = members[1..]
            .iter()
            .map(|(n, m, _)| (n.as_str(), *m))
            .collect();
        let expected = [
            ("usr/sbin/klab-agent", 0o755),
            ("etc/klab/agent.yaml", 0o600),
            ("etc/hostname", 0o644),
            ("etc/klab/token", 0o600),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_missing_agent_is_named() {
        let agent = AgentFiles::new("no/such/agent", "");
        let error = write(&agent, "vb1", Path::new("unused.tar")).expect_err("no agent");
        assert!(
            error
                .to_string()
                .starts_with("cannot read the agent no/such/agent: "),
            "{error}"
        );
    }
}
