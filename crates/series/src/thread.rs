//! Threads: mails that are linked through Message-IDs, also of mails that are missing.

use std::collections::BTreeMap;

use crate::classify::Classified;

/// For each mail the number of its thread. Mails without any Message-ID, as git writes
/// them into files, are one thread.
pub(crate) fn threads(mails: &[Classified]) -> Vec<usize> {
    let mut sets = Sets::default();
    let unnamed = sets.node("");
    let mut nodes = Vec::with_capacity(mails.len());
    for Classified { mail, .. } in mails {
        let id = mail.place.message_id.as_deref();
        let mut ids = id
            .into_iter()
            .chain(mail.parents.iter().map(String::as_str));
        let first = ids.next().map_or(unnamed, |id| sets.node(id));
        for id in ids {
            let node = sets.node(id);
            sets.join(first, node);
        }
        nodes.push(first);
    }
    nodes.into_iter().map(|node| sets.find(node)).collect()
}

/// Disjoint sets of Message-IDs.
#[derive(Default)]
struct Sets {
    nodes: BTreeMap<String, usize>,
    above: Vec<usize>,
}

impl Sets {
    fn node(&mut self, id: &str) -> usize {
        if let Some(node) = self.nodes.get(id) {
            return *node;
        }
        let node = self.above.len();
        self.above.push(node);
        self.nodes.insert(id.to_owned(), node);
        node
    }

    fn find(&mut self, mut node: usize) -> usize {
        while self.above[node] != node {
            // Each look shortens the way for the next one.
            self.above[node] = self.above[self.above[node]];
            node = self.above[node];
        }
        node
    }

    fn join(&mut self, one: usize, two: usize) {
        let (one, two) = (self.find(one), self.find(two));
        self.above[one] = two;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::Mail;
    use crate::mbox::RawMail;
    use crate::place::Place;

    #[test]
    fn mails_are_linked_through_missing_ones() {
        let mail = |id: &str, references: &str| {
            let bytes = format!("Subject: a\nMessage-ID: <{id}>\nReferences: {references}\n\nx\n");
            let place = Place::new("m", 1, 1);
            let raw = RawMail {
                place,
                bytes: bytes.into_bytes(),
                ordered: false,
            };
            Classified::new(Mail::read(raw).expect("a mail"))
        };
        let mails = [
            mail("a@x", "<missing@x>"),
            mail("b@x", "<missing@x> <c@x>"),
            mail("d@x", "<e@x>"),
            mail("c@x", ""),
        ];
        let threads = threads(&mails);
        assert_eq!((threads[0], threads[0]), (threads[1], threads[3]));
        assert_ne!(threads[0], threads[2]);
    }
}
