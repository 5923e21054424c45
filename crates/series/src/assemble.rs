//! Mails to one series: the revision is chosen, what is left out is told.

use std::collections::BTreeSet;

use crate::builder::Builder;
use crate::candidate::{Candidate, candidates};
use crate::classify::{Classified, Role};
use crate::diff::PatchProblem;
use crate::error::SeriesError;
use crate::mail::Mail;
use crate::series::Series;
use crate::source::Options;
use crate::warning::Warning;

/// Makes the series of the mails of a source.
///
/// # Errors
/// [`SeriesError`], if there is none, several, or one that is not whole.
pub(crate) fn assemble(
    source: &str,
    mails: Vec<Mail>,
    mut warnings: Vec<Warning>,
    options: &Options,
) -> Result<Series, SeriesError> {
    let mails: Vec<Classified> = mails.into_iter().map(Classified::new).collect();
    let candidates = candidates(&mails);
    let chosen = choose(source, &mails, &candidates, options)?;
    let whole = |candidate: &&Candidate| {
        candidate.revision != chosen.revision && candidate.is_whole(&mails)
    };
    let whole: Vec<u32> = candidates
        .iter()
        .filter(whole)
        .map(|other| other.revision)
        .collect();
    chosen.check(source, &mails, &whole)?;
    let others: BTreeSet<u32> = candidates
        .iter()
        .map(|candidate| candidate.revision)
        .filter(|revision| *revision != chosen.revision)
        .collect();
    left_out(&mails, &candidates, chosen, &mut warnings);
    let mut series = Builder::new(&mails, warnings).build(chosen)?;
    series.other_revisions = others.into_iter().collect();
    warn_of_series(&mut series);
    Ok(series)
}

/// The newest revision, or the one asked for.
fn choose<'a>(
    source: &str,
    mails: &[Classified],
    candidates: &'a [Candidate],
    options: &Options,
) -> Result<&'a Candidate, SeriesError> {
    let Some(newest) = candidates.iter().map(|candidate| candidate.revision).max() else {
        return Err(no_patch(source, mails));
    };
    let wanted = options.revision.unwrap_or(newest);
    let of_revision: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| candidate.revision == wanted)
        .collect();
    let aside = |candidate: &&Candidate| of_revision.iter().any(|other| candidate.is_beside(other));
    let fitting: Vec<&Candidate> = of_revision
        .iter()
        .copied()
        .filter(|candidate| !aside(candidate))
        .collect();
    let list = |candidates: &[&Candidate]| {
        candidates
            .iter()
            .map(|candidate| candidate.choice(mails))
            .collect()
    };
    match fitting.as_slice() {
        [one] => Ok(one),
        [] => Err(SeriesError::NoRevision {
            source_name: source.to_owned(),
            wanted,
            found: list(&candidates.iter().collect::<Vec<_>>()),
        }),
        several => Err(SeriesError::Ambiguous {
            source_name: source.to_owned(),
            found: list(several),
        }),
    }
}

fn no_patch(source: &str, mails: &[Classified]) -> SeriesError {
    match mails.iter().find(|mail| mail.role == Role::Announcement) {
        Some(Classified { mail, .. }) => SeriesError::Patch {
            place: mail.place.clone(),
            line: None,
            problem: Box::new(mail.body.damage.clone().unwrap_or(PatchProblem::NoDiff)),
        },
        None => SeriesError::NoPatch {
            source_name: source.to_owned(),
            mails: mails.len(),
        },
    }
}

/// Warns of mails that might have been meant and are not part of the series.
fn left_out(
    mails: &[Classified],
    candidates: &[Candidate],
    chosen: &Candidate,
    warnings: &mut Vec<Warning>,
) {
    let place = |index: &usize| mails[*index].mail.place.clone();
    warnings.extend(chosen.twice.iter().map(|index| Warning::Twice {
        place: place(index),
    }));
    for candidate in candidates {
        if candidate.revision == chosen.revision && candidate.is_beside(chosen) {
            warnings.extend(candidate.patches.iter().map(|index| Warning::Beside {
                place: place(index),
            }));
        }
    }
    for (index, mail) in mails.iter().enumerate() {
        if mail.role == Role::Bare && !chosen.patches.contains(&index) {
            warnings.push(Warning::Untagged {
                place: place(&index),
            });
        }
    }
}

fn warn_of_series(series: &mut Series) {
    let dependencies = &series.dependencies;
    if let [first, second, ..] = dependencies.base_commits.as_slice() {
        series.warnings.push(Warning::TwoBases {
            first: first.clone(),
            second: second.clone(),
        });
    }
    if dependencies.prerequisites() > 0 {
        series.warnings.push(Warning::Prerequisites {
            count: dependencies.prerequisites(),
        });
    }
    if !series.other_revisions.is_empty() {
        let names = series
            .other_revisions
            .iter()
            .map(|revision| format!("v{revision}"));
        series.warnings.push(Warning::OtherRevisions {
            revisions: names.collect::<Vec<_>>().join(", "),
        });
    }
}
