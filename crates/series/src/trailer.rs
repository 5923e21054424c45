//! Trailers: `Reviewed-by:` and others, in patches and in replies.

use crate::series::Dependencies;

/// A trailer line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// Such as `Reviewed-by`.
    pub name: String,
    /// What follows the colon.
    pub value: String,
    /// Message-ID of the reply that brought it; none if it stands in the patch.
    pub reply: Option<String>,
}

/// The line as a trailer.
fn trailer(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(": ")?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_uppercase());
    let good = begins && name.len() <= 40 && name.chars().all(word) && !value.trim().is_empty();
    good.then(|| (name, value.trim()))
}

/// Trailers of a commit message: those of its last paragraph that has any.
pub(crate) fn of_message(message: &str) -> Vec<Trailer> {
    let mut last = Vec::new();
    for paragraph in message.split("\n\n") {
        let lines = paragraph.lines();
        let found: Vec<Trailer> = lines
            .filter_map(trailer)
            .filter(|(name, _)| is_known(name))
            .map(own)
            .collect();
        if !found.is_empty() {
            last = found;
        }
    }
    last
}

fn own((name, value): (&str, &str)) -> Trailer {
    Trailer {
        name: name.to_owned(),
        value: value.to_owned(),
        reply: None,
    }
}

/// Trailers that a commit message has for a purpose; other lines with a colon are text.
fn is_known(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("-by")
        || ["fixes", "link", "closes", "cc", "change-id"].contains(&lower.as_str())
}

/// What a reply gives to a patch: its own lines, not those it quotes.
pub(crate) fn of_reply(text: &str, message_id: Option<&str>) -> Vec<Trailer> {
    const GIVEN: [&str; 8] = [
        "Reviewed-by",
        "Acked-by",
        "Tested-by",
        "Reported-by",
        "Suggested-by",
        "Reviewed-and-tested-by",
        "Acked-and-tested-by",
        "Tested-and-reviewed-by",
    ];
    let mut found = Vec::new();
    for line in text.lines() {
        // A signature or a quoted mail below the answer is not said by its author.
        if line == "-- " || line.starts_with("-----Original Message") {
            break;
        }
        if let Some((name, value)) = trailer(line)
            && GIVEN.iter().any(|given| given.eq_ignore_ascii_case(name))
        {
            found.push(Trailer {
                reply: message_id.map(str::to_owned),
                ..own((name, value))
            });
        }
    }
    found
}

/// Reads `base-commit:` and its relatives, as `git format-patch --base` and b4 write them.
pub(crate) fn dependencies(text: &str) -> Dependencies {
    let hex = |value: &str| {
        let legal = value.len() >= 12 && value.len() <= 64;
        (legal && value.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| value.to_ascii_lowercase())
    };
    let mut found = Dependencies::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "base-commit" => found.base_commits.extend(hex(value)),
            "prerequisite-patch-id" => found.patch_ids.extend(hex(value)),
            "prerequisite-message-id" | "prerequisite-change-id" => {
                found.others.push(value.to_owned());
            }
            "change-id" if found.change_id.is_none() => found.change_id = Some(value.to_owned()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(trailers: &[Trailer]) -> Vec<String> {
        let line = |t: &Trailer| format!("{}: {}", t.name, t.value);
        trailers.iter().map(line).collect()
    }

    #[test]
    fn trailers_of_a_message() {
        let message = "Note: this is text\n\nLink: https://x\n\nFixes: abc (\"x\")\nSigned-off-by: A <a@b>\n[a@c: fixed]\nCc: b@c\n\n";
        let expected = ["Fixes: abc (\"x\")", "Signed-off-by: A <a@b>", "Cc: b@c"];
        assert_eq!(told(&of_message(message)), expected);
    }

    #[test]
    fn replies_say_only_their_own() {
        let text = "On Thu, A wrote:\n> Reviewed-by: Q <q@x>\nReviewed-by: R <r@x>\ntested-by: no <x>\n\
                    Signed-off-by: no <x>\n-- \nAcked-by: no <x>\n";
        assert_eq!(told(&of_reply(text, Some("id"))), ["Reviewed-by: R <r@x>"]);
    }

    #[test]
    fn bases() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let text = format!(
            "x\nbase-commit: {id}\nprerequisite-patch-id: {id}\nchange-id: 2023-a\nbase-commit: HEAD\n"
        );
        let found = dependencies(&text);
        assert_eq!((found.base_commits.len(), found.patch_ids.len()), (1, 1));
        assert_eq!(found.change_id.as_deref(), Some("2023-a"));
    }
}
