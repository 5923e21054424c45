//! What is wrong with a patch.

use crate::path::PathProblem;

/// Why a patch was refused; each says what would help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchProblem {
    /// Nothing to apply.
    #[error(
        "the subject says it is a patch, but there is no diff in the mail: get it whole with \
         `b4 am`, or from its sender with `git send-email`"
    )]
    NoDiff,
    /// A path that no patch may touch.
    #[error("{0}")]
    Path(#[from] PathProblem),
    /// A symbolic link that leaves the tree.
    #[error("symbolic link {path} would lead to \"{target}\", outside of the tree")]
    LinkOutside {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
    },
    /// A symbolic link whose target cannot be read.
    #[error(
        "symbolic link {path} is in a binary patch, which hides where it leads: make the patch \
         again with `git format-patch --text`"
    )]
    LinkBinary {
        /// The link.
        path: String,
    },
    /// A file behind a link that the series made.
    #[error("{path} would be written through {link}, a symbolic link that the series makes")]
    ThroughLink {
        /// The file.
        path: String,
        /// The link.
        link: String,
    },
    /// A file mode that trees do not have.
    #[error("file mode \"{found}\": expected 100644, 100755, 120000 or 160000")]
    Mode {
        /// The text.
        found: String,
    },
    /// `diff --git` without names that can be read.
    #[error("cannot read the two paths of \"{found}\": expected `diff --git a/PATH b/PATH`")]
    Names {
        /// The line.
        found: String,
    },
    /// Made with `diff.noprefix`.
    #[error(
        "paths of \"{found}\" have no a/ and b/: make the patch again with `git format-patch \
         --default-prefix`"
    )]
    NoPrefix {
        /// The line.
        found: String,
    },
    /// The header contradicts itself.
    #[error("{what} of the file's header is \"{found}\", expected \"{expected}\" as before it")]
    Contradiction {
        /// Which line.
        what: &'static str,
        /// The path there.
        found: String,
        /// The path before.
        expected: String,
    },
    /// A header line that git does not write.
    #[error("\"{found}\": expected a hunk header such as `@@ -1,4 +1,5 @@`")]
    HunkHeader {
        /// The line.
        found: String,
    },
    /// A hunk with no file.
    #[error("a hunk without the file it belongs to: lines above it are missing")]
    StrayHunk,
    /// A line in a hunk that is none.
    #[error(
        "hunk of {path}: expected a line that begins with a blank, + or -, found \"{found}\": the \
         mail program wrapped or changed lines; {MEND}"
    )]
    HunkLine {
        /// The file.
        path: String,
        /// The line.
        found: String,
    },
    /// Blanks that became no-break spaces.
    #[error(
        "hunk of {path}: blanks became no-break spaces, as mail programs do that write HTML; {MEND}"
    )]
    NoBreakSpace {
        /// The file.
        path: String,
    },
    /// More of one kind of line than the header says.
    #[error(
        "hunk of {path} has more lines than its header \"{header}\" says: the patch was edited or \
         damaged; {MEND}"
    )]
    HunkTooLong {
        /// The file.
        path: String,
        /// The hunk header.
        header: String,
    },
    /// The text ends inside of a hunk.
    #[error(
        "hunk of {path} ends early, {old} old and {new} new lines are missing: the mail was cut \
         short; {MEND}"
    )]
    HunkCut {
        /// The file.
        path: String,
        /// Lines of the old file that are missing.
        old: u32,
        /// Lines of the new file that are missing.
        new: u32,
    },
    /// `Binary files differ`.
    #[error(
        "{path} is binary and its content is not in the patch: make it with `git format-patch \
         --binary`"
    )]
    BinaryLeftOut {
        /// The file.
        path: String,
    },
    /// A damaged binary patch.
    #[error("the binary patch {found}; {MEND}")]
    Binary {
        /// What is wrong.
        found: &'static str,
    },
    /// Base64 that ends early or holds other characters.
    #[error("the mail's base64 is {found}: the mail was cut short or damaged; {MEND}")]
    Base64 {
        /// What is wrong.
        found: &'static str,
    },
    /// Quoted-printable that does not decode.
    #[error("the mail's {encoding} does not decode; {MEND}")]
    Encoding {
        /// The transfer encoding.
        encoding: &'static str,
    },
    /// `format=flowed`, and hunks that are not whole.
    #[error("the mail is format=flowed, which damages blanks: {found}")]
    Flowed {
        /// What is wrong with the hunks.
        found: Box<PatchProblem>,
    },
    /// `9/8`.
    #[error("number {number} of {total} in the subject: expected 1 to {total}")]
    Number {
        /// The number.
        number: u32,
        /// The total.
        total: u32,
    },
}

/// How to get a patch that is whole.
const MEND: &str = "get it with `b4 am`, or have it sent with `git send-email`";
