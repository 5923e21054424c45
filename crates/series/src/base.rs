//! The commit that a series applies to: named by it, or guessed.
//!
//! A diff's `index` line names the blob that a file was before. The guess is the tag or
//! branch of a tree that has most of these blobs at these paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use klab_model::Timestamp;

use crate::diff::{BlobId, ChangeKind, FileChange, Mode};
use crate::error::SeriesError;
use crate::git::{Git, text};
use crate::limits::{MAX_BASE_FILES, MAX_BASE_REFS};
use crate::series::Series;
use crate::warning::Warning;

/// Files that are compared in every tag and branch; those that fit are compared whole.
const SAMPLE: usize = 4;

/// A base that is in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The series names it.
    Named {
        /// The full id.
        commit: String,
    },
    /// It fits best.
    Guessed {
        /// The tag or branch.
        reference: String,
        /// The full id of its commit.
        commit: String,
        /// Files that are there as the series expects them.
        matched: usize,
        /// Files that were compared.
        total: usize,
    },
}

impl Base {
    /// The full id of the commit.
    pub fn commit(&self) -> &str {
        match self {
            Self::Named { commit } | Self::Guessed { commit, .. } => commit,
        }
    }
}

/// What was found out about the base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseFinding {
    /// None if nothing tells it.
    pub base: Option<Base>,
    /// What one should know about it.
    pub warnings: Vec<Warning>,
}

/// Looks for the base of a series in a tree.
///
/// # Errors
/// [`SeriesError::NoBase`] if nothing in the tree fits; [`SeriesError::Git`].
pub fn find_base(series: &Series, tree: &Path) -> Result<BaseFinding, SeriesError> {
    let git = Git::open(tree)?;
    let files = expected(series);
    let mut warnings = Vec::new();
    if let Some(named) = series.dependencies.base_commit() {
        if let Some(commit) = git.commit(named)? {
            warnings.extend(misfit(&git, &commit, &files, series)?);
            let base = Some(Base::Named { commit });
            return Ok(BaseFinding { base, warnings });
        }
        let commit = named.to_owned();
        warnings.push(Warning::BaseAbsent { commit });
    }
    if files.is_empty() {
        warnings.push(Warning::BaseUnknown);
        let base = None;
        return Ok(BaseFinding { base, warnings });
    }
    let named = series.dependencies.base_commit();
    let (best, matched) = guess(&git, &files, named, series.date)?;
    warnings.extend(unsure(&best.name, matched, files.len()));
    let base = Some(Base::Guessed {
        reference: best.name,
        commit: best.commit,
        matched,
        total: files.len(),
    });
    Ok(BaseFinding { base, warnings })
}

/// What to say of a base that the series names and that has other files.
fn misfit(
    git: &Git,
    commit: &str,
    files: &[Expected],
    series: &Series,
) -> Result<Option<Warning>, SeriesError> {
    // What must be applied before changes files, too.
    if series.dependencies.prerequisites() > 0 {
        return Ok(None);
    }
    let matched = matches(git, &[Reference::at(commit)], files)?;
    Ok(unsure(
        commit,
        matched.first().copied().unwrap_or(0),
        files.len(),
    ))
}

fn unsure(reference: &str, matched: usize, total: usize) -> Option<Warning> {
    (matched < total).then(|| Warning::BaseUnsure {
        matched,
        total,
        reference: reference.to_owned(),
    })
}

/// A file as it must be before the series.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    path: String,
    blob: BlobId,
}

/// The files that the series finds, not those that an earlier patch of it left.
fn expected(series: &Series) -> Vec<Expected> {
    let mut touched = BTreeSet::new();
    let mut files = Vec::new();
    for file in series.patches.iter().flat_map(|patch| &patch.files) {
        let before = file.old_path.as_ref().unwrap_or(&file.path).as_str();
        let first = !touched.contains(before);
        if let (true, Some(blob)) = (first && !is_submodule(file), &file.old_blob) {
            files.push(Expected {
                path: before.to_owned(),
                blob: blob.clone(),
            });
        }
        if file.kind != ChangeKind::Copied {
            touched.insert(before.to_owned());
        }
        touched.insert(file.path.as_str().to_owned());
    }
    // A file that is copied twice is found once.
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    files.truncate(MAX_BASE_FILES);
    files
}

fn is_submodule(file: &FileChange) -> bool {
    [file.old_mode, file.new_mode].contains(&Some(Mode::Submodule))
}

/// A tag or a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reference {
    name: String,
    commit: String,
    /// Date of the commit, seconds since 1970.
    date: i64,
    tag: bool,
}

impl Reference {
    fn at(commit: &str) -> Self {
        Self {
            name: commit.to_owned(),
            commit: commit.to_owned(),
            date: 0,
            tag: false,
        }
    }

    /// Reads a line that [`references`] asked for.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, id, date, peeled_kind, peeled_id, peeled_date, full] = fields.as_slice() else {
            return None;
        };
        let (commit, date) = match (*kind, *peeled_kind) {
            ("commit", _) => (id, date),
            (_, "commit") => (peeled_id, peeled_date),
            // A tag of a file or of a folder.
            _ => return None,
        };
        let name = ["refs/tags/", "refs/heads/", "refs/remotes/"]
            .iter()
            .find_map(|prefix| full.strip_prefix(prefix))?;
        (!name.ends_with("/HEAD")).then(|| Self {
            name: name.to_owned(),
            commit: (*commit).to_owned(),
            date: date.parse().unwrap_or(0),
            tag: full.starts_with("refs/tags/"),
        })
    }
}

/// Tags and branches, newest first, and what is checked out.
fn references(git: &Git) -> Result<Vec<Reference>, SeriesError> {
    let fields = [
        "%(objecttype)",
        "%(objectname)",
        "%(committerdate:unix)",
        "%(*objecttype)",
        "%(*objectname)",
        "%(*committerdate:unix)",
        "%(refname)",
    ];
    let format = format!("--format={}", fields.join("\t"));
    let count = format!("--count={MAX_BASE_REFS}");
    let arguments = [
        &count,
        "--sort=-creatordate",
        &format,
        "refs/tags",
        "refs/heads",
        "refs/remotes",
    ];
    let list = git.run("for-each-ref", arguments, b"")?;
    let mut found: Vec<Reference> = String::from_utf8_lossy(&list)
        .lines()
        .filter_map(Reference::parse)
        .collect();
    if let Some(head) = git.commit("HEAD")?
        && !found.iter().any(|reference| reference.commit == head)
    {
        let name = "HEAD".to_owned();
        found.push(Reference {
            name,
            ..Reference::at(&head)
        });
    }
    Ok(found)
}

/// The reference with most of the files, and how many it has.
fn guess(
    git: &Git,
    files: &[Expected],
    named: Option<&str>,
    sent: Option<Timestamp>,
) -> Result<(Reference, usize), SeriesError> {
    let references = references(git)?;
    let nothing = || SeriesError::NoBase {
        tree: git.tree().to_owned(),
        named: named.map(str::to_owned),
        references: references.len(),
    };
    let known = known(git, files)?;
    if known.is_empty() {
        return Err(nothing());
    }
    // Only blobs that are somewhere in the tree tell its tags and branches apart.
    let sample = matches(git, &references, &known[..known.len().min(SAMPLE)])?;
    let most = sample.iter().copied().max().unwrap_or(0);
    let likely = references
        .iter()
        .zip(sample)
        .filter(|(_, matched)| *matched == most);
    let likely: Vec<Reference> = likely.map(|(reference, _)| reference.clone()).collect();
    let whole = matches(git, &likely, files)?;
    let sent = sent.map_or(i64::MAX, Timestamp::as_second);
    let best = likely
        .into_iter()
        .zip(whole)
        .max_by_key(|(reference, matched)| {
            // The newest one that the author can have known, else the oldest one after it.
            let known = reference.date <= sent;
            let near = if known {
                reference.date
            } else {
                -reference.date
            };
            (*matched, known, near, reference.tag)
        });
    match best {
        Some((reference, matched)) if matched > 0 => Ok((reference, matched)),
        _ => Err(nothing()),
    }
}

/// The files whose blob the tree has at all.
fn known(git: &Git, files: &[Expected]) -> Result<Vec<Expected>, SeriesError> {
    let questions = files.iter().map(|file| format!("{}\n", file.blob.as_str()));
    let answers = objects(git, &questions.collect::<String>())?;
    let known = files
        .iter()
        .zip(answers)
        .filter(|(_, answer)| answer.is_some());
    let own = |file: &Expected| Expected {
        path: file.path.clone(),
        blob: file.blob.clone(),
    };
    Ok(known.map(|(file, _)| own(file)).collect())
}

/// For each reference how many of the files it has as they are expected.
fn matches(
    git: &Git,
    references: &[Reference],
    files: &[Expected],
) -> Result<Vec<usize>, SeriesError> {
    // Many tags and branches are of one commit.
    let mut commits: BTreeMap<&str, usize> = BTreeMap::new();
    for reference in references {
        commits.insert(&reference.commit, 0);
    }
    let mut questions = String::new();
    for commit in commits.keys() {
        for file in files {
            questions.push_str(&format!("{commit}:{}\n", file.path));
        }
    }
    let mut answers = objects(git, &questions)?.into_iter();
    for matched in commits.values_mut() {
        for file in files {
            let id = answers.next().flatten();
            *matched += usize::from(id.is_some_and(|id| id.starts_with(file.blob.as_str())));
        }
    }
    Ok(references
        .iter()
        .map(|reference| commits[reference.commit.as_str()])
        .collect())
}

/// Asks for objects, one per line; gives their ids.
fn objects(git: &Git, questions: &str) -> Result<Vec<Option<String>>, SeriesError> {
    let output = git.run(
        "cat-file",
        ["--batch-check=%(objectname)"],
        questions.as_bytes(),
    )?;
    let is_id = |line: &str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let answers = text(&output);
    Ok(answers
        .lines()
        .map(|line| is_id(line).then(|| line.to_owned()))
        .collect())
}
