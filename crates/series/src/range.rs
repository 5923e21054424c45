//! Commits of a git tree as a series: `git format-patch` writes the mails.

use crate::assemble::assemble;
use crate::error::SeriesError;
use crate::git::{Git, GitError, text};
use crate::limits::{MAX_INPUT, MAX_PATCHES};
use crate::mail::Mail;
use crate::mbox::{RawMail, lines};
use crate::place::Place;
use crate::series::Series;
use crate::source::{GitRange, Options};

/// What makes a mail hold exactly what the commit holds, whatever the tree's configuration.
const FORMAT_PATCH: [&str; 24] = [
    "--stdout",
    "--numbered",
    "--subject-prefix=PATCH",
    "--no-cover-letter",
    "--no-thread",
    "--no-attach",
    "--no-signoff",
    "--no-to",
    "--no-cc",
    "--no-add-header",
    "--no-from",
    "--no-notes",
    "--signature=klab",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--binary",
    "--full-index",
    "--find-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-indent-heuristic",
    "--diff-algorithm=myers",
    "--unified=3",
    "--no-color",
];

/// Limits git to commits that change something: others, such as the one in which b4 keeps a
/// cover letter, are no patches.
const WITH_CHANGES: [&str; 2] = ["--", ":/"];

/// Reads the commits of a range.
///
/// # Errors
/// [`SeriesError`].
pub(crate) fn read(range: &GitRange) -> Result<Series, SeriesError> {
    let git = Git::open(&range.tree)?;
    let base = resolve(&git, &range.base)?;
    let topic = resolve(&git, &range.topic)?;
    let commits = commits(&git, range, &base, &topic)?;
    // The base may have gone on after the topic left it.
    let start = match git.run("merge-base", [&base, &topic], b"") {
        Err(GitError::Failed { .. }) => {
            let range = range.text.clone();
            return Err(SeriesError::Unrelated { range });
        }
        start => text(&start?),
    };
    let selected = format!("{base}..{topic}");
    let arguments = [&FORMAT_PATCH[..], &[&selected], &WITH_CHANGES].concat();
    let mails = git.run_limited("format-patch", arguments, b"", MAX_INPUT)?;
    let mails = split(&range.text, &mails, &commits).ok_or_else(|| GitError::Failed {
        tree: range.tree.clone(),
        command: "format-patch",
        said: "it wrote other commits than `git rev-list` names".to_owned(),
    })?;
    let mails: Result<Vec<Mail>, SeriesError> = mails.into_iter().map(Mail::read).collect();
    let mut series = assemble(&range.text, mails?, Vec::new(), &Options::default())?;
    series.dependencies.base_commits = vec![start];
    Ok(series)
}

fn empty(range: &GitRange) -> SeriesError {
    SeriesError::EmptyRange {
        range: range.text.clone(),
        base: range.base.clone(),
        topic: range.topic.clone(),
    }
}

fn resolve(git: &Git, name: &str) -> Result<String, SeriesError> {
    let namesakes = git.namesakes(name)?;
    if namesakes
        .iter()
        .any(|(_, commit)| *commit != namesakes[0].1)
    {
        return Err(SeriesError::from(GitError::Ambiguous {
            tree: git.tree().to_owned(),
            name: name.to_owned(),
            references: namesakes.into_iter().map(|(full, _)| full).collect(),
        }));
    }
    let commit = git.commit(name)?;
    let missing = || GitError::NoCommit {
        tree: git.tree().to_owned(),
        name: name.to_owned(),
    };
    Ok(commit.ok_or_else(missing)?)
}

/// The ids of the commits, oldest first.
fn commits(
    git: &Git,
    range: &GitRange,
    base: &str,
    topic: &str,
) -> Result<Vec<String>, SeriesError> {
    let selected = format!("{base}..{topic}");
    let merges = git.run("rev-list", ["--count", "--merges", &selected], b"")?;
    let merges = text(&merges).parse().unwrap_or(0);
    if merges > 0 {
        return Err(SeriesError::Merges {
            range: range.text.clone(),
            merges,
        });
    }
    let arguments = [&["--reverse", &selected], &WITH_CHANGES[..]].concat();
    let list = git.run("rev-list", arguments, b"")?;
    let list: Vec<String> = text(&list).lines().map(str::to_owned).collect();
    if list.is_empty() {
        return Err(empty(range));
    }
    let total = u32::try_from(list.len()).unwrap_or(u32::MAX);
    if total > MAX_PATCHES {
        return Err(SeriesError::TooManyPatches {
            place: Place::new(&range.text, 1, 1),
            total,
        });
    }
    Ok(list)
}

/// Cuts at the separators of these commits, one mail for each. A commit message cannot hold
/// the separator of a later commit, so nothing written there leads to a wrong cut.
fn split(name: &str, bytes: &[u8], commits: &[String]) -> Option<Vec<RawMail>> {
    let mut mails: Vec<RawMail> = Vec::with_capacity(commits.len());
    let mut next = commits.iter().map(|commit| separator(commit)).peekable();
    for (index, line) in lines(bytes).enumerate() {
        if next
            .next_if(|separator| separator.as_bytes() == line)
            .is_some()
        {
            mails.push(RawMail {
                place: Place::new(name, mails.len() + 1, index + 2),
                bytes: Vec::new(),
                ordered: true,
            });
        } else {
            mails.last_mut()?.bytes.extend_from_slice(line);
        }
    }
    (mails.len() == commits.len()).then_some(mails)
}

fn separator(commit: &str) -> String {
    format!("From {commit} Mon Sep 17 00:00:00 2001\n")
}
