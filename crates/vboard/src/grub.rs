//! GRUB on a virtual board: the texts, the environment block and the embedded core image.
//!
//! One-shot contract: `next_entry=ID` in `/boot/grub/grubenv` names the entry of the next boot.
//! GRUB clears it on disk before the kernel starts; if it cannot, it boots the known-good kernel.
//! The candidate's `menuentry` is in `/boot/klab/candidate.cfg`.

use std::path::{Path, PathBuf};

use crate::{CMDLINE, Error, Result};

/// Id of the default entry, which is never changed.
pub const KNOWN_GOOD: &str = "known-good";

/// Id of the candidate's entry, the value for `next_entry`.
pub const CANDIDATE: &str = "klab-candidate";

/// Size of a GRUB environment block in bytes; GRUB refuses any other.
pub const GRUBENV_SIZE: usize = 1024;

/// First line of every GRUB environment block.
const GRUBENV_HEAD: &str = "# GRUB Environment Block\n";

/// The first sector of GRUB for BIOS machines, from Debian's grub-pc-bin.
pub(crate) const BOOT_IMG: &str = "/usr/lib/grub/i386-pc/boot.img";

/// Folder of GRUB's modules for BIOS machines.
pub(crate) const MODULE_DIR: &str = "/usr/lib/grub/i386-pc";

/// Modules in the core image: what grub.cfg and candidate snippets may use.
pub(crate) const MODULES: [&str; 16] = [
    "biosdisk",
    "part_gpt",
    "fat",
    "normal",
    "linux",
    "boot",
    "loadenv",
    "test",
    "true",
    "echo",
    "serial",
    "terminal",
    "configfile",
    "reboot",
    "sleep",
    "halt",
];

/// First sector of the BIOS boot partition, where the core image lies.
pub(crate) const CORE_SECTOR: u64 = 2048;

/// The board's grub.cfg.
pub(crate) fn config() -> String {
    include_str!("files/grub.cfg").replace("@KNOWN_GOOD_CMDLINE@", CMDLINE)
}

/// A GRUB environment block with the given variables.
///
/// # Errors
/// [`Error::Grub`] if a name or value has a line break or the block would be too large.
pub fn grubenv(variables: &[(&str, &str)]) -> Result<Vec<u8>> {
    let bad = |problem: String| Error::Grub {
        what: "grubenv".to_owned(),
        problem,
    };
    let mut block = GRUBENV_HEAD.to_owned();
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\n', '#']) || value.contains(['\n', '\\']) {
            return Err(bad(format!("{name:?}={value:?} does not fit on one line")));
        }
        block += &format!("{name}={value}\n");
    }
    if block.len() > GRUBENV_SIZE {
        return Err(bad(format!(
            "{} bytes, expected at most {GRUBENV_SIZE}",
            block.len()
        )));
    }
    let mut block = block.into_bytes();
    block.resize(GRUBENV_SIZE, b'#');
    Ok(block)
}

/// The candidate's menu entry, for `/boot/klab/candidate.cfg`.
///
/// `slot` is the folder below `/boot/klab`. An image that GRUB cannot load restarts the board,
/// which then boots the known-good kernel, because the one-shot choice is used up.
#[must_use]
pub fn candidate_snippet(slot: &str, cmdline: &str, initrd: bool) -> String {
    let boot = if initrd {
        format!("    if initrd /klab/{slot}/initrd; then\n      boot\n    fi\n")
    } else {
        "    boot\n".to_owned()
    };
    format!(
        "menuentry \"{CANDIDATE}\" --id {CANDIDATE} {{\n  if linux /klab/{slot}/vmlinuz {cmdline}; then\n\
         {boot}  fi\n  echo \"klab: the candidate cannot be loaded, restarting\"\n  reboot\n}}\n"
    )
}

/// Writes boot sector and core image into a disk image whose BIOS boot partition starts at
/// [`CORE_SECTOR`]. The offsets are those of GRUB's `boot.S` and `diskboot.S` (version 2.06):
/// kernel sector at 0x5c, drive check at 0x66 and 0x67, first block list entry at 0x1f4.
pub(crate) fn embed(boot: &[u8], core: &[u8], room: u64) -> Result<(Vec<u8>, Vec<u8>)> {
    let bad = |what: &str, problem: String| Error::Grub {
        what: what.to_owned(),
        problem,
    };
    if boot.len() != 512 || boot[510..] != [0x55, 0xaa] {
        return Err(bad(
            BOOT_IMG,
            format!("{} bytes, expected a 512 byte boot sector", boot.len()),
        ));
    }
    if core.len() < 1024 || core.len() as u64 > room {
        return Err(bad(
            "core.img",
            format!("{} bytes, expected 1024 to {room}", core.len()),
        ));
    }
    let (mut boot, mut core) = (boot.to_vec(), core.to_vec());
    boot[0x5c..0x64].copy_from_slice(&CORE_SECTOR.to_le_bytes());
    boot[0x66..0x68].copy_from_slice(&[0x90, 0x90]);
    // Code ends where the disk signature and the partition table begin.
    boot.truncate(0x1b8);
    core[0x1f4..0x1fc].copy_from_slice(&(CORE_SECTOR + 1).to_le_bytes());
    Ok((boot, core))
}

/// Makes the loader's files in `scratch`; each with its place on the boot partition.
pub(crate) fn files(scratch: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let (file, env) = (scratch.join("grub.cfg"), scratch.join("grubenv"));
    std::fs::write(&file, config()).map_err(Error::io("write", &file))?;
    std::fs::write(&env, grubenv(&[])?).map_err(Error::io("write", &env))?;
    Ok(vec![(file, "::grub/grub.cfg"), (env, "::grub/grubenv")])
}

/// Makes the core image with grub-mkimage and returns it.
pub(crate) fn core_image(scratch: &Path) -> Result<Vec<u8>> {
    let out = scratch.join("core.img");
    let mut command = crate::command::tool("grub-mkimage");
    command
        .args([
            "-O",
            "i386-pc",
            "-d",
            MODULE_DIR,
            "-p",
            "(hd0,gpt2)/grub",
            "-o",
        ])
        .arg(&out);
    crate::command::run(command.args(MODULES))?;
    std::fs::read(&out).map_err(Error::io("read", &out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grubenv_is_exactly_one_block() {
        let block = grubenv(&[("next_entry", CANDIDATE)]).expect("fits");
        assert_eq!(block.len(), GRUBENV_SIZE);
        let text = String::from_utf8(block).expect("ASCII");
        assert!(text.starts_with("# GRUB Environment Block\nnext_entry=klab-candidate\n####"));
    }

    #[test]
    fn grubenv_refuses_what_grub_could_not_read_back() {
        assert!(grubenv(&[("a", "b\nc=d")]).is_err());
        assert!(grubenv(&[("a=b", "c")]).is_err());
        assert!(grubenv(&[("a", &"x".repeat(1000))]).is_err());
    }

    #[test]
    fn the_choice_is_cleared_before_it_is_followed() {
        let text = config();
        let cleared = text.find("if save_env next_entry; then").expect("cleared");
        let followed = text.find("set default=\"${once}\"").expect("followed");
        assert!(cleared < followed);
        assert!(!text.contains('@'), "a placeholder is left in:\n{text}");
        // An unknown id boots the first entry, so this must be the known-good one.
        assert!(
            text.find("menuentry").expect("entry") < text.find("candidate.cfg").expect("snippet")
        );
    }

    #[test]
    fn a_candidate_that_does_not_load_restarts() {
        assert_eq!(
            candidate_snippet("a", "root=/dev/vda3 ro", true),
            "menuentry \"klab-candidate\" --id klab-candidate {\n  if linux /klab/a/vmlinuz root=/dev/vda3 ro; then\n    \
             if initrd /klab/a/initrd; then\n      boot\n    fi\n  fi\n  \
             echo \"klab: the candidate cannot be loaded, restarting\"\n  reboot\n}\n"
        );
        assert!(!candidate_snippet("a", "", false).contains("initrd"));
    }

    #[test]
    fn embedding_points_at_the_core_image() {
        let mut boot = vec![0u8; 512];
        boot[510..].copy_from_slice(&[0x55, 0xaa]);
        let (boot, core) = embed(&boot, &[0; 2048], 1 << 20).expect("fits");
        assert_eq!(
            (boot.len(), &boot[0x5c..0x64]),
            (0x1b8, &2048u64.to_le_bytes()[..])
        );
        assert_eq!(core[0x1f4..0x1fc], 2049u64.to_le_bytes());
        assert!(embed(&[0; 512], &[0; 2048], 1 << 20).is_err());
        let mut signed = vec![0u8; 512];
        signed[510..].copy_from_slice(&[0x55, 0xaa]);
        assert!(embed(&signed, &[0; 4096], 2048).is_err());
    }
}
