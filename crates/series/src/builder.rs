//! The chosen mails, read: patches with their diffs and messages, the base they name, and
//! what replies say about them.

use std::collections::BTreeMap;

use crate::candidate::Candidate;
use crate::classify::{Classified, Role};
use crate::diff::{self, At, Diff, Mode, PatchProblem};
use crate::error::SeriesError;
use crate::limits::MAX_TRAILERS;
use crate::mail::Mail;
use crate::message::Message;
use crate::series::{Cover, Dependencies, Patch, Series};
use crate::subject::Subject;
use crate::symlink::Links;
use crate::trailer::{self, Trailer};
use crate::warning::Warning;

/// Reads the mails of the chosen series.
pub(crate) struct Builder<'a> {
    mails: &'a [Classified],
    links: Links,
    dependencies: Dependencies,
    warnings: Vec<Warning>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(mails: &'a [Classified], warnings: Vec<Warning>) -> Self {
        Self {
            mails,
            links: Links::default(),
            dependencies: Dependencies::default(),
            warnings,
        }
    }

    pub(crate) fn build(mut self, chosen: &Candidate) -> Result<Series, SeriesError> {
        let cover = chosen.covers.first();
        let mut cover = cover.map(|index| cover_of(&self.mails[*index].mail));
        if let Some(cover) = &cover {
            self.dependencies.merge(trailer::dependencies(&cover.text));
        }
        let mut patches = Vec::with_capacity(chosen.patches.len());
        for (index, number) in chosen.patches.iter().zip(1..) {
            patches.push(self.patch(&self.mails[*index].mail, number)?);
        }
        self.answers(chosen, cover.as_mut(), &mut patches);
        let (subject, author) = match (&cover, patches.first()) {
            (Some(cover), _) => (cover.subject.clone(), cover.author.clone()),
            (None, Some(patch)) => (patch.subject.clone(), patch.author.clone()),
            (None, None) => Default::default(),
        };
        let lead = chosen.covers.first().or(chosen.patches.first());
        let lead = lead.map(|index| &self.mails[*index].mail);
        Ok(Series {
            subject,
            author,
            date: lead.and_then(|mail| mail.date),
            revision: chosen.revision,
            tags: lead
                .map(|mail| mail.subject.tags.clone())
                .unwrap_or_default(),
            rfc: lead.is_some_and(|mail| mail.subject.rfc),
            cover,
            patches,
            dependencies: self.dependencies,
            other_revisions: Vec::new(),
            warnings: self.warnings,
        })
    }

    fn patch(&mut self, mail: &Mail, number: u32) -> Result<Patch, SeriesError> {
        let refuse = |line: Option<usize>, problem: PatchProblem| SeriesError::Patch {
            place: mail.place.clone(),
            line: line.map(|line| mail.line(line).to_string()),
            problem: Box::new(problem),
        };
        if let Some(damage) = &mail.body.damage {
            return Err(refuse(None, damage.clone()));
        }
        let diff = read_diff(mail).map_err(|at| refuse(Some(at.line), at.problem))?;
        if diff.files.is_empty() {
            return Err(refuse(None, PatchProblem::NoDiff));
        }
        self.links
            .take(&diff.files)
            .map_err(|problem| refuse(Some(diff.line), problem))?;
        self.warn_of_patch(mail, &diff);
        for around in [
            &mail.body.patch[..diff.span.start],
            &mail.body.patch[diff.span.end..],
        ] {
            self.dependencies.merge(trailer::dependencies(around));
        }
        let message = Message::read(&mail.body.text);
        let subject = message
            .subject
            .map(|subject| Subject::parse(&subject).title);
        Ok(Patch {
            number,
            subject: subject.unwrap_or_else(|| mail.subject.title.clone()),
            author: message.author.unwrap_or_else(|| mail.author.clone()),
            place: mail.place.clone(),
            trailers: trailer::of_message(&message.text),
            message: message.text,
            files: diff.files,
            keep_cr: mail.has_inner_cr(),
            quoted_cr: mail.body.quoted_cr,
            raw: mail.raw.clone(),
        })
    }

    fn warn_of_patch(&mut self, mail: &Mail, diff: &Diff) {
        let place = || mail.place.clone();
        let warnings = &mut self.warnings;
        if mail.body.flowed {
            warnings.push(Warning::Flowed { place: place() });
        }
        if mail.has_inner_cr() {
            warnings.push(Warning::KeepCr { place: place() });
        }
        if mail.body.quoted_cr {
            warnings.push(Warning::QuotedCr { place: place() });
        }
        for text in diff.trailing.iter().cloned() {
            warnings.push(Warning::Trailing {
                place: place(),
                text,
            });
        }
        for file in &diff.files {
            if [file.old_mode, file.new_mode].contains(&Some(Mode::Submodule)) {
                let path = file.path.to_string();
                warnings.push(Warning::Submodule {
                    place: place(),
                    path,
                });
            }
        }
    }

    /// Gives the trailers of replies to what they answer: the nearest patch or cover letter
    /// above them, which may be one of another revision.
    fn answers(&self, chosen: &Candidate, mut cover: Option<&mut Cover>, patches: &mut [Patch]) {
        let mut targets: BTreeMap<&str, Option<Target>> = BTreeMap::new();
        for Classified { mail, role, .. } in self.mails {
            if let (Role::Patch | Role::Cover | Role::Bare, Some(id)) =
                (role, &mail.place.message_id)
            {
                targets.entry(id).or_insert(None);
            }
        }
        let id = |index: &usize| self.mails[*index].mail.place.message_id.as_deref();
        let all = chosen.covers.iter().map(|index| (index, Target::Cover));
        let all = all.chain(
            chosen
                .patches
                .iter()
                .zip(0..)
                .map(|(index, at)| (index, Target::Patch(at))),
        );
        for (index, target) in all {
            if let Some(id) = id(index) {
                targets.insert(id, Some(target));
            }
        }
        for Classified { mail, role, .. } in self.mails {
            if *role != Role::Reply {
                continue;
            }
            let nearest = mail.parents.iter().find_map(|id| targets.get(id.as_str()));
            let given = trailer::of_reply(&mail.body.text, mail.place.message_id.as_deref());
            match nearest {
                Some(Some(Target::Patch(at))) => add(&mut patches[*at].trailers, given),
                Some(Some(Target::Cover)) => {
                    if let Some(cover) = cover.as_deref_mut() {
                        add(&mut cover.trailers, given);
                    }
                }
                Some(None) | None => {}
            }
        }
    }
}

fn cover_of(mail: &Mail) -> Cover {
    Cover {
        place: mail.place.clone(),
        subject: mail.subject.title.clone(),
        author: mail.author.clone(),
        text: mail.body.text.clone(),
        trailers: Vec::new(),
    }
}

/// What a reply may answer.
#[derive(Debug, Clone, Copy)]
enum Target {
    Cover,
    /// Index in the series.
    Patch(usize),
}

/// Adds trailers that are not there yet.
fn add(trailers: &mut Vec<Trailer>, given: Vec<Trailer>) {
    for trailer in given {
        let same = |known: &Trailer| {
            known.name.eq_ignore_ascii_case(&trailer.name) && known.value == trailer.value
        };
        if trailers.len() < MAX_TRAILERS && !trailers.iter().any(same) {
            trailers.push(trailer);
        }
    }
}

fn read_diff(mail: &Mail) -> Result<Diff, At> {
    diff::parse(&mail.body.patch).map_err(|at| match mail.body.flowed {
        true => At {
            problem: PatchProblem::Flowed {
                found: Box::new(at.problem),
            },
            ..at
        },
        false => at,
    })
}
