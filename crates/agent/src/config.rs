//! The agent's configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use klab_boot::BootConfig;
use klab_model::{Arch, BoardName, Tag};
use serde::Deserialize;
use thiserror::Error;

/// `/etc/klab/agent.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The board's name, unique in its lab.
    pub board: BoardName,
    /// Where the controller listens, `http://HOST:PORT`.
    pub controller: String,
    /// Journal, spool and packages live here; must survive a reboot.
    pub state: PathBuf,
    /// Words by which `--boards tag=value` finds the board.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The architecture, if the agent's own is not the board's.
    #[serde(default = "own_arch")]
    pub arch: Option<Arch>,
    /// Where `proc` and `sys` are looked for.
    #[serde(default = "root")]
    pub sysroot: PathBuf,
    /// How the board boots a candidate once.
    pub boot: BootConfig,
}

fn root() -> PathBuf {
    PathBuf::from("/")
}

fn own_arch() -> Option<Arch> {
    Arch::parse(std::env::consts::ARCH).ok()
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}; give the file with --config")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not what is expected.
    #[error("{path}: {problem}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and what was expected.
        problem: String,
    },
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of the first problem.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    /// Reads a configuration from text; `path` is for messages.
    ///
    /// # Errors
    /// [`ConfigError::Parse`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let bad = |problem: String| ConfigError::Parse {
            path: path.to_owned(),
            problem,
        };
        let config: Config = serde_yaml::from_str(text).map_err(|error| bad(error.to_string()))?;
        for (key, value) in &config.tags {
            Tag::parse(&format!("{key}={value}")).map_err(|error| bad(format!("tags: {error}")))?;
        }
        if config.arch.is_none() {
            return Err(bad("arch: give x86_64, riscv64 or aarch64".into()));
        }
        if !config.controller.starts_with("http://") {
            let problem = format!(
                "controller: found {:?}, expected http://HOST:PORT",
                config.controller
            );
            return Err(bad(problem));
        }
        Ok(config)
    }
}
