//! Canonical packages before they are believed: read to the last byte, and every claim of
//! the manifest held against the content.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufReader, Read};

use klab_model::{BuildId, Digest, KernelOffer};
use tar::{Archive, Entry};

use crate::canonical::{MODULES, plain};
use crate::error::ImageError;
use crate::image::{BuildIdAbsent, ImageFacts, read_image};
use crate::limits::IMAGE_BYTES;
use crate::understand::is_module;
use crate::unpack::{self, Counted, NO_PLACE, Rules};
use crate::{CANONICAL_CONFIG, CANONICAL_IMAGE, ImageFormat, Limits, Manifest, UnpackError};

/// A claim of the manifest that the content contradicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the manifest's field.
    pub field: &'static str,
    /// What the manifest says.
    pub claimed: String,
    /// What the content says.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claimed, found, .. } = self;
        write!(f, "the manifest says {claimed}, the content is {found}")
    }
}

/// Why a canonical package is not believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// No canonical package, or a damaged one.
    #[error(transparent)]
    Package(#[from] UnpackError),
    /// The boot image is none, damaged, or contradicts itself.
    #[error("boot image of the kernel package")]
    Image(#[from] ImageError),
    /// The boot image is one that no boot loader starts.
    #[error("{CANONICAL_IMAGE} is the linked vmlinux, which boot loaders do not start")]
    NotBootable,
    /// The manifest says what the content does not.
    #[error(
        "the manifest of the kernel package says {} what its content does not",
        fields(.differences)
    )]
    Manifest {
        /// Every claim that is wrong, in the order of the manifest.
        differences: Vec<Difference>,
    },
}

fn fields(differences: &[Difference]) -> String {
    let fields: Vec<&str> = differences.iter().map(|d| d.field).collect();
    format!("of {}", fields.join(", "))
}

/// Reads a canonical package to its end and gives what it is.
///
/// Arch, release, build-id, format, digests and the number of modules come from the content;
/// what the manifest says of them has to be the same. Where the kernel inside cannot be
/// read, because of its compression or because several build-ids are in it, the manifest
/// speaks alone: such a kernel proves its identity when it runs. What the package was handed
/// in as is not in the content either, and nothing depends on it.
///
/// Needs memory for the boot image and the kernel inside, less than 1 GiB; nothing is
/// written.
///
/// # Errors
/// [`VerifyError`] when it is no canonical package, cut short or damaged, cannot boot, or
/// claims what it is not.
pub fn verify_canonical(reader: impl Read, limits: &Limits) -> Result<KernelOffer, VerifyError> {
    let counted = BufReader::with_capacity(64 << 10, Counted::new(reader));
    let mut archive = Archive::new(unpack::decoder(counted)?);
    let mut entries = archive.entries().map_err(UnpackError::Read)?.raw(true);
    let manifest = unpack::manifest(entries.next())?;
    let mut content = Content::default();
    let mut rules = Rules::new(*limits);
    for entry in entries {
        let entry = entry.map_err(UnpackError::Read)?;
        let path = rules.check(&entry, |path| {
            manifest.allows(path) || module_release(path).is_some()
        })?;
        content.take(path, entry)?;
    }
    let (digest, size) = unpack::finish(archive.into_inner())?;
    let build_id = manifest.build_id.clone();
    let Some(image) = &content.image else {
        return Err(UnpackError::NoImage.into());
    };
    let differences = content.differences(&manifest, image);
    if !differences.is_empty() {
        return Err(VerifyError::Manifest { differences });
    }
    content.check_modules(&manifest)?;
    Ok(KernelOffer {
        digest,
        size,
        arch: manifest.arch,
        release: manifest.release.to_string(),
        build_id,
        image_digest: image.digest,
    })
}

/// The release whose modules folder `path` is in.
fn module_release(path: &str) -> Option<&str> {
    let (release, rest) = path.strip_prefix(MODULES)?.split_once('/')?;
    (plain(path) && !rest.is_empty()).then_some(release)
}

/// The boot image and what it says.
struct Image {
    facts: ImageFacts,
    digest: Digest,
}

/// What was found in a package.
#[derive(Default)]
struct Content {
    image: Option<Image>,
    config: Option<Digest>,
    modules: usize,
    /// Releases whose modules are there, of which only one is right.
    releases: BTreeSet<String>,
}

impl Content {
    fn take<R: Read>(&mut self, path: String, entry: Entry<'_, R>) -> Result<(), VerifyError> {
        if path == CANONICAL_IMAGE {
            let bytes = bytes(path, entry)?;
            let facts = read_image(&bytes)?;
            if facts.format == ImageFormat::Elf {
                return Err(VerifyError::NotBootable);
            }
            let digest = Digest::of(&bytes);
            self.image = Some(Image { facts, digest });
        } else if path == CANONICAL_CONFIG {
            self.config = Some(Digest::of(&bytes(path, entry)?));
        } else {
            self.modules += usize::from(is_module(&path));
            self.releases
                .extend(module_release(&path).map(str::to_owned));
        }
        Ok(())
    }

    fn differences(&self, manifest: &Manifest, image: &Image) -> Vec<Difference> {
        let facts = &image.facts;
        let release = facts.release.as_ref().unwrap_or(&manifest.release);
        let claimed_id = text_of(manifest.build_id.as_ref());
        let id = found_id(&facts.build_id).unwrap_or_else(|| claimed_id.clone());
        let format = facts.format.to_string();
        [
            ("arch", manifest.arch.to_string(), facts.arch.to_string()),
            ("release", manifest.release.to_string(), release.to_string()),
            ("build_id", claimed_id, id),
            ("image_format", manifest.image_format.clone(), format),
            (
                "image_digest",
                manifest.image_digest.to_string(),
                image.digest.to_string(),
            ),
            (
                "config_digest",
                text_of(manifest.config_digest.as_ref()),
                text_of(self.config.as_ref()),
            ),
            (
                "modules",
                manifest.modules.to_string(),
                self.modules.to_string(),
            ),
        ]
        .into_iter()
        .filter(|(_, claimed, found)| claimed != found)
        .map(|(field, claimed, found)| Difference {
            field,
            claimed: claimed.chars().take(LONGEST).collect(),
            found,
        })
        .collect()
    }

    /// The manifest is right; now the modules have to be the kernel's.
    fn check_modules(&self, manifest: &Manifest) -> Result<(), UnpackError> {
        let own = manifest.release.as_str();
        match self.releases.iter().find(|release| *release != own) {
            Some(foreign) => Err(UnpackError::Entry {
                path: format!("{MODULES}{foreign}/"),
                why: NO_PLACE,
            }),
            None => Ok(()),
        }
    }
}

/// Longest claim that is repeated in a message, in characters.
const LONGEST: usize = 80;

fn text_of(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// The build-id as text; `None` where the content does not tell.
fn found_id(found: &Result<BuildId, BuildIdAbsent>) -> Option<String> {
    match found {
        Ok(id) => Some(id.to_string()),
        Err(BuildIdAbsent::NoNote) => Some(text_of(None::<&BuildId>)),
        Err(BuildIdAbsent::Compression(_) | BuildIdAbsent::Ambiguous(_)) => None,
    }
}

/// A file that is read as a whole.
fn bytes<R: Read>(path: String, mut entry: Entry<'_, R>) -> Result<Vec<u8>, UnpackError> {
    if entry.size() > IMAGE_BYTES {
        let why = "which is too long";
        return Err(UnpackError::Entry { path, why });
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(UnpackError::Read)?;
    Ok(bytes)
}
