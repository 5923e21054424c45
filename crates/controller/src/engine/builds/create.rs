//! New builds: everything is checked before anything is kept.

use std::collections::BTreeSet;

use bytes::Bytes;
use klab_model::{
    Build, BuildEventBody, BuildRequest, BuildTarget, BuildTaskId, ConfigBase, KernelConfig,
    KernelName, TargetSource, Tree, TreeName, TreeSource,
};
use klab_proto::status::Reason;
use klab_store::{BuildRecord, BuildTransition, StoreError, UploadKey};
use newtype_uuid::GenericUuid;

use super::super::staged::Staged;
use super::super::{Engine, EngineError, found};

/// The largest mailbox of a series, in bytes.
const MAX_MBOX: u64 = 64 << 20;
/// The largest part of a configuration, in bytes: whole ones have about 300 kB.
const MAX_CONFIG: usize = 1 << 20;
/// The most parts that are laid over a configuration.
const MAX_FRAGMENTS: usize = 32;
/// The most kernels of a build.
const MAX_TARGETS: usize = 256;

/// A build on its way. Nothing of it is kept once it is dropped.
#[derive(Debug)]
pub(crate) struct BuildUpload {
    request: BuildRequest,
    staged: Staged,
    length: u64,
}

impl BuildUpload {
    /// Throws away what is staged; no error if it is an object by now.
    pub(crate) async fn discard(self) {
        self.staged.discard().await;
    }

    fn size(&self) -> u64 {
        self.request.series.as_ref().map_or(0, |series| series.size)
    }
}

impl Engine {
    /// Adds a tree, or gives it as it was added before.
    pub(crate) async fn add_tree(
        &self,
        name: TreeName,
        source: TreeSource,
    ) -> Result<Tree, EngineError> {
        let tree = Tree {
            name,
            source,
            added_at: self.now(),
        };
        match self.store.add_tree(&tree).await {
            Err(StoreError::AlreadyExists { .. }) => {
                let known = self.store.tree(&tree.name).await?;
                Err(EngineError::refused(
                    Reason::AlreadyExists,
                    format!(
                        "tree {} is {}: remove it first with `klab tree remove {}`, or give this \
                         one another name",
                        known.name, known.source, known.name
                    ),
                ))
            }
            result => Ok(result?),
        }
    }

    /// Forgets a tree that no live build needs.
    pub(crate) async fn remove_tree(&self, name: &TreeName) -> Result<(), EngineError> {
        let live = self.store.live_builds().await?;
        if let Some(record) = live.iter().find(|record| record.build.tree == *name) {
            return Err(EngineError::refused(
                Reason::WrongState,
                format!(
                    "build {} needs tree {name}: wait for it, or end it with `klab build cancel`",
                    record.build.id
                ),
            ));
        }
        Ok(self.store.remove_tree(name).await?)
    }

    /// A build is announced; its mailbox follows.
    pub(crate) async fn begin_build(
        &self,
        request: BuildRequest,
    ) -> Result<BuildUpload, EngineError> {
        let mut wrong = check(&request);
        if found(self.store.tree(&request.tree).await)?.is_none() {
            wrong.push(("tree".to_owned(), self.unknown_tree(&request.tree).await?));
        }
        if !wrong.is_empty() {
            return Err(EngineError::BadRequest(wrong));
        }
        let key = UploadKey::parse(&format!("series.{}", self.ids.next()))?;
        let staged = Staged::new(self.store.objects(), key, self.shutdown());
        Ok(BuildUpload {
            request,
            staged,
            length: 0,
        })
    }

    async fn unknown_tree(&self, name: &TreeName) -> Result<String, EngineError> {
        let trees = self.store.list_trees().await?;
        let known: Vec<String> = trees.iter().map(|tree| tree.name.to_string()).collect();
        let known = match known.is_empty() {
            true => "no trees are known yet".to_owned(),
            false => format!("known trees: {}", known.join(", ")),
        };
        Ok(format!(
            "there is no tree {name}; {known} (add one with `klab tree add NAME PATH-or-URL`)"
        ))
    }

    /// Bytes of a mailbox arrived.
    pub(crate) async fn append_build(
        &self,
        upload: &mut BuildUpload,
        bytes: Bytes,
    ) -> Result<(), EngineError> {
        if upload.length + bytes.len() as u64 > upload.size() {
            return Err(EngineError::field(
                "data",
                "more bytes arrived than were announced",
            ));
        }
        let objects = self.store.objects();
        let key = upload.staged.key();
        upload.length = objects.append(key, upload.length, bytes).await?;
        Ok(())
    }

    /// The whole mailbox arrived.
    pub(crate) async fn finish_build(
        &self,
        upload: &BuildUpload,
    ) -> Result<BuildRecord, EngineError> {
        if let Some(series) = &upload.request.series {
            let objects = self.store.objects();
            let key = upload.staged.key();
            objects.commit(key, &series.mbox, series.size).await?;
        }
        let build = self.named(upload.request.clone());
        let record = self.store.create_build(&build).await?;
        if !self.builds.builders.can_build(build.arch) {
            let text = format!(
                "no builder for {} is connected: `klab-agent --role builder` starts one",
                build.arch
            );
            let state = record.state.value.clone();
            let transition = BuildTransition::new(&record, state, self.now())
                .event(BuildEventBody::Note { text });
            self.store.change_build(&transition).await?;
        }
        self.feed_changed();
        self.builds.assignable.notify_one();
        Ok(record)
    }

    /// The build with an id and the names of its kernels.
    fn named(&self, request: BuildRequest) -> Build {
        let id: BuildTaskId = self.new_id();
        let targets = request.targets.into_iter().enumerate();
        Build {
            targets: targets
                .map(|(index, (variant, source))| BuildTarget {
                    kernel: kernel_name(&request.tree, id, index, variant.as_str()),
                    variant,
                    source,
                })
                .collect(),
            id,
            owner: request.owner,
            tree: request.tree,
            base: request.base,
            series: request.series,
            config: request.config,
            arch: request.arch,
            created_at: self.now(),
        }
    }
}

/// `linux-3f2a9c01d4e5.1-1..2`: the tree, the end of the build's id, which is random, the
/// target's number, which makes it unique, and its variant as far as it fits.
fn kernel_name(tree: &TreeName, id: BuildTaskId, index: usize, variant: &str) -> KernelName {
    let id = id.into_untyped_uuid().simple().to_string();
    let legal = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(*c);
    let tree: String = tree.as_str().chars().take(20).collect();
    let variant: String = variant
        .to_ascii_lowercase()
        .chars()
        .filter(legal)
        .take(24)
        .collect();
    let name = format!("{tree}-{}.{index}-{variant}", &id[20..]);
    let plain = format!("kernel-{id}.{index}");
    // Every part is legal; the fallback costs nothing.
    KernelName::parse(&name)
        .or_else(|_| KernelName::parse(&plain))
        .expect("a legal name of hexadecimal digits")
}

type Violations = Vec<(String, String)>;

fn check(request: &BuildRequest) -> Violations {
    let mut wrong = Violations::new();
    check_targets(request, &mut wrong);
    check_config(&request.config, &mut wrong);
    if let Some(series) = &request.series {
        if !(1..=MAX_MBOX).contains(&series.size) {
            let problem = format!("found {} bytes; expected 1 to {MAX_MBOX}", series.size);
            wrong.push(("mbox_size".to_owned(), problem));
        }
        if series.series.patches.is_empty() {
            wrong.push(("series.patches".to_owned(), "there are none".to_owned()));
        }
    }
    wrong
}

fn check_targets(request: &BuildRequest, wrong: &mut Violations) {
    let count = request.targets.len();
    if !(1..=MAX_TARGETS).contains(&count) {
        let problem = format!("found {count}; expected 1 to {MAX_TARGETS}");
        wrong.push(("targets".to_owned(), problem));
    }
    let series = request.series.as_ref();
    let patches = series.map_or(0, |series| series.series.patches.len());
    let mut names = BTreeSet::new();
    for (index, (variant, source)) in request.targets.iter().enumerate() {
        if !names.insert(variant) {
            let problem = format!("variant {variant} is given twice");
            wrong.push((format!("targets[{index}].variant"), problem));
        }
        if let TargetSource::Patches(wanted) = source
            && *wanted as usize > patches
        {
            let problem = format!("wants {wanted} patches; the series has {patches}");
            wrong.push((format!("targets[{index}].patches"), problem));
        }
    }
    let based = request.base.is_some() || series.is_some();
    let needs_base = |source: &TargetSource| matches!(source, TargetSource::Patches(_));
    if !based && request.targets.iter().any(|(_, source)| needs_base(source)) {
        let problem = "is needed where there is no series to find it by";
        wrong.push(("base".to_owned(), problem.to_owned()));
    }
}

fn check_config(config: &KernelConfig, wrong: &mut Violations) {
    let fragments = config.fragments.len();
    if fragments > MAX_FRAGMENTS {
        let problem = format!("found {fragments}; expected at most {MAX_FRAGMENTS}");
        wrong.push(("config.fragments".to_owned(), problem));
    }
    let base = match &config.base {
        ConfigBase::Text(text) => Some(text),
        ConfigBase::Defconfig | ConfigBase::Tinyconfig => None,
    };
    for text in base.into_iter().chain(&config.fragments) {
        if text.text.len() > MAX_CONFIG {
            let problem = format!(
                "{} has {} bytes; expected at most {MAX_CONFIG}",
                text.name,
                text.text.len()
            );
            wrong.push(("config".to_owned(), problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_legal_names_that_tell_what_they_are() {
        let id: BuildTaskId = "01936f4e-0000-7000-8000-0123456789ab"
            .parse()
            .expect("an id");
        let name = |tree: &str, variant: &str| {
            kernel_name(&tree.parse().expect("a legal name"), id, 1, variant).to_string()
        };
        assert_eq!(name("linux", "+1..2"), "linux-0123456789ab.1-1..2");
        assert_eq!(name("linux", "V2"), "linux-0123456789ab.1-v2");
        let long = name(&"t".repeat(63), &"v".repeat(63));
        assert_eq!(long.len(), 60, "{long}");
    }
}
