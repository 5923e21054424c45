//! One build, from the mailbox to the kernels, on a thread of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use klab_build::config::{BaseConfig, ConfigRequest, Fragment};
use klab_build::{
    Applied, BuildError, BuildEvent, BuildOptions, BuildRequest, Built, Cancel, Commit, RawPatch,
    Tree, Watcher,
};
use klab_model::{
    BuildOrder, BuildProgress, BuildReport, ConfigBase, ConfigText, Digest, Failure, FailureClass,
    KernelConfig, KernelName, TargetSource,
};
use klab_series::{Base, Series, defuse, find_base};
use tokio::sync::mpsc::UnboundedSender;

use super::BuilderConfig;
use super::tail::Tail;
use crate::error::AgentError;

/// How often progress and log are sent at most.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Results of configurations that nobody wanted for so long are removed.
const UNUSED: Duration = Duration::from_secs(14 * 24 * 3600);
/// Kernels are kept here so that they need not be built again; the lab has them as well.
const KEEP_BYTES: u64 = 4 << 30;

/// What the thread says.
#[derive(Debug)]
pub(super) enum Say {
    /// Goes to the controller as it is.
    Report(BuildReport),
    /// A kernel is to be added; an [`Answer::Added`] follows.
    Add(Package),
}

/// A kernel that was built.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: KernelName,
    pub(super) path: PathBuf,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Answer {
    /// Whether the lab has the kernel already.
    Verdict(bool),
    /// Whether the kernel was added.
    Added(Result<(), String>),
}

/// Why the work ends before its end.
enum Stop {
    /// Nobody listens any more.
    Alone,
    /// It was told to, or the target or the whole build failed.
    Failed(BuildError),
    /// The lab could not do its part.
    Lab(String),
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        Stop::Failed(error)
    }
}

/// Opens the builder's folder.
///
/// # Errors
/// [`AgentError::Builder`].
pub(super) fn open(config: &BuilderConfig) -> Result<klab_build::Builder, AgentError> {
    let mut options = BuildOptions::default();
    if let Some(jobs) = config.jobs {
        options.jobs = jobs;
    }
    klab_build::Builder::open(&config.folder, options)
        .map_err(|error| AgentError::Builder(error.chain()))
}

/// The thread's side of the desk.
pub(super) struct Work {
    pub(super) order: BuildOrder,
    pub(super) mbox: Option<Vec<u8>>,
    pub(super) builder: klab_build::Builder,
    pub(super) cancel: Cancel,
    pub(super) say: UnboundedSender<Say>,
    pub(super) answers: Receiver<Answer>,
}

impl Work {
    /// Builds; the last word is [`BuildReport::Finished`] or [`BuildReport::Stopped`].
    pub(super) fn run(self) {
        let last = match self.all() {
            Ok(()) => BuildReport::Finished { failure: None },
            Err(Stop::Alone) => return,
            Err(Stop::Failed(BuildError::Cancelled)) => BuildReport::Stopped,
            Err(Stop::Failed(error)) => BuildReport::Finished {
                failure: Some(error.failure()),
            },
            Err(Stop::Lab(reason)) => BuildReport::Finished {
                failure: Some(Failure::infrastructure(reason)),
            },
        };
        // Whoever does not listen any more has given the build up.
        let _ = self.report(last);
    }

    fn report(&self, report: BuildReport) -> Result<(), Stop> {
        let said = self.say.send(Say::Report(report));
        said.map_err(|_| Stop::Alone)
    }

    fn note(&self, text: impl Into<String>) -> Result<(), Stop> {
        self.report(BuildReport::Note(text.into()))
    }

    /// Runs something that tells what it does; what it says becomes notes.
    fn watched<T>(
        &self,
        run: impl FnOnce(&mut Watcher<'_>) -> Result<T, BuildError>,
    ) -> Result<T, Stop> {
        let mut events = |event| {
            if let BuildEvent::Note(text) | BuildEvent::Waiting(text) = event {
                let _ = self.note(text);
            }
        };
        Ok(run(&mut Watcher::new(&self.cancel, &mut events))?)
    }

    fn all(&self) -> Result<(), Stop> {
        let config = config_of(&self.order.build.config)?;
        let tree = self.tree()?;
        let series = self.series()?;
        let applied = match self.base(&tree, series.as_ref())? {
            Some(base) => Some(self.apply(&tree, &base, series.as_ref())?),
            None => None,
        };
        for index in self.order.pending.clone() {
            self.target(index, &tree, &config, applied.as_ref())?;
        }
        self.clean(&tree)
    }

    /// The tree with everything that its source has now.
    fn tree(&self) -> Result<Tree, Stop> {
        let wanted = &self.order.tree;
        let source = klab_build::TreeSource::parse(wanted.source.as_str())?;
        let trees = self.builder.trees();
        let tree = match self.watched(|watcher| trees.add(&wanted.name, &source, watcher)) {
            // Removed and added again, with another source.
            Err(Stop::Failed(BuildError::TreeTaken { .. })) => {
                self.note(format!("tree {} has another source now", wanted.name))?;
                trees.remove(&wanted.name)?;
                self.watched(|watcher| trees.add(&wanted.name, &source, watcher))?
            }
            result => result?,
        };
        self.watched(|watcher| tree.fetch(watcher))?;
        Ok(tree)
    }

    fn series(&self) -> Result<Option<Series>, Stop> {
        let Some(mbox) = &self.mbox else {
            return Ok(None);
        };
        let series = klab_series::read_bytes("the series", mbox, &klab_series::Options::default());
        series.map(Some).map_err(|error| refused(error.to_string()))
    }

    /// The base, which an earlier attempt may have found; `None` where no target needs one.
    fn base(&self, tree: &Tree, series: Option<&Series>) -> Result<Option<Commit>, Stop> {
        let name = match (&self.order.base, &self.order.build.base, series) {
            (Some(known), _, _) => known.as_str().to_owned(),
            (None, Some(base), _) => base.as_str().to_owned(),
            (None, None, None) => return Ok(None),
            (None, None, Some(series)) => self.found_base(tree, series)?,
        };
        let base = self.watched(|watcher| tree.resolve(&name, watcher))?;
        self.report(BuildReport::BaseFound(base.id.clone()))?;
        Ok(Some(base))
    }

    fn found_base(&self, tree: &Tree, series: &Series) -> Result<String, Stop> {
        let finding = find_base(series, tree.repository());
        let finding = finding.map_err(|error| refused(error.to_string()))?;
        for warning in &finding.warnings {
            self.note(warning.to_string())?;
        }
        let Some(base) = finding.base else {
            return Err(refused(format!(
                "nothing in tree {} tells the base of the series: name it with --base",
                tree.name()
            )));
        };
        self.note(match &base {
            Base::Named { commit } => format!("base {commit}, which the series names"),
            Base::Guessed {
                reference,
                commit,
                matched,
                total,
            } => format!(
                "base {reference} ({commit}): {matched} of {total} files are there as the \
                 series expects them"
            ),
        })?;
        Ok(base.commit().to_owned())
    }

    fn apply(&self, tree: &Tree, base: &Commit, series: Option<&Series>) -> Result<Applied, Stop> {
        let patches = series.map_or(&[][..], |series| &series.patches);
        let raw: Vec<RawPatch<'_>> = patches
            .iter()
            .map(|patch| RawPatch {
                mail: &patch.raw,
                keep_cr: patch.keep_cr,
            })
            .collect();
        self.watched(|watcher| tree.apply(base, &raw, watcher))
    }

    /// One target. What is wrong with it alone does not end the build.
    fn target(
        &self,
        index: u32,
        tree: &Tree,
        config: &ConfigRequest,
        applied: Option<&Applied>,
    ) -> Result<(), Stop> {
        let start = Instant::now();
        let took = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.report(BuildReport::TargetStarted { index })?;
        match self.build(index, tree, config, applied) {
            Ok(Some(key)) => self.report(BuildReport::TargetBuilt {
                index,
                key,
                duration_ms: took(),
            }),
            // The lab has it and knows that.
            Ok(None) => Ok(()),
            Err(Stop::Failed(error)) if error.failure().class == FailureClass::Kernel => self
                .report(BuildReport::TargetFailed {
                    index,
                    reason: error.failure().reason,
                    duration_ms: took(),
                }),
            Err(stop) => Err(stop),
        }
    }

    fn build(
        &self,
        index: u32,
        tree: &Tree,
        config: &ConfigRequest,
        applied: Option<&Applied>,
    ) -> Result<Option<Digest>, Stop> {
        let Some(target) = self.order.build.targets.get(index as usize) else {
            return Err(Stop::Lab(format!("there is no target {index}")));
        };
        let commit = match (&target.source, applied) {
            (TargetSource::Ref(name), _) => {
                self.watched(|watcher| tree.resolve(name.as_str(), watcher))?
            }
            (TargetSource::Patches(count), Some(applied)) => {
                applied.prefix(*count as usize)?.clone()
            }
            (TargetSource::Patches(_), None) => return Err(refused("it has no base")),
        };
        let log = self.log_file()?;
        let request = BuildRequest {
            tree,
            commit: &commit,
            config,
            arch: self.order.build.arch,
            log: &log,
        };
        let Some(built) = self.make(index, &request)? else {
            return Ok(None);
        };
        for untaken in &built.untaken {
            self.note(format!("{}: {untaken}", target.variant))?;
        }
        let key = built.key.digest();
        self.add(&target.kernel, &built)?;
        Ok(Some(key))
    }

    fn log_file(&self) -> Result<PathBuf, Stop> {
        let folder = self.builder.trees().folder().join("logs");
        fs::create_dir_all(&folder)
            .map_err(|error| Stop::Lab(format!("{}: {error}", folder.display())))?;
        Ok(folder.join("build.log"))
    }

    /// Runs make, unless the lab has the kernel.
    fn make(&self, index: u32, request: &BuildRequest<'_>) -> Result<Option<Built>, Stop> {
        let _ = fs::remove_file(request.log);
        let mut teller = Teller {
            work: self,
            index,
            tail: Tail::new(request.log),
            last: None,
        };
        let mut stop = None;
        let result = self.builder.build_unless(
            request,
            &mut |key| match self.is_known(index, key.digest()) {
                Ok(known) => Ok(known),
                Err(reason) => {
                    stop = Some(reason);
                    Err(BuildError::Cancelled)
                }
            },
            &mut Watcher::new(&self.cancel, &mut |event| teller.tell(event)),
        );
        teller.flush();
        match (stop, result) {
            (Some(stop), _) => Err(stop),
            (None, result) => Ok(result?),
        }
    }

    /// Asks for a verdict.
    fn is_known(&self, index: u32, key: Digest) -> Result<bool, Stop> {
        self.report(BuildReport::TargetKey { index, key })?;
        match self.answer()? {
            Answer::Verdict(known) => Ok(known),
            Answer::Added(_) => Err(Stop::Lab("an answer that nobody asked for".to_owned())),
        }
    }

    fn add(&self, name: &KernelName, built: &Built) -> Result<(), Stop> {
        let package = Package {
            name: name.clone(),
            path: built.package.clone(),
            digest: built.offer.digest,
            size: built.offer.size,
        };
        self.say.send(Say::Add(package)).map_err(|_| Stop::Alone)?;
        match self.answer()? {
            Answer::Added(Ok(())) => Ok(()),
            Answer::Added(Err(reason)) => Err(Stop::Lab(format!("kernel {name}: {reason}"))),
            Answer::Verdict(_) => Err(Stop::Lab("an answer that nobody asked for".to_owned())),
        }
    }

    /// Waits for an answer; a cancelled build waits for nothing.
    fn answer(&self) -> Result<Answer, Stop> {
        use std::sync::mpsc::RecvTimeoutError;
        loop {
            match self.answers.recv_timeout(Duration::from_millis(200)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if self.cancel.is_cancelled() => {
                    return Err(BuildError::Cancelled.into());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Alone),
            }
        }
    }

    /// Removes what nobody has wanted for long, once everything is done.
    fn clean(&self, tree: &Tree) -> Result<(), Stop> {
        let removed = self.watched(|watcher| self.builder.prune_builds(tree, UNUSED, watcher));
        let pruned = self.builder.cache().prune(KEEP_BYTES);
        if let (Err(Stop::Failed(error)), _) | (_, Err(error)) = (removed, pruned) {
            self.note(format!("cleaning up: {}", error.chain()))?;
        }
        Ok(())
    }
}

/// Progress and log, not more often than anybody reads them.
struct Teller<'a> {
    work: &'a Work,
    index: u32,
    tail: Tail,
    last: Option<Instant>,
}

impl Teller<'_> {
    fn tell(&mut self, event: BuildEvent) {
        match event {
            BuildEvent::Note(text) | BuildEvent::Waiting(text) => {
                let _ = self.work.note(text);
            }
            BuildEvent::Progress(progress)
                if self.last.is_none_or(|last| last.elapsed() >= TELL_EVERY) =>
            {
                self.last = Some(Instant::now());
                let steps = |steps: u64| u32::try_from(steps).unwrap_or(u32::MAX);
                let progress = BuildProgress {
                    index: self.index,
                    files_done: steps(progress.done),
                    files_total: steps(progress.total),
                };
                let _ = self.work.report(BuildReport::Progress(progress));
                self.flush();
            }
            _ => {}
        }
    }

    fn flush(&mut self) {
        for piece in self.tail.pieces() {
            let _ = self.work.report(BuildReport::Log(piece));
        }
    }
}

fn config_of(config: &KernelConfig) -> Result<ConfigRequest, BuildError> {
    let fragment = |part: &ConfigText| Fragment::parse(&part.name, &part.text);
    Ok(ConfigRequest {
        base: match &config.base {
            ConfigBase::Defconfig => BaseConfig::target("defconfig")?,
            ConfigBase::Tinyconfig => BaseConfig::target("tinyconfig")?,
            ConfigBase::Text(part) => BaseConfig::file(&part.name, part.text.as_bytes())?,
        },
        fragments: config
            .fragments
            .iter()
            .map(fragment)
            .collect::<Result<_, _>>()?,
        allow_untaken: config.allow_missing,
    })
}

/// The series itself is at fault.
fn refused(reason: impl Into<String>) -> Stop {
    Stop::Failed(BuildError::Unusable {
        what: defuse(&reason.into()),
    })
}
