//! Subjects: `[PATCH net-next v3 1/2] mm: ...` to revision, number, total and tags.

/// Bytes of a word of the prefix that is looked into.
const MAX_WORD: usize = 64;

/// What a subject begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// The mail itself.
    None,
    /// `Re:`.
    Reply,
    /// `Fwd:`.
    Forward,
}

/// `n/m` of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the patch; 0 is the cover letter.
    pub number: u32,
    /// Patches in the series.
    pub total: u32,
}

/// A subject, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The subject without its prefix.
    pub title: String,
    /// 1 if no `v2` says otherwise.
    pub revision: u32,
    /// `n/m`.
    pub position: Option<Position>,
    /// The prefix says PATCH or has a number.
    pub patch: bool,
    /// Asks for comments.
    pub rfc: bool,
    /// Sent once more, unchanged.
    pub resend: bool,
    /// Other words of the prefix: `net-next`, `-next`, `mm`.
    pub tags: Vec<String>,
    /// Reply or forward.
    pub lead: Lead,
}

impl Subject {
    /// Takes a decoded subject apart; every text is a subject.
    pub fn parse(text: &str) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (lead, mut rest) = lead(&text);
        let mut subject = Self {
            title: String::new(),
            revision: 1,
            position: None,
            patch: false,
            rfc: false,
            resend: false,
            tags: Vec::new(),
            lead,
        };
        // A group that says nothing about patches belongs to the title, except before
        // one that does: lists put their own name in front.
        let mut pending: Vec<String> = Vec::new();
        let mut title = rest;
        while let Some((group, after)) = bracket_group(rest) {
            // A commit's own subject may look like a prefix; git's number comes before it.
            if subject.position.is_some() {
                break;
            }
            let mut words = Words::default();
            group
                .split([' ', ',', ';'])
                .filter(|word| !word.is_empty())
                .for_each(|word| words.take(word));
            rest = after;
            if words.says_something() {
                subject.tags.append(&mut pending);
                subject.tags.append(&mut words.tags);
                subject.accept(&words);
                title = rest;
            } else {
                pending.append(&mut words.tags);
            }
        }
        subject.title = title.to_owned();
        subject
    }

    fn accept(&mut self, words: &Words) {
        self.revision = words.revision.unwrap_or(self.revision);
        self.position = words.position.or(self.position);
        self.patch |= words.patch || words.position.is_some();
        self.rfc |= words.rfc;
        self.resend |= words.resend;
    }
}

/// `Re: `, `Fwd: ` and what mail programs in other languages write, taken off the front.
fn lead(text: &str) -> (Lead, &str) {
    const REPLIES: [&str; 6] = ["re", "aw", "sv", "vs", "antw", "回复"];
    const FORWARDS: [&str; 4] = ["fwd", "fw", "wg", "转发"];
    let mut found = Lead::None;
    let mut rest = text.trim_start();
    while let Some((word, after)) = rest.split_once([':', '：']) {
        let word = word.trim_end().to_lowercase();
        // Re[2]:
        let word = word.split('[').next().unwrap_or_default();
        let lead = if REPLIES.contains(&word) {
            Lead::Reply
        } else if FORWARDS.contains(&word) {
            Lead::Forward
        } else {
            break;
        };
        if found == Lead::None {
            found = lead;
        }
        rest = after.trim_start();
    }
    (found, rest)
}

fn bracket_group(text: &str) -> Option<(&str, &str)> {
    let (group, after) = text.strip_prefix('[')?.split_once(']')?;
    Some((group, after.trim_start()))
}

/// What the words of one bracket group say.
#[derive(Default)]
struct Words {
    revision: Option<u32>,
    position: Option<Position>,
    patch: bool,
    rfc: bool,
    resend: bool,
    tags: Vec<String>,
}

impl Words {
    fn says_something(&self) -> bool {
        self.patch || self.rfc || self.resend || self.revision.is_some() || self.position.is_some()
    }

    /// Reads one word, which may be several that lost their blanks: `PATCHv2`, `RFC/PATCH`.
    fn take(&mut self, word: &str) {
        if word.len() > MAX_WORD {
            self.tags.push(word.to_owned());
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            rest = match self.take_front(rest) {
                Some(after) => after.trim_start_matches(['/', ':']),
                None => {
                    self.tags.push(rest.to_owned());
                    return;
                }
            };
        }
    }

    fn take_front<'a>(&mut self, word: &'a str) -> Option<&'a str> {
        if let Some(revision) = revision(word) {
            self.revision = Some(revision);
            return Some("");
        }
        if let Some(position) = position(word) {
            self.position = Some(position);
            return Some("");
        }
        let (after, flag) = if let Some(after) = keywords(word, &["PATCHES", "PATCH"]) {
            (after, &mut self.patch)
        } else if let Some(after) = keywords(word, &["RESEND", "REPOST"]) {
            (after, &mut self.resend)
        } else {
            (keyword(word, "RFC")?, &mut self.rfc)
        };
        *flag = true;
        Some(after)
    }
}

fn keywords<'a>(word: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| keyword(word, name))
}

/// The rest of a word after a keyword, if the keyword ends there.
fn keyword<'a>(word: &'a str, name: &str) -> Option<&'a str> {
    let front = word.get(..name.len())?;
    // Before anything looks further: what follows is looked at for a whole keyword only.
    if !front.eq_ignore_ascii_case(name) {
        return None;
    }
    let after = &word[name.len()..];
    let ends = after.is_empty()
        || after.starts_with(['/', '-', ':'])
        || revision(after).is_some()
        || position(after).is_some()
        || keywords(after, &["RFC", "PATCH", "RESEND"]).is_some();
    ends.then_some(after)
}

/// `v2`, `V2`, `v2.1` (a second try at some of its patches).
fn revision(word: &str) -> Option<u32> {
    let digits = word.strip_prefix(['v', 'V'])?;
    let (digits, minor) = digits.split_once('.').unwrap_or((digits, "0"));
    number(minor)?;
    number(digits).filter(|revision| *revision > 0)
}

fn position(word: &str) -> Option<Position> {
    let (number_text, total) = word.split_once('/')?;
    // What is too large for a number is too large for a series, and refused as that.
    let saturated = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u32::MAX))
    };
    Some(Position {
        number: saturated(number_text)?,
        total: saturated(total)?,
    })
}

/// A number of ASCII digits only: `parse` alone takes a sign, too.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `title|revision|n/m|flags|tags`
    fn told(text: &str) -> String {
        let s = Subject::parse(text);
        let position = s.position.map(|p| format!("{}/{}", p.number, p.total));
        let mut flags = String::new();
        let lead = [(s.lead == Lead::Reply, "R"), (s.lead == Lead::Forward, "F")];
        for (set, flag) in [(s.patch, "p"), (s.rfc, "c"), (s.resend, "s")]
            .into_iter()
            .chain(lead)
        {
            if set {
                flags.push_str(flag);
            }
        }
        let position = position.unwrap_or_default();
        format!(
            "{}|{}|{position}|{flags}|{}",
            s.title,
            s.revision,
            s.tags.join(" ")
        )
    }

    #[test]
    fn prefixes_of_the_lists() {
        for (text, expected) in [
            ("[PATCH v2 3/8] mm: a", "mm: a|2|3/8|p|"),
            ("[PATCH V2 3/8] mm: a", "mm: a|2|3/8|p|"),
            ("[PATCH1/8] mm: a", "mm: a|1|1/8|p|"),
            ("[PATCH v6,19/24] a", "a|6|19/24|p|"),
            ("[v6,19/24] a", "a|6|19/24|p|"),
            ("[PATCHv3 1/2] a", "a|3|1/2|p|"),
            ("[PATCHV3] a", "a|3||p|"),
            ("[RFC PATCH] a", "a|1||pc|"),
            ("[RFC/PATCH 1/2] a", "a|1|1/2|pc|"),
            ("[PATCH/RFC v2] a", "a|2||pc|"),
            ("[RFC v4 2/3] a", "a|4|2/3|pc|"),
            ("[PATCH RESEND v2 1/2] a", "a|2|1/2|ps|"),
            ("[RESEND][PATCH v2 1/2] a", "a|2|1/2|ps|"),
            ("[PATCH net-next v3 1/2] net: a", "net: a|3|1/2|p|net-next"),
            ("[PATCH -next v3] a", "a|3||p|-next"),
            ("[PATCH-next] a", "a|1||p|-next"),
            ("[PATCH 6.1 012/200] a", "a|1|12/200|p|6.1"),
            ("[PATCH 0/3] a", "a|1|0/3|p|"),
            ("[netdev] [PATCH 1/3] a", "a|1|1/3|p|netdev"),
            ("[PATCH 1/3] [media] a", "[media] a|1|1/3|p|"),
            ("[PATCH 1/3] [RFC v2 7/9] a", "[RFC v2 7/9] a|1|1/3|p|"),
            ("[PATCH v2.1 3/8] a", "a|2|3/8|p|"),
            ("Re: [PATCH v2 3/8] a", "a|2|3/8|pR|"),
            ("RE: Re[2]: [PATCH] a", "a|1||pR|"),
            ("Fwd: [PATCH] a", "a|1||pF|"),
            ("[patch 1/2] a", "a|1|1/2|p|"),
            ("[PATCH  v2\n 1/2] a\n b", "a b|2|1/2|p|"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_is_read_in_one_pass() {
        // Trying every keyword at every place would take 3^15 steps for each of these.
        let started = std::time::Instant::now();
        for (word, flags) in [
            (format!("PA{}TCH", "x".repeat(58)), "||"),
            ("RFCPATCHRESEND".repeat(4), "|pcs|"),
        ] {
            let told = told(&format!("[{word}] a {}", format!("[{word}]").repeat(100)));
            assert!(told.ends_with(flags), "{told}");
        }
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn words_that_only_look_like_a_prefix() {
        for (text, expected) in [
            ("mm: fix x", "mm: fix x|1|||"),
            ("[RFCOMM] a", "[RFCOMM] a|1|||"),
            ("[ANNOUNCE] 6.1-rt", "[ANNOUNCE] 6.1-rt|1|||"),
            ("[PATCH 1/x] a", "a|1||p|1/x"),
            ("[PATCH +1/2] a", "a|1||p|+1/2"),
            ("[PATCH v0] a", "a|1||p|v0"),
            ("[PATCH v99999999999] a", "a|1||p|v99999999999"),
            ("[PATCH a", "[PATCH a|1|||"),
            ("", "|1|||"),
            ("Re:", "|1||R|"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }
}
