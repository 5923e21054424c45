//! U-Boot on a virtual board: firmware, boot script and the known-good entry.
//!
//! One-shot contract: the file `/boot/klab/next` makes the next boot that of
//! `/boot/klab/candidate.conf`, an extlinux entry. U-Boot deletes the file before it starts
//! the candidate; if it cannot, it boots the known-good kernel.

use std::path::{Path, PathBuf};

use crate::command::{run, tool};
use crate::{CMDLINE, Error, Result};

/// What starts U-Boot: OpenSBI, from Debian's opensbi.
pub(crate) const OPENSBI: &str = "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin";

/// U-Boot for QEMU's `virt`, from Debian's u-boot-qemu.
pub(crate) const UBOOT: &str = "/usr/lib/u-boot/qemu-riscv64_smode/uboot.elf";

/// The part of the script that every board with U-Boot has.
const ONE_SHOT: &str = include_str!("../../../configs/boot/uboot.cmd");

/// What follows on a virtual board, where no other default is.
const KNOWN_GOOD: &str = "\
sysboot ${devtype} ${devnum}:${distro_bootpart} any ${pxefile_addr_r} /known-good/extlinux.conf
echo \"klab: the known-good kernel cannot be loaded, restarting\"
sleep 5
reset
";

/// The boot script's source.
pub(crate) fn script() -> String {
    format!("{ONE_SHOT}\n{KNOWN_GOOD}")
}

/// The extlinux file of the known-good kernel.
fn known_good() -> String {
    format!(
        "default known-good\nlabel known-good\n  kernel /known-good/vmlinuz\n  \
         initrd /known-good/initrd\n  append {CMDLINE}\n"
    )
}

/// Makes the loader's files in `scratch`; each with its place on the boot partition.
pub(crate) fn files(scratch: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let (source, image) = (scratch.join("boot.cmd"), scratch.join("boot.scr"));
    let entry = scratch.join("extlinux.conf");
    std::fs::write(&source, script()).map_err(Error::io("write", &source))?;
    std::fs::write(&entry, known_good()).map_err(Error::io("write", &entry))?;
    run(tool("mkimage")
        .args([
            "-q", "-A", "riscv", "-T", "script", "-C", "none", "-n", "klab",
        ])
        .arg("-d")
        .arg(&source)
        .arg(&image))?;
    Ok(vec![
        (image, "::boot.scr"),
        (entry, "::known-good/extlinux.conf"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_taken_back_before_it_is_followed() {
        let text = script();
        let place = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}:\n{text}"))
        };
        let taken = place("fatrm ${devtype} ${devnum}:${distro_bootpart} /klab/next");
        let followed = place("/klab/candidate.conf");
        let gives_up = place("\n    reset\n");
        let known_good = place("/known-good/extlinux.conf");
        assert!(taken < followed && followed < gives_up && gives_up < known_good);
    }
}
