//! Steps of `make`, as its short log names them.

/// Steps that are done in every build, whatever changed.
const ALWAYS: [&str; 6] = ["CALL", "CHK", "DESCEND", "INSTALL", "STRIP", "DEPMOD"];

/// The file of a step: `  CC [M]  drivers/x.o` gives `drivers/x.o`. `None` for other lines.
pub(crate) fn step(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("  ")?;
    let (tag, rest) = rest.split_once(char::is_whitespace)?;
    let legal = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let starts = tag.starts_with(|c: char| c.is_ascii_uppercase());
    if tag.len() < 2 || !starts || !tag.bytes().all(legal) || ALWAYS.contains(&tag) {
        return None;
    }
    let rest = rest.trim_start();
    let file = rest.strip_prefix("[M]").unwrap_or(rest).trim();
    (!file.is_empty()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn steps_are_the_lines_of_the_short_log() {
        for (line, file) in [
            ("  CC      mm/madvise.o", Some("mm/madvise.o")),
            ("  CC [M]  drivers/x.o", Some("drivers/x.o")),
            (
                "  HOSTCC  scripts/kconfig/conf.o",
                Some("scripts/kconfig/conf.o"),
            ),
            ("  LD      vmlinux", Some("vmlinux")),
            (
                "  BUILD   arch/x86/boot/bzImage",
                Some("arch/x86/boot/bzImage"),
            ),
            ("  CALL    scripts/checksyscalls.sh", None),
            ("  INSTALL /x/lib/modules/6.1/kernel/a.ko", None),
            ("make[1]: Entering directory '/x'", None),
            ("mm/madvise.c:1:2: error: x", None),
            ("  395 |     x", None),
            ("      |     ^", None),
            ("", None),
        ] {
            assert_eq!(step(line), file, "{line}");
        }
    }
}
