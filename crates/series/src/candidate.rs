//! The series that a source may hold: mails of one revision and one total.

use std::collections::{BTreeMap, BTreeSet};

use crate::classify::{Classified, Role};
use crate::diff::PatchProblem;
use crate::error::{SeriesChoice, SeriesError};
use crate::limits::MAX_PATCHES;
use crate::thread::threads;

/// Mails that look like one series; all numbers index the source's mails.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    pub(crate) revision: u32,
    /// None if the patches are not numbered.
    pub(crate) total: Option<u32>,
    pub(crate) covers: Vec<usize>,
    /// By number, then by their order in the source.
    pub(crate) patches: Vec<usize>,
    /// Mails that are the same as one of the above.
    pub(crate) twice: Vec<usize>,
    threads: BTreeSet<usize>,
}

/// All candidates, by revision.
pub(crate) fn candidates(mails: &[Classified]) -> Vec<Candidate> {
    let threads = threads(mails);
    let tagged = mails.iter().any(|mail| mail.role == Role::Patch);
    let mut groups: BTreeMap<(u32, Option<u32>), Vec<usize>> = BTreeMap::new();
    for (index, mail) in mails.iter().enumerate() {
        let counts = match mail.role {
            Role::Cover | Role::Patch => true,
            // Without any [PATCH] the diffs are what was meant.
            Role::Bare => !tagged,
            Role::Announcement | Role::Reply | Role::Other => false,
        };
        if counts {
            let total = mail.position().map(|position| position.total);
            let revision = mail.mail.subject.revision;
            groups.entry((revision, total)).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for ((revision, total), members) in groups {
        let (kept, twice) = distinct(mails, members);
        for part in parts(mails, &threads, total, kept) {
            let mut candidate = Candidate {
                revision,
                total,
                twice: twice.clone(),
                threads: part.iter().map(|index| threads[*index]).collect(),
                ..Candidate::default()
            };
            for index in part {
                match mails[index].role {
                    Role::Cover => candidate.covers.push(index),
                    _ => candidate.patches.push(index),
                }
            }
            candidate
                .patches
                .sort_by_key(|index| mails[*index].number());
            found.push(candidate);
        }
    }
    found
}

/// Takes out mails that are the same as an earlier one.
fn distinct(mails: &[Classified], members: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut by_number: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let (mut kept, mut twice) = (Vec::new(), Vec::new());
    for index in members {
        let same = by_number.entry(mails[index].number()).or_default();
        if same
            .iter()
            .any(|other| mails[*other].is_same(&mails[index]))
        {
            twice.push(index);
        } else {
            same.push(index);
            kept.push(index);
        }
    }
    (kept, twice)
}

/// Numbers that are there twice are of two series, if threads or RFC tell them apart.
fn parts(
    mails: &[Classified],
    threads: &[usize],
    total: Option<u32>,
    members: Vec<usize>,
) -> Vec<Vec<usize>> {
    let mut numbers = BTreeSet::new();
    if total.is_none()
        || members
            .iter()
            .all(|index| numbers.insert(mails[*index].number()))
    {
        return vec![members];
    }
    let mut parts: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for index in members {
        let key = (threads[index], mails[index].mail.subject.rfc);
        parts.entry(key).or_default().push(index);
    }
    parts.into_values().collect()
}

impl Candidate {
    /// The candidate in words.
    pub(crate) fn choice(&self, mails: &[Classified]) -> SeriesChoice {
        let first = self.covers.first().or(self.patches.first());
        SeriesChoice {
            revision: self.revision,
            found: self.patches.len(),
            total: self.total,
            subject: first.map_or_else(String::new, |first| {
                mails[*first].mail.subject.title.clone()
            }),
        }
    }

    /// Whether patches without numbers belong to the discussion of a numbered series.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.total.is_none() && other.total.is_some() && !self.threads.is_disjoint(&other.threads)
    }

    fn missing(&self, mails: &[Classified]) -> Vec<u32> {
        let there: BTreeSet<u32> = self
            .patches
            .iter()
            .map(|index| mails[*index].number())
            .collect();
        let total = self.total.unwrap_or(0).min(MAX_PATCHES);
        (1..=total)
            .filter(|number| !there.contains(number))
            .collect()
    }

    /// Whether every patch is there, once.
    pub(crate) fn is_whole(&self, mails: &[Classified]) -> bool {
        self.check("", mails, &[]).is_ok()
    }

    /// Refuses what is no whole series; `whole` are revisions that are.
    pub(crate) fn check(
        &self,
        source: &str,
        mails: &[Classified],
        whole: &[u32],
    ) -> Result<(), SeriesError> {
        let Some(total) = self.total else {
            return self.check_order(mails);
        };
        self.check_numbers(mails, total)?;
        self.check_twice(mails)?;
        match self.missing(mails) {
            none if none.is_empty() => Ok(()),
            missing => Err(SeriesError::Missing {
                source_name: source.to_owned(),
                missing,
                total,
                whole: whole.to_vec(),
            }),
        }
    }

    /// Patches without numbers have an order only if git wrote it.
    fn check_order(&self, mails: &[Classified]) -> Result<(), SeriesError> {
        let ordered = self.patches.iter().all(|index| mails[*index].mail.ordered);
        match self.patches.as_slice() {
            [_, second, ..] if !ordered => Err(SeriesError::Unnumbered {
                count: self.patches.len(),
                place: mails[*second].mail.place.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn check_numbers(&self, mails: &[Classified], total: u32) -> Result<(), SeriesError> {
        for index in self.patches.iter().chain(&self.covers) {
            let place = mails[*index].mail.place.clone();
            let number = mails[*index].number();
            if total > MAX_PATCHES {
                return Err(SeriesError::TooManyPatches { place, total });
            }
            if number > total {
                return Err(SeriesError::Patch {
                    place,
                    line: None,
                    problem: Box::new(PatchProblem::Number { number, total }),
                });
            }
        }
        Ok(())
    }

    fn check_twice(&self, mails: &[Classified]) -> Result<(), SeriesError> {
        let place = |index: usize| Box::new(mails[index].mail.place.clone());
        for pair in self.patches.windows(2).chain(self.covers.windows(2)) {
            let (first, second) = (pair[0], pair[1]);
            if mails[first].number() == mails[second].number() {
                return Err(SeriesError::TwoPatches {
                    number: mails[first].number(),
                    first: place(first),
                    second: place(second),
                });
            }
        }
        Ok(())
    }
}
