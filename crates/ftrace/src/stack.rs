//! Stack frames and the part each function plays in a latency.

/// One function on a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name of the function, or what stood in its place (`0`, `[FTRACE TRAMPOLINE]`,
    /// a path in user space).
    pub function: String,
    /// Offset into the function, if the trace option `sym-offset` was on.
    pub offset: Option<u64>,
    /// The kernel module the function belongs to, if it was printed.
    pub module: Option<String>,
}

/// The part a function plays on the stack of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Records the trace.
    Tracing,
    /// Switches tasks or looks whether to.
    Scheduling,
    /// Releases a lock or enables preemption, which lets the switch happen.
    Unlocking,
    /// Brings the CPU into the kernel or out of it.
    Entry,
    /// Everything else: code that did something.
    Work,
}

impl Frame {
    /// Reads what follows `=> `: `fn`, `fn+0x1c/0x40`, `fn [module]`, `fn <address>`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut text = text.trim();
        if let Some((symbol, address)) = text.rsplit_once(" <")
            && address.ends_with('>')
        {
            text = symbol.trim_end();
        }
        let mut module = None;
        if let Some((symbol, name)) = text.rsplit_once(" [")
            && let Some(name) = name.strip_suffix(']')
        {
            module = Some(name.to_owned());
            text = symbol.trim_end();
        }
        let (function, offset) = match text.rsplit_once("+0x") {
            Some((function, rest)) if !function.is_empty() => {
                let digits = rest.split('/').next().unwrap_or(rest);
                match u64::from_str_radix(digits, 16) {
                    Ok(offset) => (function, Some(offset)),
                    Err(_) => (text, None),
                }
            }
            _ => (text, None),
        };
        Self {
            function: function.to_owned(),
            offset,
            module,
        }
    }

    /// The part this function plays.
    #[must_use]
    pub fn role(&self) -> Role {
        let name = base_name(&self.function);
        let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        if TRACING.contains(&name) || any(TRACING_PREFIXES) {
            Role::Tracing
        } else if SCHEDULING.contains(&name) || any(SCHEDULING_PREFIXES) {
            Role::Scheduling
        } else if UNLOCKING.contains(&name) || any(UNLOCKING_PREFIXES) {
            Role::Unlocking
        } else if ENTRY.contains(&name) || any(ENTRY_PREFIXES) {
            Role::Entry
        } else {
            Role::Work
        }
    }
}

/// The name without what the compiler added: `fn.isra.0`, `fn.constprop.0`, `fn.cold`.
fn base_name(function: &str) -> &str {
    match function.find('.') {
        Some(dot) if dot > 0 => &function[..dot],
        _ => function,
    }
}

const TRACING: &[&str] = &[
    "[FTRACE TRAMPOLINE]",
    "__trace_stack",
    "check_critical_timing",
    "probe_wakeup",
    "probe_wakeup_sched_switch",
    "stop_critical_timing",
    "time_hardirqs_on",
    "wakeup_tracer_call",
];
const TRACING_PREFIXES: &[&str] = &[
    "__ftrace_",
    "__traceiter_",
    "ftrace_",
    "trace_hardirqs_",
    "trace_preempt_",
    "tracer_",
];

const SCHEDULING: &[&str] = &[
    "__schedule",
    "_cond_resched",
    "finish_task_switch",
    "preempt_count_sub",
    "schedule",
    "schedule_idle",
    "schedule_preempt_disabled",
    "schedule_rtlock",
];
const SCHEDULING_PREFIXES: &[&str] = &[
    "__cond_resched",
    "arm64_preempt_schedule",
    "cond_resched",
    "dynamic_cond_resched",
    "dynamic_might_resched",
    "dynamic_preempt_schedule",
    "preempt_schedule",
];

const UNLOCKING: &[&str] = &[
    "migrate_enable",
    "rt_mutex_slowunlock",
    "rt_mutex_postunlock",
];
const UNLOCKING_PREFIXES: &[&str] = &[
    "__local_bh_enable",
    "__raw_read_unlock",
    "__raw_spin_unlock",
    "__raw_write_unlock",
    "__rcu_read_unlock",
    "_raw_read_unlock",
    "_raw_spin_unlock",
    "_raw_write_unlock",
    "local_bh_enable",
    "preempt_enable",
    "rcu_read_unlock",
    "rt_read_unlock",
    "rt_spin_unlock",
    "rt_write_unlock",
];

const ENTRY: &[&str] = &[
    "apic_timer_interrupt",
    "common_interrupt",
    "do_IRQ",
    "do_el0_svc",
    "do_irq",
    "do_notify_resume",
    "do_syscall_64",
    "do_trap_ecall_u",
    "handle_exception",
    "handle_riscv_irq",
    "invoke_syscall",
    "reschedule_interrupt",
    "work_pending",
    "x64_sys_call",
];
const ENTRY_PREFIXES: &[&str] = &[
    "__irq_exit",
    "__syscall_exit",
    "__sysvec_",
    "asm_common_interrupt",
    "asm_sysvec_",
    "el0_",
    "el0t_",
    "el1_",
    "el1h_",
    "entry_SYSCALL",
    "entry_SYSENTER",
    "exit_to_user_mode",
    "irq_exit",
    "irqentry_",
    "prepare_exit_to_usermode",
    "raw_irqentry_",
    "ret_from_",
    "ret_to_",
    "syscall_exit",
    "sysvec_",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_a_frame() {
        let plain = Frame::parse("do_wp_page");
        assert_eq!(
            plain,
            Frame {
                function: "do_wp_page".into(),
                offset: None,
                module: None
            }
        );
        let full = Frame::parse("ext4_write+0x1c/0x40 [ext4]");
        assert_eq!(full.function, "ext4_write");
        assert_eq!(full.offset, Some(0x1c));
        assert_eq!(full.module.as_deref(), Some("ext4"));
        let address = Frame::parse("schedule <ffffffff81a3c4d0>");
        assert_eq!(address.function, "schedule");
        assert_eq!(
            Frame::parse("[FTRACE TRAMPOLINE]").function,
            "[FTRACE TRAMPOLINE]"
        );
        assert_eq!(
            Frame::parse("/lib/libc.so.6[+0x1234]").function,
            "/lib/libc.so.6[+0x1234]"
        );
        assert_eq!(Frame::parse("fn+0xzz").function, "fn+0xzz");
    }

    #[test]
    fn parts_played() {
        let role = |name: &str| Frame::parse(name).role();
        assert_eq!(role("[FTRACE TRAMPOLINE]"), Role::Tracing);
        assert_eq!(role("__traceiter_sched_switch"), Role::Tracing);
        assert_eq!(role("finish_task_switch.isra.0"), Role::Scheduling);
        assert_eq!(role("preempt_schedule_thunk"), Role::Scheduling);
        assert_eq!(role("_raw_spin_unlock_irqrestore"), Role::Unlocking);
        assert_eq!(role("asm_sysvec_apic_timer_interrupt"), Role::Entry);
        assert_eq!(role("asm_exc_page_fault"), Role::Work);
        assert_eq!(role("schedule_timeout"), Role::Work);
        assert_eq!(role("do_vmi_align_munmap.constprop.0"), Role::Work);
    }
}
