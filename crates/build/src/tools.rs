//! The programs and headers that building a kernel takes, and the Debian packages that bring
//! them.

use std::fmt;

use crate::config::DotConfig;

/// A program or header that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// The program, or the header with its folder.
    pub name: String,
    /// The Debian package that brings it.
    pub package: String,
    /// The symbol of the configuration that needs it; everything needs it without.
    pub needed_by: Option<String>,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.needed_by {
            Some(symbol) => write!(f, " (for CONFIG_{symbol})"),
            None => Ok(()),
        }
    }
}

/// What is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Program,
    /// A header of the machine that builds, for the kernel's own helper programs.
    Header,
}

/// Something that building takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) package: &'static str,
    /// One of these symbols makes it needed; none: it always is.
    symbols: &'static [&'static str],
    /// Whether its version may show in the kernel, so that it belongs to the key.
    pub(crate) shows: bool,
}

const fn program(name: &'static str, package: &'static str) -> Need {
    Need {
        name,
        kind: Kind::Program,
        package,
        symbols: &[],
        shows: false,
    }
}

impl Need {
    const fn of(mut self, symbols: &'static [&'static str]) -> Self {
        self.symbols = symbols;
        self
    }

    const fn shows(mut self) -> Self {
        self.shows = true;
        self
    }

    const fn header(mut self) -> Self {
        self.kind = Kind::Header;
        self
    }

    pub(crate) fn is_always_needed(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The symbol that makes it needed.
    pub(crate) fn needed_by(&self, config: &DotConfig) -> Option<&'static str> {
        self.symbols.iter().copied().find(|s| config.is_on(s))
    }
}

/// Everything but compiler and linker, whose names depend on the architecture.
pub(crate) const NEEDS: [Need; 17] = [
    program("make", "make"),
    program("flex", "flex"),
    program("bison", "bison"),
    program("bc", "bc"),
    program("stdio.h", "libc6-dev").header(),
    program("gelf.h", "libelf-dev")
        .header()
        .of(&["OBJTOOL", "STACK_VALIDATION", "UNWINDER_ORC"]),
    program("openssl/evp.h", "libssl-dev").header().of(&[
        "MODULE_SIG_FORMAT",
        "SYSTEM_TRUSTED_KEYRING",
        "SYSTEM_DATA_VERIFICATION",
    ]),
    program("depmod", "kmod").of(&["MODULES"]).shows(),
    program("pahole", "dwarves").of(&["DEBUG_INFO_BTF"]).shows(),
    program("perl", "perl").of(&["BUILD_OID_REGISTRY", "OID_REGISTRY"]),
    program("cpio", "cpio").of(&["IKHEADERS"]),
    program("gzip", "gzip")
        .of(&["KERNEL_GZIP", "IKCONFIG", "MODULE_COMPRESS_GZIP"])
        .shows(),
    program("bzip2", "bzip2").of(&["KERNEL_BZIP2"]).shows(),
    program("xz", "xz-utils")
        .of(&["KERNEL_XZ", "IKHEADERS", "MODULE_COMPRESS_XZ"])
        .shows(),
    program("lzma", "xz-utils").of(&["KERNEL_LZMA"]).shows(),
    program("zstd", "zstd")
        .of(&["KERNEL_ZSTD", "MODULE_COMPRESS_ZSTD"])
        .shows(),
    program("lz4", "lz4").of(&["KERNEL_LZ4"]).shows(),
];

/// What is missing, and one command that mends it.
pub(crate) fn describe(missing: &[MissingTool]) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package.as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    format!(
        "not on this machine: {}; on Debian: apt-get install {}",
        names.join(", "),
        packages.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_brings_everything() {
        let tool = |name: &str, package: &str, needed_by: Option<&str>| MissingTool {
            name: name.to_owned(),
            package: package.to_owned(),
            needed_by: needed_by.map(str::to_owned),
        };
        let missing = [
            tool("flex", "flex", None),
            tool("xz", "xz-utils", Some("KERNEL_XZ")),
            tool("lzma", "xz-utils", None),
        ];
        assert_eq!(
            describe(&missing),
            "not on this machine: flex, xz (for CONFIG_KERNEL_XZ), lzma; on Debian: apt-get \
             install flex xz-utils"
        );
    }

    #[test]
    fn what_a_configuration_needs_follows_its_symbols() {
        let config = DotConfig::parse("CONFIG_UNWINDER_ORC=y\nCONFIG_MODULES=y\n");
        let needed: Vec<&str> = NEEDS
            .iter()
            .filter(|need| need.needed_by(&config).is_some())
            .map(|need| need.name)
            .collect();
        assert_eq!(needed, ["gelf.h", "depmod"]);
    }
}
