//! The builder's configuration file.

use std::path::{Path, PathBuf};

use klab_model::{Arch, BuilderName};
use serde::Deserialize;

use crate::config::{ConfigError, check_address, parse, read};

/// `/etc/klab/builder.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BuilderConfig {
    /// The builder's name, unique in its lab.
    pub builder: BuilderName,
    /// Where the controller listens, `http://HOST:PORT`.
    pub controller: String,
    /// Trees, work trees and kernels live here; some ten gigabytes. No blank and no colon may
    /// be in its path.
    pub folder: PathBuf,
    /// How many jobs `make` runs at once; as many as there are processors without.
    #[serde(default)]
    pub jobs: Option<usize>,
    /// What it builds; all that there are compilers for without.
    #[serde(default)]
    pub archs: Option<Vec<Arch>>,
}

impl BuilderConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of the first problem.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let config: Self = parse(path, &read(path)?)?;
        let bad = |problem: &str| ConfigError::Parse {
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        check_address(path, &config.controller)?;
        if config.jobs == Some(0) {
            return Err(bad("jobs: found 0, expected at least 1"));
        }
        if config.archs.as_ref().is_some_and(Vec::is_empty) {
            return Err(bad("archs: there are none; leave it out for all"));
        }
        Ok(config)
    }
}
