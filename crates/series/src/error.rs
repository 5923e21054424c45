//! Why there is no series: each error names the place and the mend.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::diff::PatchProblem;
use crate::display::defuse;
use crate::git::GitError;
use crate::limits::{MAX_HEADER, MAX_INPUT, MAX_MAILS, MAX_PATCHES};
use crate::place::Place;

/// One of several series in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesChoice {
    /// Its revision.
    pub revision: u32,
    /// Patches that are there.
    pub found: usize,
    /// Patches that there should be; none if the mails are not numbered.
    pub total: Option<u32>,
    /// Subject of the cover letter or the first patch.
    pub subject: String,
}

impl fmt::Display for SeriesChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}, {}", self.revision, self.found)?;
        if let Some(total) = self.total {
            write!(f, " of {total}")?;
        }
        // "0 of 3 patches": the last number rules the word.
        let one = self.total.map_or(self.found == 1, |total| total == 1);
        let word = if one { "patch" } else { "patches" };
        write!(f, " {word}: {}", defuse(&self.subject))
    }
}

fn list(choices: &[SeriesChoice]) -> String {
    const SHOWN: usize = 20;
    let shown = choices.iter().take(SHOWN);
    let mut list: String = shown.map(|choice| format!("\n  {choice}")).collect();
    if choices.len() > SHOWN {
        list.push_str(&format!("\n  and {} more", choices.len() - SHOWN));
    }
    list
}

fn numbers(numbers: &[u32], total: u32) -> String {
    const SHOWN: usize = 8;
    let mut parts: Vec<String> = numbers
        .iter()
        .take(SHOWN)
        .map(|number| format!("{number}/{total}"))
        .collect();
    if numbers.len() > SHOWN {
        parts.push(format!("{} more", numbers.len() - SHOWN));
    }
    let verb = if numbers.len() == 1 { "is" } else { "are" };
    format!("{} {verb} missing", parts.join(", "))
}

/// `1 mail`, `2 mails`.
fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

fn whole_one(others: &[u32]) -> String {
    match others.last() {
        Some(revision) => format!("; v{revision} is whole: choose it with --revision {revision}"),
        None => String::new(),
    }
}

fn absent(named: &Option<String>) -> String {
    let said = named
        .as_ref()
        .map(|commit| format!("base commit {commit} is not in the tree, and "));
    said.unwrap_or_default()
}

fn at_line(line: &Option<String>) -> String {
    line.as_ref()
        .map(|line| format!(", {line}"))
        .unwrap_or_default()
}

/// Why no series was read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// A file or folder could not be read.
    #[error("cannot read {}", defuse(&.path.display().to_string()))]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A damaged gzip file.
    #[error("{}: gzip data is damaged or cut short: download it again", defuse(.source_name))]
    Gzip {
        /// The file.
        source_name: String,
        /// Why.
        source: io::Error,
    },
    /// More bytes than the limit.
    #[error(
        "{} has more than {} MiB (decompressed): expected one thread; take it out with \
         `b4 mbox MESSAGE-ID`", defuse(.source_name), MAX_INPUT >> 20
    )]
    TooBig {
        /// The file.
        source_name: String,
    },
    /// More mails than the limit.
    #[error(
        "{} has more than {MAX_MAILS} mails: expected one thread; take it out with \
         `b4 mbox MESSAGE-ID`", defuse(.source_name)
    )]
    TooManyMails {
        /// The file or folder.
        source_name: String,
    },
    /// No mail at all.
    #[error(
        "{} is empty: expected mails, as `git format-patch --stdout` or `b4 am` write them",
        defuse(.source_name)
    )]
    Empty {
        /// The file or folder.
        source_name: String,
    },
    /// A folder that is neither a maildir nor a folder of patches.
    #[error(
        "{} holds no *.patch, *.eml or *.mbox file and is no maildir (cur/, new/)",
        defuse(&.path.display().to_string())
    )]
    NoPatchFiles {
        /// The folder.
        path: PathBuf,
    },
    /// No mail header where there should be one.
    #[error(
        "{place}: no mail header: expected `From:` and `Subject:` before the text; make patches \
         with `git format-patch`, not with `git diff`"
    )]
    NoHeader {
        /// The mail.
        place: Place,
    },
    /// A header without end.
    #[error("{place}: header of more than {} KiB: is this a mail?", MAX_HEADER >> 10)]
    LongHeader {
        /// The mail.
        place: Place,
    },
    /// Mails, but no patch in them.
    #[error(
        "{}: {}, no patch among them: expected a subject with [PATCH] and a diff in the text",
        defuse(.source_name), counted(*.mails, "mail")
    )]
    NoPatch {
        /// The source.
        source_name: String,
        /// Mails that were read.
        mails: usize,
    },
    /// Something is wrong with one patch.
    #[error("{place}{}: {problem}", at_line(.line))]
    Patch {
        /// The mail.
        place: Place,
        /// The line, in words.
        line: Option<String>,
        /// What is wrong.
        problem: Box<PatchProblem>,
    },
    /// The revision asked for is not there.
    #[error("{}: no v{wanted} here; there is:{}", defuse(.source_name), list(.found))]
    NoRevision {
        /// The source.
        source_name: String,
        /// What was asked for.
        wanted: u32,
        /// What there is.
        found: Vec<SeriesChoice>,
    },
    /// Several series of one revision.
    #[error(
        "{}: several series of one revision; keep the mails of one, or get it with `b4 am`. There \
         is:{}", defuse(.source_name), list(.found)
    )]
    Ambiguous {
        /// The source.
        source_name: String,
        /// What there is.
        found: Vec<SeriesChoice>,
    },
    /// Patches without numbers whose order is not known.
    #[error(
        "{count} patches of one revision without numbers, the second in {place}: number them \
         with `git format-patch -n`"
    )]
    Unnumbered {
        /// How many.
        count: usize,
        /// The second one.
        place: Place,
    },
    /// Two different patches with one number.
    #[error("two different patches are number {number}: {first} and {second}; keep one")]
    TwoPatches {
        /// The number.
        number: u32,
        /// The first mail.
        first: Box<Place>,
        /// The second mail.
        second: Box<Place>,
    },
    /// Not all patches are there.
    #[error(
        "{}: {}: get the whole thread with `b4 mbox` or `b4 am`{}",
        defuse(.source_name), numbers(.missing, *.total), whole_one(.whole)
    )]
    Missing {
        /// The source.
        source_name: String,
        /// The numbers, ascending.
        missing: Vec<u32>,
        /// Patches of the series.
        total: u32,
        /// Other revisions of which no patch is missing.
        whole: Vec<u32>,
    },
    /// A total beyond all reason.
    #[error("{place}: a series of {total} patches: expected at most {MAX_PATCHES}")]
    TooManyPatches {
        /// The mail.
        place: Place,
        /// The total.
        total: u32,
    },
    /// `TREE:BASE..TOPIC` that is none.
    #[error("\"{}\" is no git range: expected TREE:BASE..TOPIC, such as linux:v6.1..topic", defuse(.text))]
    Range {
        /// The text.
        text: String,
    },
    /// Nothing between the two commits.
    #[error("{}: no commits in this range: is it {topic}..{base} that you mean?", defuse(.range))]
    EmptyRange {
        /// The range.
        range: String,
        /// The base.
        base: String,
        /// The topic.
        topic: String,
    },
    /// Histories without a common commit.
    #[error("{}: the two have no commit in common: name a base from which the topic came", defuse(.range))]
    Unrelated {
        /// The range.
        range: String,
    },
    /// Merges cannot be sent as patches.
    #[error("{}: {} in this range: rebase it onto its base first", defuse(.range), counted(*.merges, "merge"))]
    Merges {
        /// The range.
        range: String,
        /// How many.
        merges: usize,
    },
    /// No tag and no branch has what the patches change.
    #[error(
        "{}: {}no tag and no branch ({references} compared) has the files that this series changes \
         as it expects them: is it for another tree? Fetch what it is based on, or name the base \
         with `--base` or `git format-patch --base`",
        defuse(&.tree.display().to_string()), absent(.named)
    )]
    NoBase {
        /// The tree.
        tree: PathBuf,
        /// The base that the series names, if it is not in the tree.
        named: Option<String>,
        /// Tags and branches that were compared.
        references: usize,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
