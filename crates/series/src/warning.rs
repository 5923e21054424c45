//! What a developer should know about a series that is nevertheless good.

use crate::display::defuse;
use crate::place::Place;

/// Something to know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The mail program may have changed blanks.
    #[error("{place} is format=flowed: its blanks may be damaged; `git send-email` keeps them")]
    Flowed {
        /// The mail.
        place: Place,
    },
    /// Lines after a hunk.
    #[error("{place}: text right after a hunk is no part of the patch: \"{}\"", defuse(.text))]
    Trailing {
        /// The mail.
        place: Place,
        /// The line.
        text: String,
    },
    /// Lines with CR.
    #[error("{place}: lines of the patch end in CR: it is applied with `git am --keep-cr`")]
    KeepCr {
        /// The mail.
        place: Place,
    },
    /// A mail that is there twice.
    #[error("{place} is there more than once")]
    Twice {
        /// The mail that was left out.
        place: Place,
    },
    /// A mail with a diff and no `[PATCH]`.
    #[error("{place} has a diff, but no [PATCH] in its subject: left out")]
    Untagged {
        /// The mail.
        place: Place,
    },
    /// A patch without a number in the thread of a numbered series.
    #[error("{place} is a patch without a number beside a numbered series: left out")]
    Beside {
        /// The mail.
        place: Place,
    },
    /// CRLF in encoded text.
    #[error(
        "{place}: its encoded text has CRLF at all line ends: it is applied with `git am \
         --quoted-cr=strip`"
    )]
    QuotedCr {
        /// The mail.
        place: Place,
    },
    /// A mail that could not be read.
    #[error("left out: {reason}")]
    LeftOut {
        /// Why.
        reason: String,
    },
    /// Other revisions in the thread.
    #[error("other revisions in this thread: {revisions}")]
    OtherRevisions {
        /// Such as `v1, v2`.
        revisions: String,
    },
    /// Two trailers that name different bases.
    #[error("two base commits are named, {first} and {second}: the first one is taken")]
    TwoBases {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// Other patches come first.
    #[error("{} must be applied before this series", prerequisites(*.count))]
    Prerequisites {
        /// How many.
        count: usize,
    },
    /// The named base is not in the tree.
    #[error("base commit {commit} is not in the tree: fetch it")]
    BaseAbsent {
        /// The commit.
        commit: String,
    },
    /// The guess is not sure.
    #[error(
        "{} has {matched} of {total} files as the series expects them: it may not apply; name the \
         base with `--base` or `git format-patch --base`", defuse(.reference)
    )]
    BaseUnsure {
        /// Files that match.
        matched: usize,
        /// Files that were compared.
        total: usize,
        /// The tag or branch.
        reference: String,
    },
    /// Nothing tells the base.
    #[error(
        "the series names no base commit and none can be guessed: its patches have no index \
         lines of files that were there before; name the base with `--base` or `git \
         format-patch --base`"
    )]
    BaseUnknown,
    /// A submodule changes.
    #[error("{place} changes the submodule {path}: it is not fetched")]
    Submodule {
        /// The mail.
        place: Place,
        /// The path.
        path: String,
    },
}

fn prerequisites(count: usize) -> String {
    match count {
        1 => "1 prerequisite patch".to_owned(),
        count => format!("{count} prerequisite patches"),
    }
}
