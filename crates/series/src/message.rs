//! The commit message in a patch mail, cut out as git-mailinfo(1) does.

use crate::mail::Person;

/// What a mail says before its diff.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// `From:` at the top of the text: the author, where somebody else sent the mail.
    pub(crate) author: Option<Person>,
    /// `Subject:` at the top of the text.
    pub(crate) subject: Option<String>,
    /// The message without its subject.
    pub(crate) text: String,
}

impl Message {
    pub(crate) fn read(text: &str) -> Self {
        let mut message = Self::default();
        let mut lines = text
            .lines()
            .skip_while(|line| line.trim().is_empty())
            .peekable();
        let mut headers = false;
        while let Some(line) = lines.next_if(|line| message.take_header(line)) {
            headers |= !line.is_empty();
        }
        if headers {
            while lines.next_if(|line| line.trim().is_empty()).is_some() {}
        }
        for line in lines.take_while(|line| !begins_patch(line)) {
            message.text.push_str(line.trim_end());
            message.text.push('\n');
        }
        message.text.truncate(message.text.trim_end().len());
        message
    }

    /// Takes a header line at the top of the text; false if it is none.
    fn take_header(&mut self, line: &str) -> bool {
        if let Some(from) = line.strip_prefix("From: ") {
            let author = Person::parse(from);
            let good = author.email.contains('@');
            if good {
                self.author = Some(author);
            }
            good
        } else if let Some(subject) = line.strip_prefix("Subject: ") {
            self.subject = Some(subject.to_owned());
            true
        } else {
            line.starts_with("Date: ")
        }
    }
}

/// Whether git takes the line for the end of the message.
fn begins_patch(line: &str) -> bool {
    let after = line.strip_prefix("---");
    let rule = after.is_some_and(|rest| {
        let file = rest
            .strip_prefix(' ')
            .is_some_and(|name| !name.starts_with(char::is_whitespace) && !name.is_empty());
        rest.trim().is_empty() || file
    });
    rule || line.starts_with("diff -") || line.starts_with("Index: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_at_the_top() {
        let message =
            Message::read("\nFrom: A B <a@b>\nSubject: mm: x\n\nWhy.\n\nMore.\n---\nnotes\n");
        assert_eq!(
            message.author.map(|author| author.shown()).as_deref(),
            Some("A B <a@b>")
        );
        assert_eq!(message.subject.as_deref(), Some("mm: x"));
        assert_eq!(message.text, "Why.\n\nMore.");
    }

    #[test]
    fn where_the_message_ends() {
        for end in ["---", "--- ", "--- a/x", "diff --git a/x b/x", "Index: x"] {
            assert_eq!(
                Message::read(&format!("Why.\n{end}\nx\n")).text,
                "Why.",
                "{end}"
            );
        }
        let text = "From: here on it is text\n----\n---  x\n--\nSubject\n ---";
        assert_eq!(Message::read(text).text, text);
    }
}
