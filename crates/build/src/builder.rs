//! From a commit and a configuration to a kernel: everything in its order.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use klab_model::{Arch, Digest, KernelOffer};

use crate::cache::{CachedKernel, KernelCache};
use crate::config::{ConfigRequest, Configure, ResolvedConfig, Untaken, configure};
use crate::folder::{self, BuildFolder, Estimate};
use crate::lane::{Lane, LaneName};
use crate::make::{Make, Priority};
use crate::{
    BuildError, BuildEvent, BuildKey, Commit, Progress, Stage, ToolVersions, Toolchain, Tree,
    Trees, Watcher, files, pack, progress,
};

/// Builds kernels below one folder.
#[derive(Debug, Clone)]
pub struct Builder {
    trees: Trees,
    cache: KernelCache,
    options: BuildOptions,
}

/// How to build; none of it shows in a kernel.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// How many jobs `make` runs at once, at least 1.
    pub jobs: usize,
    /// How much the build takes of the machine.
    pub priority: Priority,
    /// Whether ccache is used where it is installed.
    pub ccache: bool,
    /// Which lane builds.
    pub lane: LaneName,
    /// Where programs are looked for; `PATH` without.
    pub path: Option<OsString>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            priority: Priority::Background,
            ccache: true,
            lane: LaneName::default(),
            path: None,
        }
    }
}

/// A kernel that is wanted.
#[derive(Debug, Clone)]
pub struct BuildRequest<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The commit, after all patches.
    pub commit: &'a Commit,
    /// The configuration.
    pub config: &'a ConfigRequest,
    /// For which machines.
    pub arch: Arch,
    /// Where everything that `make` prints goes; the file is written anew.
    pub log: &'a Path,
}

/// A kernel that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The canonical package.
    pub package: PathBuf,
    /// What the package says about itself.
    pub offer: KernelOffer,
    /// What decided what came out.
    pub key: BuildKey,
    /// Settings of the configuration that did not take; the request allowed them.
    pub untaken: Vec<Untaken>,
    /// Whether it was there before.
    pub cached: bool,
    /// Steps of `make`; 0 for a kernel that was there.
    pub steps: u64,
    /// How long `make` took.
    pub make_time: Duration,
    /// How long everything took, waiting for other builds left out.
    pub time: Duration,
}

impl Built {
    /// Exact versions of the tools that made it.
    #[must_use]
    pub fn tools(&self) -> &ToolVersions {
        &self.key.tools
    }
}

impl Builder {
    /// Builds below `folder`, which holds trees, work trees, and kernels.
    ///
    /// # Errors
    /// As [`Trees::open`].
    pub fn open(folder: &Path, options: BuildOptions) -> Result<Self, BuildError> {
        let trees = Trees::open(folder)?;
        let cache = KernelCache::open(&trees.folder().join("kernels"))?;
        Ok(Self {
            trees,
            cache,
            options,
        })
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The kernels that were built.
    #[must_use]
    pub fn cache(&self) -> &KernelCache {
        &self.cache
    }

    /// Builds a kernel, or takes the one that was built from the same before. Blocks; waits
    /// while another process builds in the same lane.
    ///
    /// # Errors
    /// [`BuildError`]: missing tools, settings that do not take, the first error of the
    /// compiler, and whatever git and files bring.
    pub fn build(
        &self,
        request: &BuildRequest<'_>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Built, BuildError> {
        let built = self.build_unless(request, &mut |_| Ok(false), watcher)?;
        built.ok_or(BuildError::Cancelled)
    }

    /// As [`Builder::build`], but first asks whether somebody has the kernel of this key
    /// already; then nothing is built, and nothing is the result.
    ///
    /// # Errors
    /// As [`Builder::build`], and those of `known`.
    pub fn build_unless(
        &self,
        request: &BuildRequest<'_>,
        known: &mut dyn FnMut(&BuildKey) -> Result<bool, BuildError>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Option<Built>, BuildError> {
        let lane = Lane::take(request.tree, &self.options.lane, watcher)?;
        let start = Instant::now();
        let toolchain = self.toolchain(request.arch, watcher)?;
        lane.check_out(request.commit, watcher)?;
        let (src, kconfig) = (lane.src(), lane.kconfig());
        let ccache = self.ccache()?;
        let make = Make {
            src: &src,
            out: &kconfig,
            toolchain: &toolchain,
            ccache: ccache.as_deref(),
            priority: self.options.priority,
            lock: Some(lane.lock()),
        };
        let how = Configure {
            make: &make,
            request: request.config,
        };
        let config = configure(&how, watcher)?;
        let key = BuildKey {
            tree: request.commit.tree.clone(),
            config: Digest::of(config.text.as_bytes()),
            arch: request.arch,
            tools: toolchain.versions(&config.config, watcher.cancel())?,
            flags: Make::flags(),
        };
        if known(&key)? {
            return Ok(None);
        }
        let out = lane.builds().join(folder_name(request));
        let bench = Bench {
            lane: &lane,
            make: &Make { out: &out, ..make },
            config: &config,
            jobs: self.options.jobs.max(1),
        };
        let (kernel, work) = self.kernel(&key, request, &bench, watcher)?;
        Ok(Some(Built {
            package: kernel.package,
            offer: kernel.offer,
            untaken: config.untaken,
            cached: work.is_none(),
            steps: work.as_ref().map_or(0, |work| work.steps),
            make_time: work.map_or(Duration::ZERO, |work| work.time),
            time: start.elapsed(),
            key,
        }))
    }

    /// The kernel of a key, and what it took if it was not there.
    fn kernel(
        &self,
        key: &BuildKey,
        request: &BuildRequest<'_>,
        bench: &Bench<'_>,
        watcher: &mut Watcher<'_>,
    ) -> Result<(CachedKernel, Option<Work>), BuildError> {
        let slot = self.cache.slot(key, watcher)?;
        if let Some(kernel) = slot.find(watcher)? {
            return Ok((kernel, None));
        }
        let work = bench.make(request, watcher)?;
        let stage = bench.lane.stage();
        let package = pack::collect(bench.make, &bench.config.config, &stage, watcher)?;
        let kernel = slot.fill(|file| pack::write(&package, file))?;
        files::remove(&stage)?;
        Ok((kernel, Some(work)))
    }

    /// Removes folders of results of `tree` in this builder's lane that no build has used for
    /// `unused`; how many. A later build of such a configuration begins from nothing.
    ///
    /// # Errors
    /// When the folders cannot be read or removed.
    pub fn prune_builds(
        &self,
        tree: &Tree,
        unused: Duration,
        watcher: &mut Watcher<'_>,
    ) -> Result<usize, BuildError> {
        let lane = Lane::take(tree, &self.options.lane, watcher)?;
        folder::prune(&lane.builds(), unused)
    }

    fn toolchain(&self, arch: Arch, watcher: &Watcher<'_>) -> Result<Toolchain, BuildError> {
        let toolchain = match &self.options.path {
            Some(path) => Toolchain::detect_on(arch, path, watcher.cancel())?,
            None => Toolchain::detect(arch, watcher.cancel())?,
        };
        Ok(if self.options.ccache {
            toolchain
        } else {
            toolchain.without_ccache()
        })
    }

    fn ccache(&self) -> Result<Option<PathBuf>, BuildError> {
        if !self.options.ccache {
            return Ok(None);
        }
        let folder = self.trees.folder().join("ccache");
        files::make_folder(&folder)?;
        Ok(Some(folder))
    }
}

/// Everything that is in place when `make` begins.
struct Bench<'a> {
    lane: &'a Lane<'a>,
    make: &'a Make<'a>,
    config: &'a ResolvedConfig,
    jobs: usize,
}

impl Bench<'_> {
    fn targets(&self) -> Vec<String> {
        let target = self.make.arch();
        let mut targets = vec![target.image().0];
        if self.config.config.is_on("MODULES") {
            targets.push("modules");
        }
        if target.has_dtbs() {
            targets.push("dtbs");
        }
        targets.into_iter().map(str::to_owned).collect()
    }

    fn make(
        &self,
        request: &BuildRequest<'_>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Work, BuildError> {
        let mut folder = BuildFolder::open(self.make.out.to_owned(), watcher)?;
        folder.set_config(&self.config.text)?;
        let changed = match folder.last_tree() {
            Some(last) => self.lane.changed(last, request.commit, watcher.cancel())?,
            None => None,
        };
        let estimate = folder.estimate(changed.as_deref(), self.config.config.count_on())?;
        let mut log = Log::create(request.log)?;
        watcher.stage(Stage::Building)?;
        let mut args = vec![format!("-j{}", self.jobs)];
        args.extend(self.targets());
        folder.begin()?;
        let start = Instant::now();
        let mut steps = Steps::new(estimate);
        let made = run(self.make, &args, self.lane, &mut steps, &mut log, watcher)?;
        if !made.killed {
            let done = made.result.is_ok();
            folder.end(done.then_some((request.commit, steps.done)))?;
        }
        self.lane.owner().clear()?;
        log.finish()?;
        made.result?;
        Ok(Work {
            steps: steps.done,
            time: start.elapsed(),
        })
    }
}

/// What `make` did.
#[derive(Debug)]
struct Work {
    steps: u64,
    time: Duration,
}

/// Runs `make`, with its output in the log and its steps told.
fn run(
    make: &Make<'_>,
    args: &[String],
    lane: &Lane<'_>,
    steps: &mut Steps,
    log: &mut Log,
    watcher: &mut Watcher<'_>,
) -> Result<crate::make::Made, BuildError> {
    // The closure that gets the lines holds the watcher, `make` needs its token only.
    let cancel = watcher.cancel();
    let mut line = |text: &str| {
        log.line(text);
        if let Some(progress) = steps.line(text) {
            watcher.tell(BuildEvent::Progress(progress));
        }
    };
    let mut started = |pid| {
        lane.owner()
            .record(pid)
            .map_err(|error| io::Error::other(error.chain()))
    };
    make.run(args, cancel, &mut started, &mut line)
}

/// The folder of results for a request.
fn folder_name(request: &BuildRequest<'_>) -> String {
    let digest = request.config.digest(request.arch);
    format!("{}-{}", request.arch, digest.short())
}

/// Counts steps.
struct Steps {
    done: u64,
    estimate: Estimate,
}

impl Steps {
    fn new(estimate: Estimate) -> Self {
        Self { done: 0, estimate }
    }

    fn line(&mut self, text: &str) -> Option<Progress> {
        let file = progress::step(text)?;
        self.done += 1;
        Some(Progress {
            done: self.done,
            total: self.estimate.total.max(self.done),
            total_from: self.estimate.from,
            current: file.to_owned(),
        })
    }
}

/// The log of a build. A log that cannot be written stops no build, but is told at its end.
struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    error: Option<io::Error>,
}

impl Log {
    fn create(path: &Path) -> Result<Self, BuildError> {
        let file = File::create(path).map_err(BuildError::io("write", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            error: None,
        })
    }

    fn line(&mut self, text: &str) {
        // Whoever follows the file sees each line at once.
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.flush());
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    fn finish(self) -> Result<(), BuildError> {
        match self.error {
            None => Ok(()),
            Some(error) => Err(BuildError::io("write", self.path)(error)),
        }
    }
}
