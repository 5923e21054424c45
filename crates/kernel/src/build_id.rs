//! Finding the kernel's own GNU build-id in a vmlinux or in a flat image.
//!
//! A flat `Image` has no section table, only bytes. Besides the kernel's build-id it holds
//! those of the ELF files embedded in it: the vDSOs and the kexec purgatory. Two facts tell
//! them apart: the kernel's note lies outside every embedded ELF file, and the notes after
//! it are those of `init/version.c` (owner `Linux`, types 0x100 build salt and 0x101 LTO
//! info) without the version-code note (type 0) that marks a vDSO.

use std::ops::Range;

use klab_model::BuildId;
use memchr::memmem;
use object::elf;
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use crate::notes::{self, Note};

/// Note types of the owner `Linux`: `include/linux/elfnote.h`, `elfnote-lto.h`, `build-salt.h`.
const LINUX_VERSION_CODE: u32 = 0;
const LINUX_BUILD_SALT: u32 = 0x100;
const LINUX_LTO_INFO: u32 = 0x101;
/// Distance from a note's start to its name: three words.
const NAME_AT: usize = 12;
/// Notes that are looked at after a build-id; a kernel has fewer than ten.
const RUN: usize = 32;

/// What a search gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Search {
    Found(BuildId),
    None,
    Ambiguous(usize),
}

/// Reads the build-id from the notes of an ELF file, 64-bit little-endian.
///
/// # Errors
/// `object`'s error when the file is damaged.
pub(crate) fn in_elf<'data, R: ReadRef<'data>>(data: R) -> object::read::Result<Search> {
    let header = elf::FileHeader64::<object::LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let mut found = Vec::new();
    for section in header.section_headers(endian, data)? {
        if section.sh_type(endian) == elf::SHT_NOTE {
            note_id(section.data(endian, data)?, &mut found);
        }
    }
    if found.is_empty() {
        for segment in header.program_headers(endian, data)? {
            if segment.p_type(endian) == elf::PT_NOTE
                && let Ok(bytes) = segment.data(endian, data)
            {
                note_id(bytes, &mut found);
            }
        }
    }
    Ok(only(found))
}

fn note_id(bytes: &[u8], found: &mut Vec<BuildId>) {
    if let Ok(id) = notes::build_id(bytes)
        && !found.contains(&id)
    {
        found.push(id);
    }
}

fn only(mut found: Vec<BuildId>) -> Search {
    match found.len() {
        0 => Search::None,
        1 => Search::Found(found.remove(0)),
        n => Search::Ambiguous(n),
    }
}

/// Searches the bytes of a flat image.
pub(crate) fn in_flat_image(image: &[u8]) -> Search {
    let embedded = embedded_elfs(image);
    let mut outside: Vec<(BuildId, bool)> = Vec::new();
    for name_at in memmem::find_iter(image, b"GNU\0") {
        let Some(at) = name_at.checked_sub(NAME_AT) else {
            continue;
        };
        if embedded.iter().any(|elf| elf.contains(&at)) {
            continue;
        }
        let Some((note, _)) = Note::first(&image[at..]) else {
            continue;
        };
        // Every linker option that names a hash gives 8 to 20 bytes; more is chance.
        if !note.is_build_id() || note.desc.len() > 20 {
            continue;
        }
        if let Ok(id) = BuildId::from_bytes(note.desc) {
            let kernel = followed_by_kernel_notes(&image[at..]);
            match outside.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => *known |= kernel,
                None => outside.push((id, kernel)),
            }
        }
    }
    if outside.len() > 1 {
        let all = outside.len();
        outside.retain(|(_, kernel)| *kernel);
        if outside.len() != 1 {
            return Search::Ambiguous(all);
        }
    }
    only(outside.into_iter().map(|(id, _)| id).collect())
}

/// Whether the notes that start here hold those of `init/version.c` and no vDSO's.
fn followed_by_kernel_notes(mut bytes: &[u8]) -> bool {
    let mut kernel = false;
    for _ in 0..RUN {
        let Some((note, next)) = Note::first(bytes) else {
            break;
        };
        let named = !note.name.is_empty() && note.name.iter().all(u8::is_ascii_graphic);
        if !named {
            break;
        }
        match (note.name, note.kind) {
            (b"Linux", LINUX_VERSION_CODE) => return false,
            (b"Linux", LINUX_BUILD_SALT | LINUX_LTO_INFO) => kernel = true,
            _ => {}
        }
        bytes = &bytes[next..];
    }
    kernel
}

/// Byte ranges of the ELF files inside an image, as their own headers give them.
fn embedded_elfs(image: &[u8]) -> Vec<Range<usize>> {
    memmem::find_iter(image, b"\x7fELF")
        .filter_map(|at| {
            let rest = &image[at..];
            let end = match rest.get(4..7)? {
                [1, 1, 1] => extent::<elf::FileHeader32<object::LittleEndian>>(rest),
                [2, 1, 1] => extent::<elf::FileHeader64<object::LittleEndian>>(rest),
                _ => None,
            }?;
            Some(at..at.checked_add(end)?)
        })
        .collect()
}

/// Length of the ELF file at the start of `bytes`; `None` if it is none or does not fit.
fn extent<H: FileHeader>(bytes: &[u8]) -> Option<usize> {
    let header = H::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.section_headers(endian, bytes).ok()?;
    let table: u64 = header.e_shoff(endian).into();
    let table = table.checked_add(size_of_val(sections) as u64)?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let ends = segments.iter().map(|segment| {
        let (start, len): (u64, u64) = (
            segment.p_offset(endian).into(),
            segment.p_filesz(endian).into(),
        );
        start.saturating_add(len)
    });
    let end = usize::try_from(ends.chain([table]).max()?).ok()?;
    (end <= bytes.len()).then_some(end)
}
