//! The bytes of `/sys/kernel/notes`.
#![allow(clippy::unwrap_used, reason = "tests")]

use klab_kernel::notes::{Note, NotesError, build_id};
use klab_model::BuildId;

fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [name.len() as u32, desc.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    for part in [name, desc] {
        out.extend(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// `/sys/kernel/notes` of running Debian kernels: 6.12.117 riscv64, 6.1.0-57-cloud-amd64.
const RISCV64: &[u8] = include_bytes!("data/notes-riscv64");
const X86_64: &[u8] = include_bytes!("data/notes-x86_64");

#[test]
fn notes_of_running_kernels() {
    let id = |hex| Ok(BuildId::parse(hex).unwrap());
    assert_eq!(
        build_id(RISCV64),
        id("68e14006917f09905808299af2c40682b88bcf65")
    );
    assert_eq!(
        build_id(X86_64),
        id("01d2640d3a13145ee314eb05b155f141b7b7058b")
    );
}

#[test]
fn order_padding_and_other_owners_do_not_matter() {
    let id = BuildId::from_bytes(&[7; 20]).unwrap();
    let bytes = [
        note(b"Xen\0", 3, &[1; 8]),
        note(b"GNU\0", 5, &[2; 16]),
        note(b"Linux\0", 0x100, b"odd"),
        note(b"GNU\0", 3, &[7; 20]),
        note(b"GNU\0", 3, &[7; 20]),
        vec![0; 8],
    ]
    .concat();
    assert_eq!(build_id(&bytes), Ok(id));
}

#[test]
fn the_last_note_may_lack_its_padding() {
    let mut bytes = note(b"GNU\0", 3, &[7; 9]);
    bytes.truncate(12 + 4 + 9);
    assert_eq!(build_id(&bytes).unwrap().as_bytes(), [7; 9]);
}

#[test]
fn what_is_wrong_is_said() {
    assert_eq!(build_id(b""), Err(NotesError::Missing { notes: 0 }));
    let other = note(b"Xen\0", 3, &[1; 8]);
    assert_eq!(build_id(&other), Err(NotesError::Missing { notes: 1 }));
    let cut = &note(b"GNU\0", 3, &[7; 20])[..30];
    assert_eq!(build_id(cut), Err(NotesError::Truncated { at: 0, len: 30 }));
    let two = [note(b"GNU\0", 3, &[7; 20]), note(b"GNU\0", 3, &[8; 20])].concat();
    assert!(matches!(build_id(&two), Err(NotesError::Ambiguous { .. })));
    let short = note(b"GNU\0", 3, &[7; 2]);
    assert_eq!(build_id(&short), Err(NotesError::Size { len: 2 }));
    assert_eq!(Note::first(&[0xff; 40]), None);
}
