//! The kernel release: what `uname -r` prints and the modules folder is called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest release the kernel can hold: `__NEW_UTS_LEN` in `include/uapi/linux/utsname.h`.
const LONGEST: usize = 64;

/// A kernel release, safe to be used as one component of a path.
///
/// Starts with a digit and holds letters, digits and `.`, `_`, `+`, `~`, `-` only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release(String);

/// Why a text is no kernel release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no kernel release: expected what `uname -r` prints, at most {LONGEST} \
     letters, digits and . _ + ~ -, starting with a digit"
)]
pub struct ReleaseError {
    /// The text as it was found, cut to a printable length.
    pub found: String,
}

impl Release {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`ReleaseError`] with the text that was found.
    pub fn parse(text: &str) -> Result<Self, ReleaseError> {
        let fine = text.len() <= LONGEST
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._+~-".contains(&b));
        if fine {
            Ok(Self(text.to_owned()))
        } else {
            Err(ReleaseError {
                found: text.chars().take(LONGEST + 1).collect(),
            })
        }
    }

    /// The release as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Release {
    type Error = ReleaseError;

    fn try_from(text: String) -> Result<Self, ReleaseError> {
        Self::parse(&text)
    }
}

impl From<Release> for String {
    fn from(release: Release) -> Self {
        release.0
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn releases_are_one_path_component() {
        for good in [
            "6.1.0-57-cloud-amd64",
            "6.12.117+deb13-riscv64",
            "7.0-rc1",
            "6.8.0~x_y",
        ] {
            assert_eq!(Release::parse(good).expect("release").as_str(), good);
        }
        let long = format!("6.{}", "1".repeat(64));
        for bad in [
            "", "..", ".6", "6/1", "6.1\0", "v6.1", "6.1 (x)", "ü", &long,
        ] {
            assert!(Release::parse(bad).is_err(), "{bad:?}");
        }
    }
}
