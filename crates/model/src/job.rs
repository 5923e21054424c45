//! Jobs: one submission each.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};
use crate::{
    BoardName, BoardSelector, FailureClass, JobId, KernelName, Outcome, Plan, Run, TagSelector,
    Timestamp, VariantName,
};

/// Who submitted a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Owner(String);

impl Owner {
    /// Reads a user name.
    ///
    /// # Errors
    /// [`InvalidText`] unless it is 1 to 63 printable characters without blanks.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        if (1..=63).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidText::new(
                "owner",
                text,
                "1 to 63 printable characters without blanks",
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_type!(Owner);
display_as_str!(Owner);

/// One column of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: VariantName,
    /// The kernels it stands for: at least one, each for another architecture. A board runs
    /// the one for its own.
    #[serde(alias = "kernel", deserialize_with = "one_or_more")]
    pub kernels: Vec<KernelName>,
}

/// A list, or the one name that older rows have.
fn one_or_more<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<KernelName>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kernels {
        One(KernelName),
        More(Vec<KernelName>),
    }
    Ok(match Kernels::deserialize(from)? {
        Kernels::One(name) => vec![name],
        Kernels::More(names) => names,
    })
}

/// A place for one board in a job. All variants of the slot run on the same board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoardSlot {
    /// This board.
    Bound(BoardName),
    /// The first free board with these tags; it is bound at the first assignment.
    Open(TagSelector),
}

impl BoardSlot {
    /// The slots that a selector asks for.
    pub fn of(selector: &BoardSelector) -> Vec<BoardSlot> {
        match selector {
            BoardSelector::Named(names) => names.iter().cloned().map(BoardSlot::Bound).collect(),
            BoardSelector::Tagged(tags) => vec![BoardSlot::Open(tags.clone())],
        }
    }

    /// The board, once it is known.
    pub const fn board(&self) -> Option<&BoardName> {
        match self {
            BoardSlot::Bound(name) => Some(name),
            BoardSlot::Open(_) => None,
        }
    }
}

/// One submission: variants × boards × a plan, in rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Who submitted it.
    pub owner: Owner,
    /// At least one; the first is what the others are compared with.
    pub variants: Vec<Variant>,
    /// At least one.
    pub boards: Vec<BoardSlot>,
    /// How often each variant is booted on each board, at least 1.
    pub rounds: u32,
    /// What each run does.
    pub plan: Plan,
    /// When it was submitted.
    pub created_at: Timestamp,
}

/// Where a job stands; derived from its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No run has begun.
    Queued,
    /// Some run is live and some has begun.
    Running,
    /// Every run is done.
    Done,
    /// Every run has ended and some failed; the gravest class is kept.
    Failed(FailureClass),
    /// Every run has ended and some were cancelled.
    Cancelled,
}

impl JobState {
    /// The state of a job with these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> JobState {
        let mut live = false;
        let mut begun = false;
        let mut cancelled = false;
        let mut failed: Option<FailureClass> = None;
        for run in runs {
            live |= run.state.is_live();
            begun |= run.state != crate::RunState::new();
            match run.state.outcome() {
                Some(Outcome::Cancelled) => cancelled = true,
                Some(Outcome::Failed(failure)) => {
                    failed = Some(graver(failed, failure.class));
                }
                Some(Outcome::Done) | None => {}
            }
        }
        match (live, begun) {
            (true, false) => JobState::Queued,
            (true, true) => JobState::Running,
            (false, _) if cancelled => JobState::Cancelled,
            (false, _) => failed.map_or(JobState::Done, JobState::Failed),
        }
    }

    /// Whether anything can still happen.
    pub const fn is_live(self) -> bool {
        matches!(self, JobState::Queued | JobState::Running)
    }

    /// The word used in tables, JSON and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed(_) => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// A kernel or workload that failed is the news a developer waits for; an infrastructure
/// failure beside it is not.
fn graver(old: Option<FailureClass>, new: FailureClass) -> FailureClass {
    match (old, new) {
        (Some(FailureClass::Kernel), _) | (_, FailureClass::Kernel) => FailureClass::Kernel,
        (Some(FailureClass::Workload), _) | (_, FailureClass::Workload) => FailureClass::Workload,
        _ => FailureClass::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_an_older_row_has_one_kernel() {
        let read = |text| serde_json::from_str::<Variant>(text).unwrap();
        let old = read(r#"{"name": "base", "kernel": "v6.1"}"#);
        assert_eq!(old.kernels, [KernelName::parse("v6.1").unwrap()]);
        let text = serde_json::to_string(&old).unwrap();
        assert_eq!(text, r#"{"name":"base","kernels":["v6.1"]}"#);
        assert_eq!(read(&text), old);
    }
}
