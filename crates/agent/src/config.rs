//! The agent's configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use klab_boot::{BootConfig, BootError};
use klab_model::{Arch, BoardName, Tag};
use serde::Deserialize;
use serde::de::DeserializeOwned;
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
        Self::parse(path, &read(path)?)
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
        let config: Config = parse(path, text)?;
        for (key, value) in &config.tags {
            Tag::parse(&format!("{key}={value}")).map_err(|error| bad(format!("tags: {error}")))?;
        }
        if config.arch.is_none() {
            return Err(bad("arch: give x86_64, riscv64 or aarch64".into()));
        }
        check_address(path, &config.controller)?;
        Ok(config)
    }

    /// Looks whether the board has everything that its boot method needs, and says what the
    /// method promises there.
    ///
    /// # Errors
    /// [`BootError::Preflight`] with everything that is missing, or [`BootError::Config`].
    pub fn check_boot(&self) -> Result<String, BootError> {
        let boot = self.boot.build(&self.sysroot)?;
        boot.preflight()?;
        let promises = boot.capabilities().words().join(", ");
        Ok(format!("boot method {}: {promises}", boot.name()))
    }
}

pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    serde_yaml::from_str(text).map_err(|error| ConfigError::Parse {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

pub(crate) fn check_address(path: &Path, controller: &str) -> Result<(), ConfigError> {
    if controller.starts_with("http://") {
        return Ok(());
    }
    Err(ConfigError::Parse {
        path: path.to_owned(),
        problem: format!("controller: found {controller:?}, expected http://HOST:PORT"),
    })
}
