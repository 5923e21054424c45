//! Where a tree comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::BuildError;

/// What a transport that git runs itself may be called; others start programs.
const SCHEMES: [&str; 5] = ["https", "http", "git", "ssh", "file"];

/// Where a tree comes from: a repository on this machine, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeSource {
    /// A repository on this machine, with or without a work tree, which is never touched.
    Path(PathBuf),
    /// Something that `git fetch` reaches.
    Url(String),
}

impl TreeSource {
    /// Reads an absolute path, a URL (`https`, `http`, `git`, `ssh`, `file`) or what ssh
    /// calls `user@host:path`.
    ///
    /// # Errors
    /// [`BuildError::Source`] that names what would have been accepted.
    pub fn parse(text: &str) -> Result<Self, BuildError> {
        let bad = || BuildError::Source {
            found: text.chars().take(200).collect(),
        };
        if text.chars().any(char::is_control) || text.starts_with('-') || text.is_empty() {
            return Err(bad());
        }
        if text.starts_with('/') {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        let host_is_plain = |rest: &str| !rest.starts_with('-') && !rest.is_empty();
        if let Some((scheme, rest)) = text.split_once("://") {
            let fine = SCHEMES.contains(&scheme) && host_is_plain(rest);
            return fine.then(|| Self::Url(text.to_owned())).ok_or_else(bad);
        }
        match text.split_once(':') {
            Some((host, path))
                if host.contains('@')
                    && !host.contains('/')
                    && !path.starts_with(':')
                    && !host.split('@').any(|part| part.starts_with('-')) =>
            {
                Ok(Self::Url(text.to_owned()))
            }
            _ => Err(bad()),
        }
    }

    /// As git is to be told.
    pub(crate) fn for_git(&self) -> Result<String, BuildError> {
        match self {
            Self::Url(url) => Ok(url.clone()),
            Self::Path(path) => {
                let real = path
                    .canonicalize()
                    .map_err(BuildError::io("find the repository", path))?;
                real.to_str()
                    .map(str::to_owned)
                    .ok_or_else(|| BuildError::Source {
                        found: real.to_string_lossy().into_owned(),
                    })
            }
        }
    }

    /// How a clone gets at the objects: on one file system hard links, which stay whatever the
    /// owner does later; from another one the objects are read where they are.
    pub(crate) fn sharing(&self, folder: &Path) -> Option<&'static str> {
        use std::os::unix::fs::MetadataExt;
        let Self::Path(path) = self else { return None };
        let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
        Some(if device(path) == device(folder) {
            "--local"
        } else {
            "--shared"
        })
    }
}

impl fmt::Display for TreeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_paths_and_urls_and_nothing_that_runs_programs() {
        for good in [
            "https://git.example.org/linux.git",
            "ssh://git@example.org/linux",
            "git@example.org:linux.git",
            "file:///srv/linux",
        ] {
            assert!(
                matches!(TreeSource::parse(good), Ok(TreeSource::Url(_))),
                "{good}"
            );
        }
        let path = TreeSource::parse("/srv/linux").expect("a path");
        assert_eq!(path, TreeSource::Path("/srv/linux".into()));
        for bad in [
            "",
            "linux",
            "../linux",
            "--upload-pack=x",
            "ext::sh -c x",
            "ext::a@b:c",
            "https://-oProxyCommand=x",
            "-oProxyCommand=x@host:path",
            "user@-oProxyCommand=x:path",
            "ftp://example.org/linux",
            "/srv/li\nnux",
        ] {
            assert!(TreeSource::parse(bad).is_err(), "{bad:?}");
        }
    }
}
