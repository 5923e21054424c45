//! Guesses what a mistyped word was meant to be.

/// The word of `known` that is closest to `found`, if any is close enough to be likely.
pub(crate) fn nearest<'k>(
    found: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    // Nothing that klab knows by name is longer, and the measure takes quadratic time.
    if found.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let found = plain(found);
    // A third of the letters may be wrong: one in `boot`, three in `time-limit`.
    let limit = (found.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&found, &plain(word)), word))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_is_likely_and_nothing_else() {
        let known = ["name", "command", "time-limit", "trials"];
        for (found, expected) in [
            ("time_limit", Some("time-limit")),
            ("timelimit", Some("time-limit")),
            ("Command", Some("command")),
            ("comand", Some("command")),
            ("trails", Some("trials")),
            ("nmae", Some("name")),
            ("retries", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, known), expected, "{found}");
        }
        assert_eq!(nearest(&"n".repeat(100_000), known), None);
    }
}
