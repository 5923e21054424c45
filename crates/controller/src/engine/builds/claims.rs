//! Who builds which key: what two builds want at once is built by one of them.

use std::collections::HashMap;

use klab_model::{BuildRef, Digest};

use super::Asked;

/// What to say to somebody who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is theirs to build.
    Granted,
    /// Another attempt builds it; they hear of it.
    Waits,
}

/// The keys that are being built, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Claims {
    held: HashMap<Digest, BuildRef>,
    waiting: Vec<Asked>,
}

impl Claims {
    /// Somebody is about to build a key that the lab does not have.
    pub(super) fn ask(&mut self, asked: Asked) -> Claim {
        match self.held.get(&asked.key) {
            Some(holder) if *holder != asked.at => {
                self.waiting.push(asked);
                Claim::Waits
            }
            _ => {
                self.held.insert(asked.key, asked.at);
                Claim::Granted
            }
        }
    }

    /// A key is built, or will not be by this attempt: those who waited for it.
    pub(super) fn release(&mut self, at: BuildRef, key: &Digest) -> Vec<Asked> {
        if self.held.get(key) != Some(&at) {
            return Vec::new();
        }
        self.held.remove(key);
        self.take_waiting(|asked| asked.key == *key)
    }

    /// An attempt is over: those who waited for any of its keys.
    pub(super) fn end(&mut self, at: BuildRef) -> Vec<Asked> {
        self.take_waiting(|asked| asked.at == at);
        let keys: Vec<Digest> = self
            .held
            .iter()
            .filter(|(_, holder)| **holder == at)
            .map(|(key, _)| *key)
            .collect();
        keys.iter().flat_map(|key| self.release(at, key)).collect()
    }

    fn take_waiting(&mut self, wanted: impl Fn(&Asked) -> bool) -> Vec<Asked> {
        let (taken, left) = self.waiting.drain(..).partition(wanted);
        self.waiting = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use klab_model::Fence;

    use super::*;

    fn asked(fence: u64, key: &[u8]) -> Asked {
        let build = "01936f4e-0000-7000-8000-000000000007".parse();
        Asked {
            at: BuildRef {
                build: build.expect("a legal id"),
                attempt: 1,
                fence: Fence(fence),
            },
            index: 0,
            key: Digest::of(key),
        }
    }

    #[test]
    fn one_builds_and_the_others_hear_of_it() {
        let mut claims = Claims::default();
        let (first, second, other) = (asked(1, b"k"), asked(2, b"k"), asked(2, b"other"));
        assert_eq!(claims.ask(first), Claim::Granted);
        assert_eq!(claims.ask(first), Claim::Granted, "asked again by itself");
        assert_eq!(claims.ask(second), Claim::Waits);
        assert_eq!(claims.ask(other), Claim::Granted);
        assert_eq!(claims.release(second.at, &first.key), [], "not theirs");
        assert_eq!(claims.release(first.at, &first.key), [second]);
        assert_eq!(claims.release(first.at, &first.key), [], "once");
    }

    #[test]
    fn an_attempt_that_ends_lets_go_of_everything() {
        let mut claims = Claims::default();
        let (first, second, third) = (asked(1, b"k"), asked(2, b"k"), asked(3, b"k"));
        for asked in [first, second, third] {
            claims.ask(asked);
        }
        assert_eq!(claims.end(second.at), []);
        assert_eq!(claims.end(first.at), [third]);
        assert_eq!(claims.ask(third), Claim::Granted);
    }
}
