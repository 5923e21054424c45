//! From a series on the command line to builds that are asked for.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use klab_config::builtin_fragment;
use klab_model::{
    Arch, BuildRequest, BuildSeries, ConfigBase, ConfigText, Digest, GitRef, KernelConfig,
    KernelName, Owner, TargetSource, TreeName, VariantName,
};
use klab_proto::{CHUNK, v1};
use klab_series::{Options, Series, Side, Source, Variant, VariantKernel};
use v1::create_build_request::Part;

use crate::args::Wish;
use crate::client::Client;
use crate::exit::CliError;
use crate::files::{self, GZIP};
use crate::{kernels, trees};

/// Bytes of a configuration that are read; the controller takes fewer and says so.
const MAX_CONFIG: u64 = 1 << 20;

/// What was asked for: the builds, and the kernel of each variant.
pub(crate) struct Wanted {
    pub(crate) builds: Vec<v1::Build>,
    pub(crate) variants: Vec<(VariantName, KernelName)>,
}

/// A series that was read.
struct Read {
    series: Series,
    /// Where a git range begins.
    base: Option<GitRef>,
}

/// Reads the series and asks for its kernels.
pub(crate) async fn ask(
    client: &Client,
    wish: &Wish,
    path: &Path,
    (owner, arch): (Owner, Arch),
) -> Result<Wanted, CliError> {
    let tree = wish
        .tree
        .clone()
        .ok_or_else(|| CliError::usage("--tree is missing"))?;
    let config = config(client, wish, arch).await?;
    let known = trees::all(client).await?;
    let own = read(path, wish.revision, &known)?;
    let other = match &wish.against {
        Some(path) => Some(read(path, None, &known)?),
        None => None,
    };
    let base = base(wish, &own, other.as_ref())?;
    let variants = wish
        .variants
        .expand(&own.series, other.as_ref().map(|other| &other.series))
        .map_err(|error| CliError::usage(format!("--variants: {error}")))?;
    let plan = Plan {
        owner,
        tree,
        base,
        config,
        arch,
        kernels: names(client).await?,
        variants,
    };
    plan.send(
        client,
        &own.series,
        other.as_ref().map(|other| &other.series),
    )
    .await
}

async fn names(client: &Client) -> Result<BTreeSet<String>, CliError> {
    let kernels = kernels::all(client).await?;
    Ok(kernels.into_iter().map(|kernel| kernel.name).collect())
}

fn read(path: &Path, revision: Option<u32>, trees: &[v1::Tree]) -> Result<Read, CliError> {
    let folder = |name: &str| {
        let known = trees.iter().find(|tree| tree.name == name);
        known.map_or_else(|| PathBuf::from(name), |tree| PathBuf::from(&tree.source))
    };
    let source = Source::parse(path, folder)?;
    let series = klab_series::read(&source, &Options { revision })?;
    let base = match &source {
        Source::Range(range) => Some(GitRef::parse(&range.base).map_err(CliError::usage)?),
        _ => None,
    };
    Ok(Read { series, base })
}

/// The base, if it is known here. Two series must have the same.
fn base(wish: &Wish, own: &Read, other: Option<&Read>) -> Result<Option<GitRef>, CliError> {
    let named = |read: &Read| {
        let commit = read.series.dependencies.base_commit();
        read.base.clone().or_else(|| GitRef::parse(commit?).ok())
    };
    if wish.base.is_some() {
        return Ok(wish.base.clone());
    }
    let own_base = own.base.clone();
    let Some(other) = other else {
        return Ok(own_base);
    };
    // Only what both are built on can be compared, so the newer one decides.
    named(own)
        .or_else(|| named(other))
        .map(Some)
        .ok_or_else(|| {
            CliError::usage(
                "--against: neither series names its base; say with --base what both apply to",
            )
        })
}

async fn config(client: &Client, wish: &Wish, arch: Arch) -> Result<KernelConfig, CliError> {
    // One submission may be for boards of several architectures.
    let of_arch = |name: &str| name.replace("{arch}", arch.as_str());
    let base = match of_arch(&wish.config).as_str() {
        "defconfig" => ConfigBase::Defconfig,
        "tinyconfig" => ConfigBase::Tinyconfig,
        other => ConfigBase::Text(match other.strip_prefix("board:") {
            Some(board) => board_config(client, board).await?,
            None => config_file("--config", other)?,
        }),
    };
    let fragments = wish.fragments.iter().map(|name| fragment(&of_arch(name)));
    Ok(KernelConfig {
        base,
        fragments: fragments.collect::<Result<_, _>>()?,
        allow_missing: wish.allow_missing,
    })
}

/// The configuration of a board's known-good kernel.
async fn board_config(client: &Client, board: &str) -> Result<ConfigText, CliError> {
    let request = v1::GetBoardConfigRequest {
        board: board.to_owned(),
    };
    let answer = client.boards().get_board_config(request).await?;
    let file = answer.into_inner();
    let text = text_of(&file.content).ok_or_else(|| {
        CliError::infrastructure(format!(
            "--config board:{board}: what the board gave is no text, nor a gzip of one"
        ))
    })?;
    Ok(ConfigText {
        name: format!("board:{board} ({})", file.release),
        text,
    })
}

/// A file, as it is or with gzip.
fn config_file(option: &str, file: &str) -> Result<ConfigText, CliError> {
    let bytes = files::read(Path::new(file), MAX_CONFIG).map_err(|error| {
        CliError::usage(format!(
            "{option}: cannot read {file}: {error}; expected defconfig, tinyconfig, board:NAME or a file"
        ))
    })?;
    let text = text_of(&bytes).ok_or_else(|| {
        CliError::usage(format!(
            "{option}: {file} is no text of at most {MAX_CONFIG} bytes, nor a gzip of one"
        ))
    })?;
    Ok(ConfigText {
        name: file.to_owned(),
        text,
    })
}

/// The text of a file, which may be packed with gzip as `/proc/config.gz` is.
fn text_of(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    if bytes.starts_with(&GZIP) {
        let mut unpacked = GzDecoder::new(bytes).take(MAX_CONFIG + 1);
        unpacked.read_to_string(&mut text).ok()?;
    } else {
        text.push_str(std::str::from_utf8(bytes).ok()?);
    }
    (text.len() as u64 <= MAX_CONFIG).then_some(text)
}

/// A file if there is one, else a built-in fragment.
fn fragment(name: &str) -> Result<ConfigText, CliError> {
    if name.contains('/') || Path::new(name).is_file() {
        return config_file("--fragment", name);
    }
    let text = builtin_fragment(name)
        .map_err(|error| CliError::usage(format!("--fragment: {error}, or a file")))?;
    Ok(ConfigText {
        name: name.to_owned(),
        text: text.to_owned(),
    })
}

/// Everything that is known before anything is sent.
struct Plan {
    owner: Owner,
    tree: TreeName,
    base: Option<GitRef>,
    config: KernelConfig,
    arch: Arch,
    /// Kernels of the lab.
    kernels: BTreeSet<String>,
    variants: Vec<Variant>,
}

/// Where the kernel of a variant comes from.
enum Origin {
    /// It was added.
    Added(KernelName),
    /// A target of the build of one of the series.
    Target(Side, TargetSource),
}

impl Plan {
    async fn send(
        self,
        client: &Client,
        own: &Series,
        other: Option<&Series>,
    ) -> Result<Wanted, CliError> {
        let mut wanted = Wanted {
            builds: Vec::new(),
            variants: Vec::new(),
        };
        let mut found: Vec<(VariantName, KernelName)> = Vec::new();
        for (side, series) in [(Side::Own, Some(own)), (Side::Other, other)] {
            let Some(series) = series else { continue };
            let targets = self.targets(side)?;
            if targets.is_empty() {
                continue;
            }
            match self.build(client, series, targets).await {
                Ok(build) => {
                    found.extend(kernels_of(&build)?);
                    wanted.builds.push(build);
                }
                Err(error) => {
                    give_up(client, &wanted.builds).await;
                    return Err(error);
                }
            }
        }
        for variant in &self.variants {
            let kernel = match self.origin(variant)? {
                Origin::Added(kernel) => Some(kernel),
                Origin::Target(..) => {
                    let built = found.iter().find(|(name, _)| *name == variant.name);
                    built.map(|(_, kernel)| kernel.clone())
                }
            };
            let kernel = kernel.ok_or_else(|| {
                CliError::infrastructure(format!("no kernel was named for {}", variant.name))
            })?;
            wanted.variants.push((variant.name.clone(), kernel));
        }
        Ok(wanted)
    }

    fn origin(&self, variant: &Variant) -> Result<Origin, CliError> {
        Ok(match &variant.kernel {
            VariantKernel::Base => Origin::Target(Side::Own, TargetSource::Patches(0)),
            VariantKernel::Patches { side, count } => {
                Origin::Target(*side, TargetSource::Patches(*count))
            }
            VariantKernel::Reference(name) if self.kernels.contains(name) => {
                Origin::Added(KernelName::parse(name).map_err(CliError::usage)?)
            }
            VariantKernel::Reference(name) => {
                let name = GitRef::parse(name).map_err(CliError::usage)?;
                Origin::Target(Side::Own, TargetSource::Ref(name))
            }
        })
    }

    fn targets(&self, wanted: Side) -> Result<Vec<(VariantName, TargetSource)>, CliError> {
        let mut targets = Vec::new();
        for variant in &self.variants {
            match self.origin(variant)? {
                Origin::Target(side, source) if side == wanted => {
                    targets.push((variant.name.clone(), source));
                }
                _ => {}
            }
        }
        Ok(targets)
    }

    async fn build(
        &self,
        client: &Client,
        series: &Series,
        targets: Vec<(VariantName, TargetSource)>,
    ) -> Result<v1::Build, CliError> {
        let mbox = series.mbox();
        let request = BuildRequest {
            owner: self.owner.clone(),
            tree: self.tree.clone(),
            base: self.base.clone(),
            series: Some(BuildSeries {
                series: series.to_model(),
                mbox: Digest::of(&mbox),
                size: mbox.len() as u64,
            }),
            config: self.config.clone(),
            arch: self.arch,
            targets,
        };
        let start = Part::Start(v1::CreateBuildStart::of(request));
        let data: Vec<Part> = mbox
            .chunks(CHUNK)
            .map(|piece| Part::Data(piece.to_vec().into()))
            .collect();
        let parts = std::iter::once(start).chain(data);
        let requests = parts.map(|part| v1::CreateBuildRequest { part: Some(part) });
        let answer = client
            .builds()
            .create_build(tokio_stream::iter(requests))
            .await?;
        answer
            .into_inner()
            .build
            .ok_or_else(|| CliError::infrastructure("the controller did not describe the build"))
    }
}

fn kernels_of(build: &v1::Build) -> Result<Vec<(VariantName, KernelName)>, CliError> {
    let bad = |error: klab_model::InvalidText| CliError::infrastructure(error);
    let named = |target: &v1::BuildTarget| {
        let variant = VariantName::parse(&target.variant).map_err(bad)?;
        Ok((variant, KernelName::parse(&target.kernel).map_err(bad)?))
    };
    build.targets.iter().map(named).collect()
}

/// Cancels builds whose job will not be.
pub(crate) async fn give_up(client: &Client, builds: &[v1::Build]) {
    for build in builds {
        let id = build.id.clone();
        // What ended meanwhile needs no cancelling, and the first error is the one to tell.
        let _ = client
            .builds()
            .cancel_build(v1::CancelBuildRequest { id })
            .await;
    }
}
