//! Appending to the journal, against the bare write and sync of as many bytes.
#![allow(missing_docs)]

use std::fs::File;
use std::io::Write as _;

use klab_agent::journal::{Journal, Record};
use klab_testkit::bench::{compare, timed};

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut journal, _) = Journal::open(folder.path()).expect("a new journal");
    let mut bare = File::create(folder.path().join("bare")).expect("a file");
    let record = Record::Acked { seq: 1 };
    let path = folder.path().join("journal");
    journal.append(&record).expect("space on the disk");
    let line = std::fs::read(path).expect("the journal");
    compare(
        ("journal append", || timed(|| journal.append(&record))),
        ("write and fdatasync", || {
            timed(|| bare.write_all(&line).and_then(|()| bare.sync_data()))
        }),
        500,
    );
}
