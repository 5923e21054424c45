//! A series: what was understood.

use std::borrow::Cow;

use klab_model::Timestamp;

use crate::diff::FileChange;
use crate::limits::MAX_TRAILERS;
use crate::mail::{Person, has_crlf_header};
use crate::mbox::with_lf;
use crate::place::Place;
use crate::trailer::Trailer;
use crate::warning::Warning;

/// An ordered, complete list of patches.
///
/// Texts are as they were sent; show them through [`crate::Summary`] or [`crate::defuse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Subject of the cover letter, or of the first patch.
    pub subject: String,
    /// Who sent the cover letter, or wrote the first patch.
    pub author: Person,
    /// When the cover letter or the first patch was sent, if the mail says so.
    pub date: Option<Timestamp>,
    /// 1 without a `v2` in the subjects.
    pub revision: u32,
    /// Other words of the prefix: `net-next`, `-next`.
    pub tags: Vec<String>,
    /// Asks for comments.
    pub rfc: bool,
    /// The cover letter.
    pub cover: Option<Cover>,
    /// The patches, first to apply first; never empty.
    pub patches: Vec<Patch>,
    /// What it is based on, as it says itself.
    pub dependencies: Dependencies,
    /// Other revisions in the source, ascending.
    pub other_revisions: Vec<u32>,
    /// What one should know.
    pub warnings: Vec<Warning>,
}

/// A cover letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// Where it is.
    pub place: Place,
    /// The subject without its prefix.
    pub subject: String,
    /// Who sent it.
    pub author: Person,
    /// The text.
    pub text: String,
    /// Trailers of replies to it: they are meant for all patches.
    pub trailers: Vec<Trailer>,
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Its number, from 1.
    pub number: u32,
    /// The subject without its prefix.
    pub subject: String,
    /// The author: of the `From:` in the text if there is one, else of the mail.
    pub author: Person,
    /// Where it is.
    pub place: Place,
    /// The commit message without its subject.
    pub message: String,
    /// The files it touches, in order.
    pub files: Vec<FileChange>,
    /// Trailers of the commit message, then of replies.
    pub trailers: Vec<Trailer>,
    /// Files have lines that end in CR: `git am` needs `--keep-cr`.
    pub keep_cr: bool,
    /// The encoded text has CRLF at all line ends: `git am` needs `--quoted-cr=strip`.
    pub quoted_cr: bool,
    /// The mail, byte for byte, without the mailbox's separator and escapes: for `git am`.
    pub raw: Vec<u8>,
}

/// What a series says about its base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dependencies {
    /// `base-commit:`, in hex; more than one only if the mails contradict each other.
    pub base_commits: Vec<String>,
    /// `prerequisite-patch-id:`, in hex.
    pub patch_ids: Vec<String>,
    /// `prerequisite-message-id:` and `prerequisite-change-id:`.
    pub others: Vec<String>,
    /// `change-id:`, which stays the same over the revisions.
    pub change_id: Option<String>,
}

impl Dependencies {
    /// The base commit, if one is named.
    pub fn base_commit(&self) -> Option<&str> {
        self.base_commits.first().map(String::as_str)
    }

    /// Number of patches and series that must be applied before.
    pub fn prerequisites(&self) -> usize {
        self.patch_ids.len() + self.others.len()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (into, from) in [
            (&mut self.base_commits, other.base_commits),
            (&mut self.patch_ids, other.patch_ids),
            (&mut self.others, other.others),
        ] {
            for value in from {
                if into.len() < MAX_TRAILERS && !into.contains(&value) {
                    into.push(value);
                }
            }
        }
        self.change_id = self.change_id.take().or(other.change_id);
    }
}

impl Series {
    /// All patches as one mailbox for `git am` with [`Series::am_options`]. Mails whose own
    /// line ends are CRLF are written with LF, as git reads them by default.
    pub fn mbox(&self) -> Vec<u8> {
        self.mbox_of_first(self.patches.len())
    }

    /// [`Series::mbox`] of the first `count` patches, for a variant such as `+1..2`.
    pub fn mbox_of_first(&self, count: usize) -> Vec<u8> {
        let patches = self.patches.iter().take(count);
        let mails: Vec<Cow<'_, [u8]>> = patches.map(Patch::with_lf).collect();
        crate::mbox::write_mbox(mails.iter().map(AsRef::as_ref))
    }

    /// The options with which `git am` makes of [`Series::mbox`] what the authors had.
    pub fn am_options(&self) -> Vec<&'static str> {
        let any = |test: fn(&Patch) -> bool| self.patches.iter().any(test);
        let mut options = vec!["--patch-format=mboxrd", "--keep-non-patch"];
        options.push(if any(|patch| patch.keep_cr) {
            "--keep-cr"
        } else {
            "--no-keep-cr"
        });
        if any(|patch| patch.quoted_cr) {
            options.push("--quoted-cr=strip");
        }
        options
    }

    /// The series in the words that travel between the parts of a lab, safe to print.
    pub fn to_model(&self) -> klab_model::Series {
        let patch = |patch: &Patch| klab_model::Patch {
            subject: crate::defuse(&patch.subject),
            message_id: patch.place.message_id.as_deref().map(crate::defuse),
        };
        klab_model::Series {
            subject: crate::defuse(&self.subject),
            revision: self.revision,
            base_commit: self.dependencies.base_commit().map(str::to_owned),
            patches: self.patches.iter().map(patch).collect(),
        }
    }
}

impl Patch {
    /// The mail with LF line ends if its own are CRLF.
    fn with_lf(&self) -> Cow<'_, [u8]> {
        match has_crlf_header(&self.raw) {
            true => with_lf(&self.raw),
            false => Cow::Borrowed(&self.raw),
        }
    }
}
