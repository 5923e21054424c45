//! Compiler, linker and helpers: which ones there are, exactly.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use klab_model::Arch;
use serde::{Deserialize, Serialize};

use crate::config::DotConfig;
use crate::target::Target;
use crate::tools::{Kind, MissingTool, NEEDS, Need};
use crate::{BuildError, Cancel, process};

/// Where administrators' programs are, which PATH may lack.
const MORE_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The tools for one architecture.
#[derive(Debug, Clone)]
pub struct Toolchain {
    pub(crate) target: Target,
    /// `riscv64-linux-gnu-` where the machine is another one, else empty.
    pub(crate) prefix: String,
    pub(crate) path: OsString,
    compiler: String,
    linker: String,
    ccache: Option<PathBuf>,
    /// What stands before a command that shall take only what others leave.
    pub(crate) background: Vec<&'static str>,
    /// What is not there, and needed only by some configurations.
    absent: Vec<&'static str>,
}

/// The exact versions of what made a kernel, by the name of the tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolVersions(pub BTreeMap<String, String>);

impl Toolchain {
    /// Looks for the tools on `PATH`.
    ///
    /// # Errors
    /// [`BuildError::MissingTools`] with everything that is missing at once, and the Debian
    /// packages that bring it.
    pub fn detect(arch: Arch, cancel: &Cancel) -> Result<Self, BuildError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::detect_on(arch, &path, cancel)
    }

    /// Looks for the tools in the folders of `path`, which has the form of `PATH`.
    ///
    /// # Errors
    /// As [`Toolchain::detect`].
    pub fn detect_on(arch: Arch, path: &OsStr, cancel: &Cancel) -> Result<Self, BuildError> {
        let target = Target::new(arch)?;
        let host = Host::new(path, cancel);
        let (cross, gcc_package, binutils_package) = target.cross();
        let (prefix, gcc_package, binutils_package) = if target.is_native() {
            ("", "gcc", "binutils")
        } else {
            (cross, gcc_package, binutils_package)
        };
        let gcc = format!("{prefix}gcc");
        let ld = format!("{prefix}ld");
        let mut programs = vec![(gcc.as_str(), gcc_package), (ld.as_str(), binutils_package)];
        if !prefix.is_empty() {
            // The kernel's helper programs run on the machine that builds.
            programs.extend([("gcc", "gcc"), ("ld", "binutils")]);
        }
        let mut missing: Vec<MissingTool> = programs
            .iter()
            .filter(|(name, _)| host.find(name).is_none())
            .map(|(name, package)| missing(name, package, None))
            .collect();
        let mut absent = Vec::new();
        for need in &NEEDS {
            if host.has(need)? {
            } else if need.is_always_needed() {
                missing.push(self::missing(need.name, need.package, None));
            } else {
                absent.push(need.name);
            }
        }
        if !missing.is_empty() {
            return Err(BuildError::MissingTools(missing));
        }
        Ok(Self {
            target,
            prefix: prefix.to_owned(),
            compiler: host.version(&gcc)?,
            linker: host.version(&ld)?,
            ccache: host.find("ccache"),
            background: host.background(),
            path: host.path.clone(),
            absent,
        })
    }

    /// The compiler's name and version, as it prints them.
    #[must_use]
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The linker's name and version, as it prints them.
    #[must_use]
    pub fn linker(&self) -> &str {
        &self.linker
    }

    /// Where ccache is, if it is installed.
    #[must_use]
    pub fn ccache(&self) -> Option<&Path> {
        self.ccache.as_deref()
    }

    /// Takes this toolchain without ccache.
    #[must_use]
    pub fn without_ccache(mut self) -> Self {
        self.ccache = None;
        self
    }

    /// The versions of all tools that show in a kernel of this configuration.
    ///
    /// # Errors
    /// [`BuildError::MissingTools`] if the configuration needs what is not there.
    pub fn versions(
        &self,
        config: &DotConfig,
        cancel: &Cancel,
    ) -> Result<ToolVersions, BuildError> {
        let needed = || {
            NEEDS
                .iter()
                .filter_map(|need| Some((need, need.needed_by(config)?)))
        };
        let missing: Vec<MissingTool> = needed()
            .filter(|(need, _)| self.absent.contains(&need.name))
            .map(|(need, symbol)| missing(need.name, need.package, Some(symbol)))
            .collect();
        if !missing.is_empty() {
            return Err(BuildError::MissingTools(missing));
        }
        let host = Host::new(&self.path, cancel);
        let mut versions = BTreeMap::from([
            ("gcc".to_owned(), self.compiler.clone()),
            ("ld".to_owned(), self.linker.clone()),
        ]);
        for (need, _) in needed().filter(|(need, _)| need.shows) {
            versions.insert(need.name.to_owned(), host.version(need.name)?);
        }
        Ok(ToolVersions(versions))
    }
}

fn missing(name: &str, package: &str, needed_by: Option<&str>) -> MissingTool {
    MissingTool {
        name: name.to_owned(),
        package: package.to_owned(),
        needed_by: needed_by.map(str::to_owned),
    }
}

/// The machine that builds.
struct Host<'a> {
    path: OsString,
    cancel: &'a Cancel,
}

impl<'a> Host<'a> {
    fn new(path: &OsStr, cancel: &'a Cancel) -> Self {
        let given: Vec<PathBuf> = std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .collect();
        let more = MORE_FOLDERS
            .iter()
            .map(PathBuf::from)
            .filter(|folder| !given.contains(folder));
        // A folder whose name has a colon cannot stand in PATH, so nothing is lost.
        let path = std::env::join_paths(given.iter().cloned().chain(more)).unwrap_or_default();
        Self { path, cancel }
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let runs = |path: &PathBuf| {
            path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        };
        std::env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(runs)
    }

    /// Both programs replace themselves by what follows, so the process stays the same one.
    fn background(&self) -> Vec<&'static str> {
        let mut words = Vec::new();
        if self.find("nice").is_some() {
            words.extend(["nice", "-n", "19"]);
        }
        if self.find("ionice").is_some() {
            words.extend(["ionice", "-t", "-c", "3"]);
        }
        words
    }

    fn has(&self, need: &Need) -> Result<bool, BuildError> {
        match need.kind {
            Kind::Program => Ok(self.find(need.name).is_some()),
            // Without a compiler nothing is known, and the compiler is named anyhow.
            Kind::Header if self.find("gcc").is_none() => Ok(true),
            Kind::Header => self.has_header(need.name),
        }
    }

    fn has_header(&self, header: &str) -> Result<bool, BuildError> {
        let args = [
            "-E",
            "-o",
            "/dev/null",
            "-include",
            header,
            "-x",
            "c",
            "/dev/null",
        ];
        Ok(self.output("gcc", &args)?.0)
    }

    /// The first line of what `PROGRAM --version` prints.
    fn version(&self, program: &str) -> Result<String, BuildError> {
        let (_, text) = self.output(program, &["--version"])?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        Ok(line.unwrap_or("unknown").to_owned())
    }

    fn output(&self, program: &str, args: &[&str]) -> Result<(bool, String), BuildError> {
        let start = |source| BuildError::Start {
            program: program.to_owned(),
            source,
        };
        let place = self
            .find(program)
            .ok_or_else(|| start(std::io::ErrorKind::NotFound.into()))?;
        let mut command = Command::new(place);
        command
            .args(args)
            .env("PATH", &self.path)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        let mut text = Vec::new();
        let ended = process::run(
            command,
            process::Pipes::Merged,
            self.cancel,
            &mut |_| Ok(()),
            &mut |_, bytes| text.extend_from_slice(bytes),
        )
        .map_err(start)?;
        if ended.cancelled {
            return Err(BuildError::Cancelled);
        }
        Ok((
            ended.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    }
}
