//! Traces of real kernels, read whole.

use std::fmt::Write;

use klab_ftrace::{EmptyReason, EventKind, FlagColumn, LatencyTrace, Note, Problem, Reading, read};

const RISCV_BEFORE: &str = include_str!("data/madvise-riscv64-6.5-rt6-before.txt");
const RISCV_AFTER: &str = include_str!("data/madvise-riscv64-6.5-rt6-after.txt");
const X86_NOFUNC: &str = include_str!("data/trace-wakeup_rt-nofunc.txt");
const X86_FUNC: &str = include_str!("data/trace-wakeup_rt-func.txt");

fn latency(text: &str) -> LatencyTrace {
    match read(text.as_bytes()).expect("the trace is readable") {
        Reading::Latency(trace) => *trace,
        other => panic!("not a latency trace: {other:?}"),
    }
}

/// Everything the reader understood, one line per event.
fn render(trace: &LatencyTrace) -> String {
    let mut out = format!("{:#?}\ncolumns {:?}\n", trace.header, trace.columns);
    for e in &trace.events {
        let kind = match &e.kind {
            EventKind::Stack(frames) => {
                let names: Vec<_> = frames.iter().map(|f| f.function.as_str()).collect();
                format!("stack {}", names.join(" "))
            }
            other => format!("{other:?}"),
        };
        let mark = e.mark.map_or_else(String::new, |m| format!(" {m:?}"));
        writeln!(
            out,
            "{} {}-{} cpu{} {} {}us{mark} {kind}",
            e.line, e.comm, e.pid, e.cpu, e.flags, e.time_us
        )
        .expect("writing to a String");
    }
    writeln!(
        out,
        "notes {:?}\nculprit {:?}",
        trace.notes,
        trace.culprit()
    )
    .expect("writing to a String");
    out
}

#[test]
fn riscv_rt_before() {
    insta::assert_snapshot!(render(&latency(RISCV_BEFORE)));
}

#[test]
fn riscv_rt_after() {
    insta::assert_snapshot!(render(&latency(RISCV_AFTER)));
}

#[test]
fn x86_nofunc() {
    insta::assert_snapshot!(render(&latency(X86_NOFUNC)));
}

#[test]
fn x86_func() {
    insta::assert_snapshot!(render(&latency(X86_FUNC)));
}

#[test]
fn the_culprits_that_their_readers_named() {
    assert_eq!(
        latency(RISCV_BEFORE).culprit(),
        Some("madvise_cold_or_pageout_pte_range")
    );
    assert_eq!(latency(RISCV_AFTER).culprit(), Some("free_unref_page_list"));
    assert_eq!(latency(X86_FUNC).culprit(), Some("do_wp_page"));
    // The timer interrupted user space, so no kernel function held the CPU.
    assert_eq!(latency(X86_NOFUNC).culprit(), None);
}

#[test]
fn flags_are_found_by_name() {
    let trace = latency(RISCV_BEFORE);
    let last = trace.events.last().unwrap();
    assert_eq!(trace.flag(last, &FlagColumn::PreemptDepth), Some('3'));
    assert_eq!(trace.flag(last, &FlagColumn::IrqsOff), Some('d'));
    let first = &trace.events[0];
    assert_eq!(trace.flag(first, &FlagColumn::MigrateDisable), Some('2'));
    assert_eq!(trace.flag(first, &FlagColumn::Other("x".into())), None);
}

#[test]
fn a_stack_on_one_line_reads_the_same() {
    let flat = RISCV_BEFORE
        .replace("<stack trace>\n", "")
        .replace("\n => ", " => ");
    let bare = RISCV_BEFORE.replace("<stack trace>", "");
    for text in [flat, bare] {
        let trace = latency(&text);
        assert_eq!(trace.final_stack(), latency(RISCV_BEFORE).final_stack());
        assert!(!trace.is_cut());
    }
}

#[test]
fn nothing_recorded_is_an_answer() {
    let empty = |text: &str| match read(text.as_bytes()).expect("well formed") {
        Reading::Empty { tracer, reason } => (tracer, reason),
        other => panic!("not empty: {other:?}"),
    };
    let nop = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n#\n";
    assert_eq!(empty(nop), ("nop".into(), EmptyReason::NoTracer));
    assert_eq!(
        empty("# tracer: wakeup_rt\n#\n"),
        ("wakeup_rt".into(), EmptyReason::NothingRecorded)
    );
    let header = &X86_NOFUNC[..X86_NOFUNC.find("stress-n").unwrap()];
    let zero = header.replace("latency: 256810 us, #6/6", "latency: 0 us, #0/0");
    assert_eq!(empty(&zero), ("wakeup_rt".into(), EmptyReason::ZeroLatency));
}

#[test]
fn other_tracers_are_recognised() {
    let text = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 1/1   #P:2\n#\n\
                #                              | | |     |         |\n\
                 bash-1  [000] d..1.  1.000001: sched_waking: comm=x\n";
    assert_eq!(
        read(text.as_bytes()),
        Ok(Reading::NotLatency {
            tracer: "nop".into()
        })
    );
}

#[test]
fn cut_text_is_noticed() {
    let at = X86_NOFUNC
        .find("stress-n-104       0d..3. 256771us")
        .unwrap();
    let cut = latency(&X86_NOFUNC[..at]);
    assert_eq!(
        cut.notes,
        [Note::CutShort {
            announced: 6,
            found: 4
        }]
    );
    let open = latency(X86_NOFUNC.trim_end());
    assert_eq!(open.notes, [Note::OpenLine]);
    assert!(cut.is_cut() && open.is_cut());
    assert!(!latency(X86_NOFUNC).is_cut());
}

#[test]
fn losses_are_noted() {
    let text = X86_NOFUNC.replace("#6/6", "#6/40").replacen(
        "stress-n-104       0d..3. 256758us",
        "CPU:0 [LOST 34 EVENTS]\n##### CPU 1 buffer started ####\nCPU:1 [LOST EVENTS]\nstress-n-104       0d..3. 256758us",
        1,
    );
    let trace = latency(&text);
    assert_eq!(
        trace.notes,
        [
            Note::Lost {
                cpu: 0,
                count: Some(34)
            },
            Note::BufferStarted { cpu: 1 },
            Note::Lost {
                cpu: 1,
                count: None
            },
            Note::Overrun {
                entries: 6,
                written: 40
            },
        ]
    );
    assert!(!trace.is_cut());
}

#[test]
fn critical_section_tracers() {
    let text = "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 4.0.0\n\
        # --------------------------------------------------------------------\n\
        # latency: 16 us, #4/4, CPU#0 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)\n\
        #    -----------------\n#    | task: swapper/0-0 (uid:0 nice:0 policy:0 rt_prio:0)\n\
        #    -----------------\n#  => started at: run_timer_softirq\n#  => ended at:   run_timer_softirq\n#\n#\n\
        #                  _------=> CPU#\n#                 / _-----=> irqs-off\n\
        #                | / _----=> need-resched\n#                || / _---=> hardirq/softirq\n\
        #                ||| / _--=> preempt-depth\n#                |||| /     delay\n\
        #  cmd     pid   ||||| time  |   caller\n#     \\   /      |||||  \\    |   /\n\
        \x20 <idle>-0       0d.s2    0us+: _raw_spin_lock_irq <-run_timer_softirq\n\
        \x20 <idle>-0       0dNs3   17us : _raw_spin_unlock_irq <-run_timer_softirq\n\
        \x20 <idle>-0       0dNs3   17us+: trace_hardirqs_on <-run_timer_softirq\n\
        \x20 <idle>-0       0dNs3   25us : <stack trace>\n\
        \x20=> _raw_spin_unlock_irq\n => run_timer_softirq\n => __do_softirq\n";
    let trace = latency(text);
    assert_eq!(trace.columns.len(), 4);
    assert_eq!(
        trace.header.started_at.as_deref(),
        Some("run_timer_softirq")
    );
    assert_eq!(trace.header.ended_at.as_deref(), Some("run_timer_softirq"));
    assert_eq!(trace.task().comm, "swapper/0");
    assert_eq!(trace.culprit(), Some("run_timer_softirq"));
}

#[test]
fn errors_name_the_place_and_the_mend() {
    let fails = |text: &str| read(text.as_bytes()).expect_err("must be refused");
    let e = fails("");
    assert_eq!((e.line, e.problem), (1, Problem::NotATrace));
    let e = fails("\nT: 0 (  136) P:99 I:1000\n");
    assert_eq!((e.line, e.problem), (2, Problem::NotATrace));
    let e = fails(&X86_NOFUNC.replace("CPU#0 |", "CPU#zero |"));
    assert_eq!((e.line, e.problem), (5, Problem::LatencyLine));
    let e = fails(&X86_NOFUNC.replace("cyclictest-106 (", "cyclictest ("));
    assert_eq!((e.line, e.problem), (7, Problem::TaskLine));
    let e = fails(&X86_NOFUNC.replace("40us :", "40:"));
    assert_eq!((e.line, e.problem), (20, Problem::EventLine));
    assert!(
        e.to_string().contains("line 20: found") && e.to_string().contains("trace_clock"),
        "{e}"
    );
    let e = fails(&X86_NOFUNC.replace("=> CPU#", "=> X"));
    assert_eq!((e.line, e.problem), (19, Problem::NoLegend));
    let e = fails(&X86_NOFUNC.replace("<stack trace>", "function <-x"));
    assert_eq!((e.line, e.problem), (21, Problem::StrayFrame));
    let lines: Vec<_> = X86_NOFUNC
        .lines()
        .filter(|l| !l.contains("latency:"))
        .collect();
    let e = fails(&lines.join("\n"));
    assert_eq!((e.line, e.problem), (18, Problem::NoLatency));
    let title: Vec<_> = X86_NOFUNC.lines().take(4).collect();
    assert_eq!(fails(&title.join("\n")).problem, Problem::NoLatency);
    let no_task: Vec<_> = X86_NOFUNC
        .lines()
        .filter(|l| !l.contains("task:"))
        .collect();
    assert_eq!(fails(&no_task.join("\n")).problem, Problem::NoTask);
}
