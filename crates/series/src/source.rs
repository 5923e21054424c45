//! Where a series comes from: files, folders, standard input, git.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::assemble::assemble;
use crate::error::SeriesError;
use crate::limits::{MAX_INPUT, MAX_MAILS};
use crate::mail::Mail;
use crate::mbox::{self, RawMail};
use crate::place::Place;
use crate::range;
use crate::series::Series;
use crate::warning::Warning;

/// What messages call standard input.
const STANDARD_INPUT: &str = "standard input";

/// Where to read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A mailbox, a mail, a patch (each also with gzip), a maildir, or a folder of patches.
    Path(PathBuf),
    /// Any file of these on standard input.
    StandardInput,
    /// Commits of a git tree.
    Range(GitRange),
}

/// `TREE:BASE..TOPIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRange {
    /// The folder of the tree.
    pub tree: PathBuf,
    /// The range as it was given, for messages.
    pub text: String,
    /// A commit, or a name of one.
    pub base: String,
    /// A commit, or a name of one.
    pub topic: String,
}

/// What to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The revision to take; the newest if absent.
    pub revision: Option<u32>,
}

impl Source {
    /// Reads what people write: `-`, a path, or `TREE:BASE..TOPIC`, where `tree` knows the
    /// folder of a tree. A path that exists is never taken for a range.
    ///
    /// # Errors
    /// [`SeriesError::Range`].
    pub fn parse(text: &Path, tree: impl FnOnce(&str) -> PathBuf) -> Result<Self, SeriesError> {
        if text == Path::new("-") {
            return Ok(Self::StandardInput);
        }
        let is_range = |name: &str| {
            let end = name.rsplit_once(':').map(|(_, range)| range);
            end.is_some_and(|range| range.contains(".."))
        };
        match text.to_str() {
            Some(name) if is_range(name) && !text.exists() => {
                GitRange::parse(name, tree).map(Self::Range)
            }
            _ => Ok(Self::Path(text.to_owned())),
        }
    }
}

impl GitRange {
    /// Reads `TREE:BASE..TOPIC`; without TOPIC it is `HEAD`.
    ///
    /// # Errors
    /// [`SeriesError::Range`].
    pub fn parse(text: &str, tree: impl FnOnce(&str) -> PathBuf) -> Result<Self, SeriesError> {
        let wrong = || SeriesError::Range {
            text: text.to_owned(),
        };
        // Names of commits hold no colon; folders may.
        let (name, range) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (base, topic) = range.split_once("..").ok_or_else(wrong)?;
        let topic = if topic.is_empty() { "HEAD" } else { topic };
        let legal =
            |name: &str| !name.is_empty() && !name.starts_with(['-', '.']) && !name.contains("..");
        if name.is_empty() || !legal(base) || !legal(topic) {
            return Err(wrong());
        }
        Ok(Self {
            tree: tree(name),
            text: text.to_owned(),
            base: base.to_owned(),
            topic: topic.to_owned(),
        })
    }
}

/// Reads a series.
///
/// # Errors
/// [`SeriesError`]; nothing is half accepted.
pub fn read(source: &Source, options: &Options) -> Result<Series, SeriesError> {
    match source {
        Source::Path(path) if path.is_dir() => read_folder(path, options),
        Source::Path(path) => {
            let name = path.display().to_string();
            let bytes = read_file(path)?;
            read_bytes(&name, &bytes, options)
        }
        Source::StandardInput => {
            let read = read_limited(STANDARD_INPUT, io::stdin().lock());
            let bytes = read.map_err(|error| error.at(Path::new(STANDARD_INPUT)))?;
            read_bytes(STANDARD_INPUT, &bytes, options)
        }
        Source::Range(range) => range::read(range),
    }
}

/// Reads a series from a mailbox, a mail or a patch, as it is or with gzip. `name` is what
/// messages call it.
///
/// # Errors
/// [`SeriesError`].
pub fn read_bytes(name: &str, bytes: &[u8], options: &Options) -> Result<Series, SeriesError> {
    let bytes = plain(name, bytes)?;
    from_mails(name, mbox::split(name, &bytes)?, options)
}

/// Reads mails and makes their series.
fn from_mails(name: &str, raw: Vec<RawMail>, options: &Options) -> Result<Series, SeriesError> {
    if raw.is_empty() {
        return Err(SeriesError::Empty {
            source_name: name.to_owned(),
        });
    }
    let alone = raw.len() == 1;
    let mut mails = Vec::with_capacity(raw.len());
    let mut warnings = Vec::new();
    for raw in raw {
        // Without a header nobody knows what it is; what holds a patch is not left out.
        let patch = alone || mbox::lines(&raw.bytes).any(|line| line.starts_with(b"diff --git "));
        match Mail::read(raw) {
            Ok(mail) => mails.push(mail),
            Err(error) if patch => return Err(error),
            Err(error) => warnings.push(Warning::LeftOut {
                reason: error.to_string(),
            }),
        }
    }
    assemble(name, mails, warnings, options)
}

/// Why a stream gave nothing.
enum StreamError {
    Read(io::Error),
    Series(SeriesError),
}

impl StreamError {
    fn at(self, path: &Path) -> SeriesError {
        match self {
            Self::Read(source) => SeriesError::Read {
                path: path.to_owned(),
                source,
            },
            Self::Series(error) => error,
        }
    }
}

fn read_limited(name: &str, stream: impl Read) -> Result<Vec<u8>, StreamError> {
    let mut bytes = Vec::new();
    stream
        .take(MAX_INPUT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(StreamError::Read)?;
    if bytes.len() > MAX_INPUT {
        return Err(StreamError::Series(SeriesError::TooBig {
            source_name: name.to_owned(),
        }));
    }
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Vec<u8>, SeriesError> {
    let open = std::fs::File::open(path).map_err(StreamError::Read);
    let read = open.and_then(|file| read_limited(&path.display().to_string(), file));
    read.map_err(|error| error.at(path))
}

/// Undoes gzip.
fn plain<'a>(name: &str, bytes: &'a [u8]) -> Result<std::borrow::Cow<'a, [u8]>, SeriesError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.into());
    }
    match read_limited(name, flate2::read::MultiGzDecoder::new(bytes)) {
        Ok(bytes) => Ok(bytes.into()),
        Err(StreamError::Read(source)) => Err(SeriesError::Gzip {
            source_name: name.to_owned(),
            source,
        }),
        Err(StreamError::Series(error)) => Err(error),
    }
}

/// The folders of a maildir that hold mails.
fn maildir(folder: &Path) -> Vec<PathBuf> {
    let parts = ["cur", "new"].map(|part| folder.join(part));
    parts.into_iter().filter(|part| part.is_dir()).collect()
}

/// The files of a folder of patches, by name.
fn patch_files(folder: &Path) -> Result<Vec<PathBuf>, SeriesError> {
    let mut files = files_of(folder)?;
    files.retain(|path| is_patch_file(path));
    if files.is_empty() {
        let path = folder.to_owned();
        return Err(SeriesError::NoPatchFiles { path });
    }
    Ok(files)
}

/// Reads a maildir, or the patches of a folder in the order of their names.
fn read_folder(folder: &Path, options: &Options) -> Result<Series, SeriesError> {
    let name = folder.display().to_string();
    let maildir = maildir(folder);
    let mut files = Vec::new();
    if maildir.is_empty() {
        files = patch_files(folder)?;
    }
    for part in &maildir {
        files.extend(files_of(part)?);
    }
    let mut mails = Vec::new();
    let mut size = 0;
    for path in files {
        let shown = path.display().to_string();
        let bytes = read_file(&path)?;
        let bytes = plain(&shown, &bytes)?;
        size += bytes.len();
        if size > MAX_INPUT {
            return Err(SeriesError::TooBig { source_name: name });
        }
        if maildir.is_empty() {
            let split = mbox::split(&shown, &bytes)?;
            if split.is_empty() {
                return Err(SeriesError::Empty { source_name: shown });
            }
            mails.extend(split);
        } else {
            mails.push(RawMail {
                place: Place::new(&shown, 1, 1),
                bytes: bytes.into_owned(),
                ordered: false,
            });
        }
        if mails.len() > MAX_MAILS {
            return Err(SeriesError::TooManyMails { source_name: name });
        }
    }
    from_mails(&name, mails, options)
}

/// The visible files of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, SeriesError> {
    let failed = |source| SeriesError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // Links are followed; a device or a pipe would be waited for.
        if !hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn is_patch_file(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".patch", ".eml", ".mbox", ".mbx"]
        .iter()
        .any(|end| name.ends_with(end))
}
