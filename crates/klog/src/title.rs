//! Titles that are the same for the same fault.

use std::sync::LazyLock;

use regex::Regex;

use crate::message::regex;

/// What differs between two boots, and the word that stands for it.
static VOLATILE: LazyLock<[(Regex, &'static str); 8]> = LazyLock::new(|| {
    [
        // An offset into a function differs between builds.
        (
            regex(r"(?P<name>[A-Za-z_][\w.]*)\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?"),
            "$name",
        ),
        (regex(r"\b0x[0-9a-fA-F]+\b"), "ADDR"),
        (regex(r"\b[0-9a-f]{12,16}\b"), "ADDR"),
        (regex(r"(?i)\bCPU[#:]? ?\d+\b"), "CPU"),
        (regex(r"\bPID:? \d+\b"), "PID"),
        (regex(r"\b\d+(?:\.\d+)?(?: ?s| seconds)\b"), "TIME"),
        (regex(r"\[#\d+\](?: .*)?$"), ""),
        (regex(r"(?P<name>[\w./-]+):\d{2,}\]"), "$name]"),
    ]
});

const LONGEST: usize = 160;

pub(crate) fn title(text: &str) -> String {
    let mut title = text.trim().to_owned();
    for (what, word) in VOLATILE.iter() {
        title = what.replace_all(&title, *word).into_owned();
    }
    let title = title.trim_end_matches([' ', ':', ',']);
    title.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn what_differs_between_boots_goes() {
        for (text, expected) in [
            (
                "soft lockup - CPU#1 stuck for 26s! [kworker/1:2:123]",
                "soft lockup - CPU stuck for TIME! [kworker/1:2]",
            ),
            (
                "unable to handle page fault for address: ffffc90000a3b000",
                "unable to handle page fault for address: ADDR",
            ),
            (
                "kernel/sched/core.c:1234 foo",
                "kernel/sched/core.c:1234 foo",
            ),
            ("Oops: 0002 [#1] PREEMPT SMP", "Oops: 0002"),
            (
                "KASAN: slab-use-after-free in kfree_skb.part.0+0x4c/0x110",
                "KASAN: slab-use-after-free in kfree_skb.part.0",
            ),
        ] {
            assert_eq!(title(text), expected);
        }
    }
}
