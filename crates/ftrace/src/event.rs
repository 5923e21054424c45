//! One event of a latency trace.

use crate::{Flags, Frame};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Line in the text, from 1.
    pub line: usize,
    /// Name of the running task, cut to 8 characters by the kernel.
    pub comm: String,
    /// Its process id.
    pub pid: u32,
    /// The CPU.
    pub cpu: u32,
    /// The flags, in the columns that the header names.
    pub flags: Flags,
    /// Microseconds since the trace began.
    pub time_us: u64,
    /// Set if the next event came late.
    pub mark: Option<Mark>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A function was called; `caller` is missing where the kernel did not know it.
    Function {
        /// The function.
        name: String,
        /// The function that called it.
        caller: Option<String>,
    },
    /// The task on the left woke the one on the right (`+`).
    Wakeup(Transition),
    /// The CPU switched from the task on the left to the one on the right (`==>`).
    Switch(Transition),
    /// The kernel stack, innermost function first.
    Stack(Vec<Frame>),
    /// The user stack, innermost function first.
    UserStack(Vec<Frame>),
    /// A trace event `name: fields`.
    Tracepoint {
        /// Name of the event.
        name: String,
        /// Its fields as printed.
        fields: String,
    },
    /// Anything else, as printed.
    Other(String),
}

/// A wakeup or a switch between two tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The task that ran.
    pub from: TaskState,
    /// The CPU of the task on the right.
    pub cpu: u32,
    /// The task that is woken or switched to.
    pub to: TaskState,
    /// Name of the task on the right.
    pub comm: String,
}

/// A task as wakeup and switch lines print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState {
    /// Process id.
    pub pid: u32,
    /// Priority inside the kernel: -1 deadline, 0..=98 real-time, 100..=139 others.
    pub prio: i32,
    /// State letter: `R` runnable, `S` sleeping, `D` uninterruptible ...
    pub state: char,
}

/// How late the next event came, by the character behind the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// `+`
    Over10Us,
    /// `!`
    Over100Us,
    /// `#`
    Over1Ms,
    /// `*`
    Over10Ms,
    /// `@`
    Over100Ms,
    /// `$`
    Over1S,
}

impl Mark {
    fn from_char(mark: char) -> Option<Self> {
        Some(match mark {
            '+' => Self::Over10Us,
            '!' => Self::Over100Us,
            '#' => Self::Over1Ms,
            '*' => Self::Over10Ms,
            '@' => Self::Over100Ms,
            '$' => Self::Over1S,
            _ => return None,
        })
    }
}

impl Event {
    /// Reads `COMM-PID CPUFLAGS TIMEus : BODY` with `columns` flag characters glued to
    /// the CPU number. The name may hold anything, a time stamp included, so every
    /// place that looks like the time is tried until what precedes it fits.
    pub(crate) fn parse(number: usize, line: &str, columns: usize) -> Option<Self> {
        line.match_indices("us").find_map(|(at, _)| {
            let (time_us, before) = time_before(&line[..at])?;
            let (mark, body) = mark_after(&line[at + 2..])?;
            let (comm, pid, cpu, flags) = context(before, columns)?;
            Some(Self {
                line: number,
                comm: comm.to_owned(),
                pid,
                cpu,
                flags: Flags::new(flags),
                time_us,
                mark,
                kind: EventKind::parse(body),
            })
        })
    }
}

fn time_before(text: &str) -> Option<(u64, &str)> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (before, time) = text.split_at(text.len() - digits);
    let before = before.strip_suffix(' ')?;
    Some((time.parse().ok()?, before.trim_end()))
}

fn mark_after(text: &str) -> Option<(Option<Mark>, &str)> {
    let mut chars = text.chars();
    let sign = chars.next()?;
    let mark = Mark::from_char(sign);
    if mark.is_none() && sign != ' ' {
        return None;
    }
    Some((mark, chars.as_str().strip_prefix(':')?.trim()))
}

fn context(text: &str, columns: usize) -> Option<(&str, u32, u32, &str)> {
    let split = text.len().checked_sub(columns)?;
    if !text.is_char_boundary(split) {
        return None;
    }
    let (before, flags) = text.split_at(split);
    if !flags.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let (task, cpu) = before.rsplit_once(' ')?;
    let (comm, pid) = task.trim_end().rsplit_once('-')?;
    Some((
        comm.trim_start(),
        pid.parse().ok()?,
        cpu.parse().ok()?,
        flags,
    ))
}

impl EventKind {
    fn parse(body: &str) -> Self {
        match body {
            "<stack trace>" | "" => return Self::Stack(Vec::new()),
            "<user stack trace>" => return Self::UserStack(Vec::new()),
            _ => {}
        }
        if let Some(frames) = body.strip_prefix("=> ") {
            return Self::Stack(frames.split(" => ").map(Frame::parse).collect());
        }
        if let Some(transition) = Transition::parse(body, " ==> [") {
            return Self::Switch(transition);
        }
        if let Some(transition) = Transition::parse(body, " + [") {
            return Self::Wakeup(transition);
        }
        if let Some((name, caller)) = body.split_once(" <-") {
            let caller = Some(caller.trim().to_owned());
            return Self::Function {
                name: name.to_owned(),
                caller,
            };
        }
        if let Some((name, fields)) = body.split_once(": ")
            && !name.contains(char::is_whitespace)
        {
            return Self::Tracepoint {
                name: name.to_owned(),
                fields: fields.trim().to_owned(),
            };
        }
        if body.contains(char::is_whitespace) || body.ends_with(':') {
            return Self::Other(body.to_owned());
        }
        Self::Function {
            name: body.to_owned(),
            caller: None,
        }
    }

    /// Adds a frame printed on a line of its own; false if this is no stack.
    pub(crate) fn push_frame(&mut self, frame: Frame) -> bool {
        match self {
            Self::Stack(frames) | Self::UserStack(frames) => {
                frames.push(frame);
                true
            }
            _ => false,
        }
    }
}

impl Transition {
    fn parse(body: &str, arrow: &str) -> Option<Self> {
        let (left, right) = body.split_once(arrow)?;
        let (from, rest) = TaskState::parse(left)?;
        let (cpu, right) = right.split_once(']')?;
        let (to, comm) = TaskState::parse(right)?;
        rest.trim().is_empty().then_some(())?;
        Some(Self {
            from,
            cpu: cpu.trim().parse().ok()?,
            to,
            comm: comm.trim().to_owned(),
        })
    }
}

impl TaskState {
    /// Reads `PID:PRIO:STATE REST`.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let mut parts = text.splitn(3, ':');
        let pid = parts.next()?.trim().parse().ok()?;
        let prio = parts.next()?.trim().parse().ok()?;
        let mut rest = parts.next()?.chars();
        let state = rest.next()?;
        Some((Self { pid, prio, state }, rest.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, columns: usize) -> Event {
        Event::parse(7, line, columns).unwrap_or_else(|| panic!("not read: {line}"))
    }

    #[test]
    fn glued_columns_of_every_width() {
        let four = read(
            "    bash-1234    1dN.3   16us+: _raw_spin_lock <-task_rq_lock",
            4,
        );
        assert_eq!((four.pid, four.cpu, four.flags.as_str()), (1234, 1, "dN.3"));
        assert_eq!((four.time_us, four.mark), (16, Some(Mark::Over10Us)));
        let five = read(
            "stress-n-133       0dNh1. 86277us@: irq_exit_rcu <-sysvec",
            5,
        );
        assert_eq!(
            (five.comm.as_str(), five.pid, five.flags.as_str()),
            ("stress-n", 133, "dNh1.")
        );
        let seven = read("stress-n-206     159d...3.. 2544us : __schedule", 7);
        assert_eq!((seven.cpu, seven.flags.as_str()), (159, "d...3.."));
        assert_eq!(
            seven.kind,
            EventKind::Function {
                name: "__schedule".into(),
                caller: None
            }
        );
    }

    #[test]
    fn names_with_blanks_dashes_and_times() {
        let odd = read("a 5us : -77      12d..3.    9us : schedule <-x", 5);
        assert_eq!(
            (odd.comm.as_str(), odd.pid, odd.cpu, odd.time_us),
            ("a 5us : ", 77, 12, 9)
        );
        let idle = read("  <idle>-0         0d..3.    9us : schedule <-x", 5);
        assert_eq!((idle.comm.as_str(), idle.pid), ("<idle>", 0));
        let dots = read("   <...>-276       1dn...    9us : 0", 5);
        assert_eq!((dots.comm.as_str(), dots.pid), ("<...>", 276));
    }

    #[test]
    fn an_event_quoted_in_a_message_is_not_the_event() {
        let quoting = read(
            "    bash-1         0d..3.    9us : saw: bash-2  1d..3.   77us : x",
            5,
        );
        assert_eq!((quoting.pid, quoting.time_us), (1, 9));
    }

    #[test]
    fn wakeups_and_switches() {
        let EventKind::Switch(switch) = read(
            "stress-n-104       0d..3. 256771us+:      104:120:R ==> [000]     106:  0:R a b",
            5,
        )
        .kind
        else {
            panic!("not a switch")
        };
        assert_eq!(
            switch.from,
            TaskState {
                pid: 104,
                prio: 120,
                state: 'R'
            }
        );
        assert_eq!(
            switch.to,
            TaskState {
                pid: 106,
                prio: 0,
                state: 'R'
            }
        );
        assert_eq!((switch.cpu, switch.comm.as_str()), (0, "a b"));
        let wake = read(
            "stress-n-104       0dNh5.    5us+:      104:120:R   + [003]     106: -1:R dl",
            5,
        );
        assert!(matches!(
            wake.kind,
            EventKind::Wakeup(Transition {
                cpu: 3,
                to: TaskState { prio: -1, .. },
                ..
            })
        ));
    }

    #[test]
    fn other_bodies() {
        let kind = |body: &str| read(&format!("  bash-1  0d..3.    9us : {body}"), 5).kind;
        assert_eq!(
            kind("sched_waking: comm=x pid=1"),
            EventKind::Tracepoint {
                name: "sched_waking".into(),
                fields: "comm=x pid=1".into()
            }
        );
        assert_eq!(
            kind("hello + world"),
            EventKind::Other("hello + world".into())
        );
        let EventKind::Stack(frames) = kind("=> __trace_stack => schedule") else {
            panic!()
        };
        assert_eq!(frames.len(), 2);
        assert_eq!(kind("<user stack trace>"), EventKind::UserStack(vec![]));
    }

    #[test]
    fn what_is_no_event() {
        for line in [
            "",
            "us",
            "5us : x",
            "bash-1 0d..3. 9: x",
            "bash-x  0d..3.    9us : x",
            "bash-1  d..3.    9us : x",
        ] {
            assert_eq!(Event::parse(1, line, 5), None, "{line}");
        }
    }
}
