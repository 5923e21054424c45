//! What configuration somebody asks for.

use std::io::Read;

use flate2::read::GzDecoder;
use klab_model::{Arch, Digest, Digester};
use serde::{Deserialize, Serialize};

use super::Fragment;
use super::dotconfig::{DotConfig, line};
use crate::BuildError;

/// Largest configuration after decompression, in bytes; distributions' have 300 KiB.
const LARGEST: u64 = 8 << 20;

/// Where a configuration starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseConfig {
    /// A target of `make`: `defconfig`, `tinyconfig`, `allnoconfig` or `NAME_defconfig`.
    Target(String),
    /// The text of a `.config`, as of another build or of a running board.
    Text {
        /// Its name, for messages.
        name: String,
        /// The text.
        text: String,
    },
}

impl BaseConfig {
    /// A target of `make`.
    ///
    /// # Errors
    /// [`BuildError::ConfigBase`] for targets that need a person or are none.
    pub fn target(name: &str) -> Result<Self, BuildError> {
        let known = ["defconfig", "tinyconfig", "allnoconfig"].contains(&name);
        let defconfig = name.strip_suffix("_defconfig").is_some_and(|start| {
            let legal = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
            !start.is_empty() && !start.starts_with('-') && start.bytes().all(legal)
        });
        if known || defconfig {
            Ok(Self::Target(name.to_owned()))
        } else {
            Err(BuildError::ConfigBase {
                name: name.to_owned(),
                what: "expected defconfig, tinyconfig, allnoconfig or NAME_defconfig".to_owned(),
            })
        }
    }

    /// The bytes of a `.config`, or of the gzipped one in a board's `/proc/config.gz`.
    ///
    /// # Errors
    /// [`BuildError::ConfigBase`] if it is none.
    pub fn file(name: &str, bytes: &[u8]) -> Result<Self, BuildError> {
        let error = |what: &str| BuildError::ConfigBase {
            name: name.to_owned(),
            what: what.to_owned(),
        };
        let mut plain = Vec::new();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(bytes)
                .take(LARGEST + 1)
                .read_to_end(&mut plain)
                .map_err(|_| error("damaged gzip file: read it again"))?;
        } else {
            plain.extend_from_slice(bytes);
        }
        if plain.len() as u64 > LARGEST {
            return Err(error("too large for a configuration"));
        }
        let text = String::from_utf8(plain).map_err(|_| error("not a text"))?;
        if DotConfig::parse(&text).count_on() == 0 {
            return Err(error("no configuration: no line like CONFIG_X=y is in it"));
        }
        Ok(Self::Text {
            name: name.to_owned(),
            text,
        })
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Target(name) | Self::Text { name, .. } => name,
        }
    }
}

/// A configuration that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRequest {
    /// Where it starts from.
    pub base: BaseConfig,
    /// What is put over it; of two that set the same symbol the later one counts.
    pub fragments: Vec<Fragment>,
    /// Whether settings that did not take are accepted; otherwise they refuse the build.
    pub allow_untaken: bool,
}

impl ConfigRequest {
    /// Names the folder in which kernels of this configuration are built: the names of files
    /// and fragments do not matter, their content does.
    pub(crate) fn digest(&self, arch: Arch) -> Digest {
        let mut digester = Digester::new();
        let mut field = |text: &str| {
            digester.update(&(text.len() as u64).to_le_bytes());
            digester.update(text.as_bytes());
        };
        field(arch.as_str());
        match &self.base {
            BaseConfig::Target(target) => field(target),
            BaseConfig::Text { text, .. } => field(text),
        }
        for fragment in &self.fragments {
            for setting in &fragment.settings {
                field(&line(&setting.symbol, &setting.value));
            }
        }
        digester.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn targets_are_those_that_need_no_person() {
        for good in [
            "defconfig",
            "tinyconfig",
            "x86_64_defconfig",
            "nommu_virt_defconfig",
        ] {
            assert!(BaseConfig::target(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "menuconfig",
            "all",
            "_defconfig",
            "-x_defconfig",
            "a b_defconfig",
        ] {
            assert!(BaseConfig::target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_boards_configuration_is_unpacked() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"CONFIG_SMP=y\n").expect("memory");
        let mut bytes = packer.finish().expect("memory");
        let base = BaseConfig::file("board", &bytes).expect("a configuration");
        let BaseConfig::Text { text, .. } = base else {
            panic!("a text");
        };
        assert_eq!(text, "CONFIG_SMP=y\n");
        bytes.truncate(15);
        for bad in [
            bytes.as_slice(),
            b"hello",
            b"",
            &[0xff; 9],
            b"# CONFIG_X is not set\n",
        ] {
            assert!(BaseConfig::file("board", bad).is_err());
        }
    }

    #[test]
    fn names_do_not_change_the_digest_and_content_does() {
        let request = |name: &str, text: &str| ConfigRequest {
            base: BaseConfig::target("defconfig").expect("target"),
            fragments: vec![Fragment::parse(name, text).expect("fragment")],
            allow_untaken: false,
        };
        let one = request("a", "CONFIG_A=y").digest(Arch::X86_64);
        assert_eq!(one, request("b", "# x\nCONFIG_A=y\n").digest(Arch::X86_64));
        assert_ne!(one, request("a", "CONFIG_A=m").digest(Arch::X86_64));
        assert_ne!(one, request("a", "CONFIG_A=y").digest(Arch::Riscv64));
    }
}
