//! How reports begin.
//!
//! The texts are those of the kernel's own sources: kernel/panic.c, kernel/watchdog.c,
//! kernel/hung_task.c, kernel/rcu/tree_stall.h, kernel/locking/lockdep.c, lib/ubsan.c,
//! mm/kasan/report.c, mm/oom_kill.c, arch/*/mm/fault.c, arch/*/kernel/traps.c.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::Kind;
use crate::message::regex;
use crate::title::title;

/// A kind, how its first message looks, and its title with the captures of that.
type Rule = (Kind, &'static str, &'static str);

/// The first one that fits counts.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    (Kind::NoRoot, r"^(?P<t>VFS: (?:Unable to mount root fs|Cannot open root device).*)", "$t"),
    (Kind::Panic, r"^Kernel panic - not syncing: ?(?P<t>.*)", "$t"),
    (Kind::Panic, r"^---\[ end Kernel panic - not syncing: ?(?P<t>.*?)(?: \]---)?$", "$t"),
    (Kind::Sanitizer, r"^BUG: (?P<t>(?:KASAN|KMSAN|KCSAN|KFENCE): .*)", "$t"),
    (Kind::Undefined, r"^UBSAN: (?P<t>.*)", "$t"),
    (Kind::SoftLockup, r"^(?:watchdog: |NMI watchdog: )?BUG: (?P<t>soft lockup - .*)", "$t"),
    (Kind::HardLockup, r"^(?:watchdog: |NMI watchdog: )?(?:Watchdog detected |BUG: )?(?P<t>hard LOCKUP on cpu)", "$t"),
    (Kind::HardLockup, r"^(?:watchdog: )?(?P<t>CPU\d+: Watchdog detected hard LOCKUP)", "$t"),
    (Kind::RcuStall, r"^(?:rcu: )?INFO: (?P<t>rcu\w* (?:self-)?detected (?:expedited )?stalls?)\b", "$t"),
    (Kind::RcuStall, r"^(?:rcu: )?(?P<t>rcu\w* kthread (?:starved|timer wakeup))", "$t"),
    (Kind::HungTask, r"^INFO: task (?P<n>\S+?):\d+ (?:<.*> )?blocked (?:in I/O wait )?for more than \d+ seconds", "task $n blocked"),
    (Kind::WorkqueueLockup, r"^BUG: (?P<t>workqueue lockup)", "$t"),
    (Kind::Lockdep, r"^(?:WARNING: )?(?P<t>possible (?:circular locking dependency|recursive locking|irq lock inversion dependency) detected.*)", "$t"),
    (Kind::Lockdep, r"^(?:WARNING: )?(?P<t>inconsistent (?:\{\S+\} -> \{\S+\} usage|lock state).*)", "$t"),
    (Kind::Lockdep, r"^(?:WARNING: )?(?P<t>(?:suspicious RCU usage|bad unlock balance detected|Nested lock was not taken|\S+-safe -> \S+-unsafe lock order detected|lock held when returning to user space).*)", "$t"),
    (Kind::Lockdep, r"^BUG: (?P<t>Invalid wait context|MAX_LOCK_DEPTH too low|MAX_LOCKDEP_\w+ too low).*", "$t"),
    (Kind::Atomic, r"^BUG: (?P<t>scheduling while atomic): (?P<n>[^/]+)", "$t: $n"),
    (Kind::Atomic, r"^BUG: (?P<t>sleeping function called from invalid context.*)", "$t"),
    (Kind::Atomic, r"^BUG: (?P<t>using \S+ in preemptible)", "$t"),
    (Kind::Refcount, r"^refcount_t: (?P<t>.*)", "$t"),
    (Kind::List, r"^(?P<t>list_(?:add|del)) corruption", "$t corruption"),
    (Kind::Oops, r"^BUG: (?P<t>(?:unable to handle|kernel NULL pointer).*)", "$t"),
    (Kind::Oops, r"^(?P<t>Unable to handle kernel .*)", "$t"),
    (Kind::Oops, r"^(?P<t>(?:Oops|general protection fault|invalid opcode|divide error|stack segment|double fault|int3|traps: PANIC)(?: -|:|,) .*)", "$t"),
    (Kind::Oops, r"^Internal error: (?P<t>.*)", "$t"),
    (Kind::Bug, r"^kernel BUG at (?P<t>.*?)!?$", "$t"),
    (Kind::Bug, r"^BUG: (?P<t>.*)", "$t"),
    (Kind::Warning, r"^WARNING: CPU: \d+ PID: \d+ at (?P<f>\S+) (?P<n>[\w.]+)\+", "$f in $n"),
    (Kind::Warning, r"^WARNING: CPU: \d+ PID: \d+ at (?P<n>[\w.]+)\+", "$n"),
    (Kind::Warning, r"^WARNING: (?:.*? at )?(?P<f>\S+:\d+) at (?P<n>[\w.]+)\+", "$f in $n"),
    (Kind::Warning, r"^WARNING: (?P<t>.*)", "$t"),
    (Kind::OutOfMemory, r"^(?:Memory cgroup out|Out) of memory: Killed process \d+ \((?P<n>.*?)\)", "$n was killed"),
    (Kind::Allocation, r"^(?P<n>\S+): page allocation (?:failure|stalls)", "$n: page allocation failure"),
    (Kind::MachineCheck, r"^(?:mce: )?\[Hardware Error\]: (?P<t>Machine check events logged|.*Machine Check.*|CPU.*)", "$t"),
    (Kind::Thermal, r"^(?:mce: )?CPU\d+: (?P<t>\w+ temperature (?:is )?above threshold)", "$t"),
    (Kind::Io, r"^(?:blk_update_request: |print_req_error: )?(?P<t>(?:I/O|critical \w+) error, dev \S+),", "$t"),
    (Kind::Io, r"^(?P<t>Buffer I/O error on (?:dev|device) [^,\s]+)", "$t"),
    (Kind::FileSystem, r"^(?P<t>EXT[234]-fs error \(device [^)]+\): \w+)", "$t"),
    (Kind::FileSystem, r"^(?P<t>EXT[234]-fs \([^)]+\): Remounting filesystem read-only)", "$t"),
    (Kind::FileSystem, r"^(?P<t>BTRFS (?:critical|error) \([^)]+\).*)", "$t"),
    (Kind::FileSystem, r"^(?P<t>XFS \([^)]+\): (?:Corruption|Metadata|Internal error|Unmount and run).*)", "$t"),
];

struct Compiled {
    set: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let texts = RULES.iter().map(|(_, text, _)| *text);
    Compiled {
        set: RegexSet::new(texts.clone()).expect("patterns are written here and tested"),
        each: texts.map(regex).collect(),
    }
});

/// The kind and title of the report that a message begins.
pub(crate) fn begins(text: &str) -> Option<(Kind, String)> {
    // Every rule begins with one of few words; most messages begin with none of them.
    let first = COMPILED.set.matches(text).into_iter().next()?;
    let (kind, _, template) = RULES[first];
    let captures = COMPILED.each[first].captures(text)?;
    let mut words = String::new();
    captures.expand(template, &mut words);
    Some((kind, title(&words)))
}

/// Where it happened, as traces say it on x86-64, RISC-V and arm64.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:RIP: \S+?:|epc : |pc : )(?P<n>[A-Za-z_][\w.]*)\+0x"));

/// The function that a message of a trace names as the place.
pub(crate) fn place(text: &str) -> Option<String> {
    Some(PLACE.captures(text)?["n"].to_owned())
}

/// Messages that go on with a report that has begun.
static BODY: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^(?:\s|#|RIP: |RSP: |R\w\w: |R\d\d: |FS: |CS: |CR2: |DR\d: |PKRU: |EFLAGS|Code: |Call Trace|Modules linked",
        r"|CPU: |Hardware name: |Comm: |Tainted: |epc : |gp : |t\d ?: |s\d+ ?: |a\d ?: |status: |pc : |lr : |sp : |pstate: |x\d+ ?: ",
        r"|task:|rcu: |NMI backtrace|Sending NMI|PGD |Oops: |---\[ |\[<|=+$|-+$|note: |Workqueue: |irq event|hardirqs|softirqs",
        r"|Read of size|Write of size|The buggy address|Allocated by|Freed by|Memory state|page:|Mem-Info|Node \d|oom-kill:",
        r"|Kernel Offset|Rebooting in|#PF: |in_atomic|preempt_count|RCU nest|stack backtrace|but task|which lock|other info|Preemption disabled|\d+ locks? held)",
    ))
});

pub(crate) fn continues(text: &str) -> bool {
    BODY.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_its_template_names_its_groups() {
        for ((_, _, template), pattern) in RULES.iter().zip(&COMPILED.each) {
            for name in template.split('$').skip(1) {
                let name = &name[..1];
                let known = pattern.capture_names().flatten().any(|n| n == name);
                assert!(known, "{pattern}: ${name}");
            }
        }
    }
}
