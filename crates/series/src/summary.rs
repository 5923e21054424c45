//! What people and scripts are shown of a series: safe to print, one shape for both.

use serde::Serialize;

use crate::base::{Base, BaseFinding};
use crate::diff::{ChangeKind, FileChange, Mode};
use crate::display::defuse;
use crate::series::{Patch, Series};
use crate::trailer::Trailer;

/// A series in words. Texts are one line each, without anything that acts on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Subject of the cover letter, or of the first patch.
    pub subject: String,
    /// `Name <address>`.
    pub author: String,
    /// When it was sent, RFC 3339 in UTC; empty if unknown.
    pub sent_at: String,
    /// The revision, from 1.
    pub revision: u32,
    /// Other revisions in the source, ascending.
    pub other_revisions: Vec<u32>,
    /// Words of the prefix: `net-next`, `RFC`.
    pub tags: Vec<String>,
    /// Whether there is a cover letter.
    pub cover: bool,
    /// The base that the series names; empty if it names none.
    pub base_commit: String,
    /// The base in the tree, if there is a tree.
    pub base: Option<BaseSummary>,
    /// `change-id:`; empty if there is none.
    pub change_id: String,
    /// Patches and series that must be applied before.
    pub prerequisites: Vec<String>,
    /// The patches, in order.
    pub patches: Vec<PatchSummary>,
    /// Trailers of replies to the cover letter.
    pub cover_trailers: Vec<TrailerSummary>,
    /// Lines added by all patches.
    pub insertions: u64,
    /// Lines removed by all patches.
    pub deletions: u64,
    /// What one should know.
    pub warnings: Vec<String>,
}

/// A base in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseSummary {
    /// The full id.
    pub commit: String,
    /// The tag or branch that was guessed; empty if the series names the commit.
    pub reference: String,
    /// Files that are there as the series expects them; 0 if the commit was named.
    pub matched: usize,
    /// Files that were compared; 0 if the commit was named.
    pub total: usize,
}

/// A patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchSummary {
    /// Number in the series, from 1.
    pub number: u32,
    /// The subject without its prefix.
    pub subject: String,
    /// `Name <address>`.
    pub author: String,
    /// Empty if there is none.
    pub message_id: String,
    /// The files.
    pub files: Vec<FileSummary>,
    /// Trailers of the patch and of replies to it.
    pub trailers: Vec<TrailerSummary>,
}

/// A file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Path after the patch.
    pub path: String,
    /// Path before; empty unless the file was renamed or copied.
    pub old_path: String,
    /// What happens.
    pub kind: ChangeKind,
    /// Mode before, if told.
    pub old_mode: Option<Mode>,
    /// Mode after, if told.
    pub new_mode: Option<Mode>,
    /// Lines added.
    pub insertions: u32,
    /// Lines removed.
    pub deletions: u32,
    /// The change is a binary patch.
    pub binary: bool,
}

/// A trailer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrailerSummary {
    /// Such as `Reviewed-by`.
    pub name: String,
    /// What follows the colon.
    pub value: String,
    /// Message-ID of the reply that gave it; empty if it stands in the patch.
    pub reply: String,
}

impl Summary {
    /// Sums up a series and what was found out about its base.
    pub fn new(series: &Series, finding: Option<&BaseFinding>) -> Self {
        let files = || series.patches.iter().flat_map(|patch| &patch.files);
        let dependencies = &series.dependencies;
        let mut tags: Vec<String> = series.tags.iter().map(|tag| defuse(tag)).collect();
        if series.rfc {
            tags.insert(0, "RFC".to_owned());
        }
        let mut warnings: Vec<String> = series.warnings.iter().map(ToString::to_string).collect();
        let of_base = finding
            .map(|finding| finding.warnings.iter())
            .unwrap_or_default();
        warnings.extend(of_base.map(ToString::to_string));
        let prerequisites = dependencies.patch_ids.iter().chain(&dependencies.others);
        let cover_trailers = series.cover.as_ref().map(|cover| trailers(&cover.trailers));
        Self {
            subject: defuse(&series.subject),
            author: series.author.shown(),
            sent_at: series.date.map(|date| date.to_string()).unwrap_or_default(),
            revision: series.revision,
            other_revisions: series.other_revisions.clone(),
            tags,
            cover: series.cover.is_some(),
            base_commit: dependencies.base_commit().unwrap_or_default().to_owned(),
            base: finding
                .and_then(|finding| finding.base.as_ref())
                .map(BaseSummary::new),
            change_id: defuse(dependencies.change_id.as_deref().unwrap_or_default()),
            prerequisites: prerequisites.map(|text| defuse(text)).collect(),
            patches: series.patches.iter().map(PatchSummary::new).collect(),
            cover_trailers: cover_trailers.unwrap_or_default(),
            insertions: files().map(|file| u64::from(file.insertions)).sum(),
            deletions: files().map(|file| u64::from(file.deletions)).sum(),
            warnings: warnings.iter().map(|warning| defuse(warning)).collect(),
        }
    }
}

impl BaseSummary {
    fn new(base: &Base) -> Self {
        match base {
            Base::Named { commit } => Self {
                commit: commit.clone(),
                reference: String::new(),
                matched: 0,
                total: 0,
            },
            Base::Guessed {
                reference,
                commit,
                matched,
                total,
            } => Self {
                commit: commit.clone(),
                reference: defuse(reference),
                matched: *matched,
                total: *total,
            },
        }
    }
}

impl PatchSummary {
    fn new(patch: &Patch) -> Self {
        Self {
            number: patch.number,
            subject: defuse(&patch.subject),
            author: patch.author.shown(),
            message_id: defuse(patch.place.message_id.as_deref().unwrap_or_default()),
            files: patch.files.iter().map(FileSummary::new).collect(),
            trailers: trailers(&patch.trailers),
        }
    }
}

impl FileSummary {
    fn new(file: &FileChange) -> Self {
        Self {
            path: file.path.to_string(),
            old_path: file
                .old_path
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            kind: file.kind,
            old_mode: file.old_mode,
            new_mode: file.new_mode,
            insertions: file.insertions,
            deletions: file.deletions,
            binary: file.binary,
        }
    }
}

fn trailers(trailers: &[Trailer]) -> Vec<TrailerSummary> {
    let summary = |trailer: &Trailer| TrailerSummary {
        name: defuse(&trailer.name),
        value: defuse(&trailer.value),
        reply: defuse(trailer.reply.as_deref().unwrap_or_default()),
    };
    trailers.iter().map(summary).collect()
}
