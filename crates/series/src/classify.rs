//! What each mail of a source is: cover letter, patch, reply, or nothing of interest.

use crate::diff::find_start;
use crate::mail::Mail;
use crate::subject::{Lead, Position};

/// What a mail is to a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Number 0.
    Cover,
    /// `[PATCH]` or `[RFC]` with a diff, or with a number above 0.
    Patch,
    /// A diff without such a subject.
    Bare,
    /// `[PATCH]` or `[RFC]` with neither a diff nor a number.
    Announcement,
    /// An answer.
    Reply,
    /// Everything else.
    Other,
}

/// A mail and its role.
#[derive(Debug)]
pub(crate) struct Classified {
    pub(crate) mail: Mail,
    pub(crate) role: Role,
    /// The part of the text that is the patch, to tell whether two mails are the same one.
    diff: Option<String>,
}

impl Classified {
    pub(crate) fn new(mail: Mail) -> Self {
        let diff = find_start(&mail.body.patch).map(|start| {
            let lines = mail.body.patch[start..]
                .lines()
                .take_while(|line| *line != "-- ");
            let patch: String = lines.flat_map(|line| [line, "\n"]).collect();
            patch.trim_end().to_owned()
        });
        let role = role(&mail, diff.is_some());
        Self { mail, role, diff }
    }

    /// `n/m` of the subject; `0/0` says nothing.
    pub(crate) fn position(&self) -> Option<Position> {
        self.mail
            .subject
            .position
            .filter(|position| position.total > 0)
    }

    /// Number in the series; 0 for a cover letter and without one.
    pub(crate) fn number(&self) -> u32 {
        self.position().map_or(0, |position| position.number)
    }

    /// Whether two mails are the same patch, sent or delivered twice.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.mail, &other.mail);
        let letters = self.diff.is_none() && other.diff.is_none();
        let same_text = || one.body.text.trim_end() == two.body.text.trim_end();
        let same_id =
            one.place.message_id.is_some() && one.place.message_id == two.place.message_id;
        one.subject.title == two.subject.title
            && self.diff == other.diff
            && (!letters || same_id || same_text())
    }
}

fn role(mail: &Mail, has_diff: bool) -> Role {
    let subject = &mail.subject;
    let position = subject.position.filter(|position| position.total > 0);
    let tagged = subject.patch || subject.rfc;
    match (subject.lead, position) {
        (Lead::Reply, _) => Role::Reply,
        (Lead::Forward, _) => Role::Other,
        (Lead::None, Some(Position { number: 0, .. })) => Role::Cover,
        (Lead::None, Some(_)) => Role::Patch,
        (Lead::None, None) if has_diff && tagged => Role::Patch,
        (Lead::None, None) if has_diff => Role::Bare,
        (Lead::None, None) if tagged => Role::Announcement,
        (Lead::None, None) => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mbox::RawMail;
    use crate::place::Place;

    fn classified(subject: &str, text: &str) -> Classified {
        let bytes = format!("Subject: {subject}\n\n{text}\n").into_bytes();
        let place = Place::new("m", 1, 1);
        let raw = RawMail {
            place,
            bytes,
            ordered: false,
        };
        Classified::new(Mail::read(raw).expect("a mail"))
    }

    #[test]
    fn roles() {
        let diff = "x\n---\ndiff --git a/x b/x\nnew file mode 100644\n-- \n2.4";
        for (subject, text, role) in [
            ("[PATCH 0/3] a", "x", Role::Cover),
            ("[RFC 00/12] a", diff, Role::Cover),
            ("[PATCH 1/3] a", diff, Role::Patch),
            ("[PATCH 1/3] a", "x", Role::Patch),
            ("[RFC] a", diff, Role::Patch),
            ("[PATCH 0/0] a", diff, Role::Patch),
            ("[RFC] a", "x", Role::Announcement),
            ("mm: a", diff, Role::Bare),
            ("mm: a", "> diff --git a/x b/x", Role::Other),
            ("Re: [PATCH 1/3] a", diff, Role::Reply),
            ("Fwd: [PATCH 1/3] a", diff, Role::Other),
        ] {
            assert_eq!(classified(subject, text).role, role, "{subject}");
        }
    }

    #[test]
    fn the_same_patch_twice() {
        let diff = |footer: &str| {
            format!("x\n---\ndiff --git a/x b/x\nnew file mode 100644\n-- \n{footer}")
        };
        let one = classified("[PATCH 1/3] a", &diff("2.4"));
        assert!(one.is_same(&classified(
            "[PATCH RESEND 1/3] a",
            &diff("a list's footer")
        )));
        assert!(!one.is_same(&classified(
            "[PATCH 1/3] a",
            &diff("2.4").replace("/x", "/y")
        )));
        assert!(!one.is_same(&classified("[PATCH 1/3] b", &diff("2.4"))));
        let cover = classified("[PATCH 0/3] a", "x");
        assert!(cover.is_same(&classified("[PATCH 0/3] a", "x\n")));
        assert!(!cover.is_same(&classified("[PATCH 0/3] a", "y")));
    }
}
