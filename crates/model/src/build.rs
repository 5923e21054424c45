//! Builds: the kernels that are wanted of one tree, series, configuration and architecture.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};
use crate::{
    Arch, BuildTaskId, Digest, KernelName, Owner, Series, Timestamp, TreeName, VariantName,
};

/// A branch, a tag or a commit, as git reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitRef(String);

impl GitRef {
    /// Reads a name by the rules of git-check-ref-format(1); expressions such as `HEAD~2`
    /// or `a..b` are none.
    ///
    /// # Errors
    /// [`InvalidText`].
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        if is_git_ref(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "git ref",
                text,
                "a branch, a tag or a commit, such as v6.12 or 7f4a0b1c2d3e",
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_type!(GitRef);
display_as_str!(GitRef);

fn is_git_ref(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    (1..=255).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() && !"~^:?*[\\".contains(c))
        && !text.starts_with('-')
        && !text.ends_with('.')
        && !text.contains("..")
        && !text.contains("@{")
        && text != "@"
        && text.split('/').all(part)
}

/// The full id of a git object: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(String);

impl ObjectId {
    /// Reads an id as git prints it.
    ///
    /// # Errors
    /// [`InvalidText`], also for an abbreviated id.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if matches!(text.len(), 40 | 64) && text.bytes().all(digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "git object id",
                text,
                "40 or 64 lower-case hexadecimal digits",
            ))
        }
    }

    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

text_type!(ObjectId);
display_as_str!(ObjectId);

/// Where a tree comes from: an absolute path, or a URL that git reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeSource(String);

impl TreeSource {
    /// Reads a path or URL.
    ///
    /// # Errors
    /// [`InvalidText`], also for a URL that holds a password: it would be shown to everybody.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        const SCHEMES: [&str; 5] = ["https://", "http://", "git://", "ssh://", "file://"];
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let has_password = |rest: &str| {
            let host = rest.split('/').next().unwrap_or_default();
            host.rsplit_once('@')
                .is_some_and(|(user, _)| user.contains(':'))
        };
        let good = match rest {
            Some(rest) => !rest.is_empty() && !has_password(rest),
            None => text.starts_with('/'),
        };
        if good && text.len() <= 4096 && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "tree source",
                text,
                "an absolute path, or a URL of https, http, git, ssh or file without a password",
            ))
        }
    }

    /// The path or URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_type!(TreeSource);
display_as_str!(TreeSource);

/// A git tree of the lab: builders clone it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Its name.
    pub name: TreeName,
    /// Where builders get it.
    pub source: TreeSource,
    /// When it was added.
    pub added_at: Timestamp,
}

/// What a configuration begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigBase {
    /// The architecture's default.
    Defconfig,
    /// The smallest one.
    Tinyconfig,
    /// A whole `.config`, brought up to date with `olddefconfig`.
    Text(ConfigText),
}

/// A part of a configuration: lines such as `CONFIG_X=y`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigText {
    /// A file name, or the name of a shipped fragment; for people.
    pub name: String,
    /// The lines.
    pub text: String,
}

/// How a kernel is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelConfig {
    /// What it begins with.
    pub base: ConfigBase,
    /// What is laid over it, in this order.
    pub fragments: Vec<ConfigText>,
    /// Whether a line of a fragment that did not take is noted only.
    pub allow_missing: bool,
}

/// A series as a build carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildSeries {
    /// What people are told of it.
    pub series: Series,
    /// Digest of the mailbox with all patches in order.
    pub mbox: Digest,
    /// Size of the mailbox in bytes.
    pub size: u64,
}

/// What a target is built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetSource {
    /// The base with the first so many patches of the series; 0 is the base itself.
    Patches(u32),
    /// A commit of the tree, without the series.
    Ref(GitRef),
}

/// One kernel that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildTarget {
    /// The variant it is for.
    pub variant: VariantName,
    /// What it is built from.
    pub source: TargetSource,
    /// The name under which the kernel will be added.
    pub kernel: KernelName,
}

/// A request for kernels. Targets are built in order in one folder, so that each costs only
/// what its patches touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its id.
    pub id: BuildTaskId,
    /// Who asked for it.
    pub owner: Owner,
    /// The tree.
    pub tree: TreeName,
    /// The commit that the series applies to; without it, the one that the series names or
    /// the one whose files fit best.
    pub base: Option<GitRef>,
    /// The patches, if any are needed.
    pub series: Option<BuildSeries>,
    /// The configuration.
    pub config: KernelConfig,
    /// The architecture.
    pub arch: Arch,
    /// At least one.
    pub targets: Vec<BuildTarget>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_follow_the_rules_of_git() {
        for good in [
            "v6.12",
            "master",
            "stable-rt/v6.1-rt",
            "7f4a0b1c2d3e",
            "a@b",
        ] {
            assert!(GitRef::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-x",
            "--output=x",
            "a..b",
            "HEAD~2",
            "a^",
            "a:b",
            "x@{1}",
            "@",
            "a b",
            "a//b",
            "/a",
            "a/",
            "a/.b",
            "a.lock",
            "a.",
            "ä",
            "a\n",
        ] {
            assert!(GitRef::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn object_ids_are_whole() {
        for good in ["a".repeat(40), "0".repeat(64)] {
            assert_eq!(ObjectId::parse(&good).unwrap().short(), &good[..12]);
        }
        for bad in [
            "".to_owned(),
            "a".repeat(39),
            "A".repeat(40),
            "g".repeat(40),
        ] {
            assert!(ObjectId::parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sources_are_paths_or_urls_without_secrets() {
        for good in [
            "/srv/linux",
            "https://git.example.org/linux.git",
            "ssh://git@host/linux",
            "file:///srv/linux",
        ] {
            assert!(TreeSource::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "linux",
            "../linux",
            "-x",
            "ext::sh -c x",
            "https://",
            "https://me:secret@host/x",
            "/a\nb",
        ] {
            assert!(TreeSource::parse(bad).is_err(), "{bad:?}");
        }
    }
}
