//! The header block of a latency trace.

/// What the header block says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name of the tracer, for instance `wakeup_rt`.
    pub tracer: String,
    /// Version of the text format, for instance `1.1.5`.
    pub format: String,
    /// Release of the traced kernel (`uname -r`).
    pub release: String,
    /// The latency in microseconds.
    pub latency_us: u64,
    /// Events in the buffer when it was read.
    pub entries: u64,
    /// Events written in all; above `entries` when the buffer ran over.
    pub written: u64,
    /// The CPU on which the latency arose.
    pub cpu: u32,
    /// Preemption model of the kernel.
    pub model: PreemptModel,
    /// CPUs online; not printed by kernels without SMP.
    pub online_cpus: Option<u32>,
    /// The task that waited (wakeup tracers) or ran (the others).
    pub task: Task,
    /// Where the critical section began; only `irqsoff`, `preemptoff`, `preemptirqsoff`.
    pub started_at: Option<String>,
    /// Where the critical section ended.
    pub ended_at: Option<String>,
}

/// The task named in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Name of the task, up to 16 characters, of any kind.
    pub comm: String,
    /// Process id.
    pub pid: u32,
    /// User id.
    pub uid: i64,
    /// Nice value.
    pub nice: i64,
    /// Scheduling policy by number: 0 other, 1 FIFO, 2 RR, 3 batch, 5 idle, 6 deadline.
    pub policy: i64,
    /// Real-time priority, 1 to 99; 0 for other tasks.
    pub rt_prio: i64,
}

/// Preemption model, from `M:`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PreemptModel {
    /// `server`: no forced preemption.
    Server,
    /// `desktop`: voluntary preemption.
    Desktop,
    /// `preempt`: full preemption.
    Preempt,
    /// `preempt_rt`: real-time preemption.
    PreemptRt,
    /// What another kernel calls its model.
    Other(String),
}

impl PreemptModel {
    fn parse(text: &str) -> Self {
        match text {
            "server" => Self::Server,
            "desktop" => Self::Desktop,
            "preempt" => Self::Preempt,
            "preempt_rt" => Self::PreemptRt,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The word as the kernel prints it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Server => "server",
            Self::Desktop => "desktop",
            Self::Preempt => "preempt",
            Self::PreemptRt => "preempt_rt",
            Self::Other(other) => other,
        }
    }
}

/// The numbers of the `latency:` line.
#[derive(Debug, Clone)]
pub(crate) struct LatencyLine {
    pub(crate) latency_us: u64,
    pub(crate) entries: u64,
    pub(crate) written: u64,
    pub(crate) cpu: u32,
    pub(crate) model: PreemptModel,
    pub(crate) online_cpus: Option<u32>,
}

impl LatencyLine {
    /// Reads ` N us, #A/B, CPU#C | (M:MODEL VP:0, KP:0, SP:0 HP:0 #P:n)`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (latency, rest) = text.split_once(" us, #")?;
        let (entries, rest) = rest.split_once('/')?;
        let (written, rest) = rest.split_once(", CPU#")?;
        let (cpu, rest) = rest.split_once('|')?;
        let inner = rest.trim().strip_prefix("(M:")?.strip_suffix(')')?;
        let (model, rest) = inner.split_once(" VP:")?;
        let online_cpus = match rest.split_once("#P:") {
            Some((_, count)) => Some(count.trim().parse().ok()?),
            None => None,
        };
        Some(Self {
            latency_us: latency.trim().parse().ok()?,
            entries: entries.trim().parse().ok()?,
            written: written.trim().parse().ok()?,
            cpu: cpu.trim().parse().ok()?,
            model: PreemptModel::parse(model.trim()),
            online_cpus,
        })
    }
}

impl Task {
    /// Reads ` COMM-PID (uid:N nice:N policy:N rt_prio:N)`. The name may hold blanks,
    /// dashes and brackets, so the line is taken apart from its end.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, numbers) = text.rsplit_once(" (uid:")?;
        let (comm, pid) = name.rsplit_once('-')?;
        let numbers = numbers.trim_end().strip_suffix(')')?;
        let (uid, rest) = numbers.split_once(" nice:")?;
        let (nice, rest) = rest.split_once(" policy:")?;
        let (policy, rt_prio) = rest.split_once(" rt_prio:")?;
        Some(Self {
            comm: comm.strip_prefix(' ').unwrap_or(comm).to_owned(),
            pid: pid.trim().parse().ok()?,
            uid: uid.parse().ok()?,
            nice: nice.parse().ok()?,
            policy: policy.parse().ok()?,
            rt_prio: rt_prio.parse().ok()?,
        })
    }
}

/// Reads `TRACER latency trace vX on RELEASE`: the format's version and the release.
pub(crate) fn parse_title(text: &str) -> Option<(String, String)> {
    let (_, rest) = text.split_once(" latency trace v")?;
    let (format, release) = rest.split_once(" on ")?;
    let release = release.trim();
    (!format.is_empty() && !release.is_empty()).then(|| (format.to_owned(), release.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_lines() {
        let line =
            LatencyLine::parse(" 2552 us, #6/7, CPU#3 | (M:preempt_rt VP:0, KP:0, SP:0 HP:0 #P:4)")
                .unwrap();
        assert_eq!(
            (line.latency_us, line.entries, line.written, line.cpu),
            (2552, 6, 7, 3)
        );
        assert_eq!(line.model, PreemptModel::PreemptRt);
        assert_eq!(line.online_cpus, Some(4));
        let up =
            LatencyLine::parse(" 9 us, #1/1, CPU#0 | (M:server VP:0, KP:0, SP:0 HP:0)").unwrap();
        assert_eq!((up.model, up.online_cpus), (PreemptModel::Server, None));
        let new = LatencyLine::parse(
            " 9 us, #1/1, CPU#0 | (M:PREEMPT_{RT,(lazy)} VP:0, KP:0, SP:0 HP:0 #P:2)",
        );
        assert_eq!(new.unwrap().model.as_str(), "PREEMPT_{RT,(lazy)}");
        for bad in [
            "",
            " x us, #1/1, CPU#0 | (M:server VP:0)",
            " 9 us, #1/1, CPU#0 | (M:server VP:0 #P:x)",
            " 9 us, #1/1, CPU#0 | (M:server VP:0",
            " 99999999999999999999 us, #1/1, CPU#0 | (M:server VP:0)",
        ] {
            assert!(LatencyLine::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn names_of_tasks_may_be_anything() {
        let task =
            Task::parse(" Web Content (uid:1-x-77 (uid:1000 nice:-5 policy:0 rt_prio:0)").unwrap();
        assert_eq!(task.comm, "Web Content (uid:1-x");
        assert_eq!(
            (task.pid, task.uid, task.nice, task.policy, task.rt_prio),
            (77, 1000, -5, 0, 0)
        );
        assert!(Task::parse(" cyclictest (uid:0 nice:0 policy:1 rt_prio:99)").is_none());
        assert!(Task::parse(" a-1 (uid:0 nice:0 policy:1)").is_none());
    }

    #[test]
    fn titles() {
        assert_eq!(
            parse_title("wakeup_rt latency trace v1.1.5 on 6.12.117"),
            Some(("1.1.5".into(), "6.12.117".into()))
        );
        assert_eq!(parse_title("wakeup_rt latency trace v1.1.5 on "), None);
    }
}
