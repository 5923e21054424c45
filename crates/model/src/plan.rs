//! Plans: which workloads, under which load, traced how, repeated how often.

use serde::{Deserialize, Serialize};

use crate::text::{InvalidText, display_as_str, text_type};
use crate::{ArtifactName, PlanName, Span, TrialIndex, WorkloadName};

/// The format of a result file, named after the tool and option that write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ResultFormat {
    /// The lines that `cyclictest -q` ends with.
    CyclictestText,
    /// `cyclictest --histogram` text.
    CyclictestHistogram,
    /// `cyclictest --json`.
    CyclictestJson,
    /// `stress-ng --yaml`.
    StressNgYaml,
    /// The `trace` file of a latency tracer.
    LatencyTrace,
}

impl ResultFormat {
    /// Every format, in the order in which errors list them.
    pub const ALL: [ResultFormat; 5] = [
        ResultFormat::CyclictestText,
        ResultFormat::CyclictestHistogram,
        ResultFormat::CyclictestJson,
        ResultFormat::StressNgYaml,
        ResultFormat::LatencyTrace,
    ];

    /// The name used in plans.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResultFormat::CyclictestText => "cyclictest-text",
            ResultFormat::CyclictestHistogram => "cyclictest-histogram",
            ResultFormat::CyclictestJson => "cyclictest-json",
            ResultFormat::StressNgYaml => "stress-ng-yaml",
            ResultFormat::LatencyTrace => "latency-trace",
        }
    }

    /// Reads the name.
    ///
    /// # Errors
    /// [`InvalidText`] that lists the names.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| {
                InvalidText::new(
                    "result format",
                    text,
                    "cyclictest-text, cyclictest-histogram, cyclictest-json, stress-ng-yaml or \
                 latency-trace",
                )
            })
    }
}

text_type!(ResultFormat);
display_as_str!(ResultFormat);

/// Something that a command leaves: a file in its trial folder, or one of its outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRule {
    /// The name of the file in the trial folder; `stdout` and `stderr` are the outputs.
    pub file: ArtifactName,
    /// How to read samples from it; `None` keeps it unread.
    pub format: Option<ResultFormat>,
}

impl ArtifactRule {
    /// Whether this is standard output or standard error, which need not be written as files.
    pub fn is_output(&self) -> bool {
        matches!(self.file.as_str(), "stdout" | "stderr")
    }

    /// The name under which it is kept when the command `owner` leaves it: that of the file;
    /// `OWNER.stdout` or `OWNER.stderr` for outputs, which every command has.
    pub fn artifact_name(&self, owner: &WorkloadName) -> ArtifactName {
        if !self.is_output() {
            return self.file.clone();
        }
        ArtifactName::parse(&format!("{owner}.{}", self.file))
            .expect("a workload's name has at most 63 characters, all legal in file names")
    }
}

/// One command that is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name.
    pub name: WorkloadName,
    /// Program and arguments, never through a shell; `{out}` is the trial folder.
    pub command: Vec<String>,
    /// How often it is executed in a run, at least 1.
    pub trials: u32,
    /// After this long it is ended and the trial has failed.
    pub time_limit: Span,
    /// What it leaves behind.
    pub artifacts: Vec<ArtifactRule>,
}

/// A command that runs beside every workload to disturb it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Its name.
    pub name: WorkloadName,
    /// Program and arguments, never through a shell; `{out}` is the trial folder.
    pub command: Vec<String>,
    /// How long it runs before the workload starts.
    pub lead: Span,
    /// What it leaves behind.
    pub artifacts: Vec<ArtifactRule>,
}

/// What happens when a kernel lacks something the plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfMissing {
    /// The run fails.
    Fail,
    /// The run goes on without it, and the result says so.
    Note,
}

/// A tracer that is on while a trial runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    /// The name as `available_tracers` lists it.
    pub tracer: String,
    /// What to do for a kernel without it.
    pub if_missing: IfMissing,
    /// Ring buffer size per CPU in KiB.
    pub buffer_kib: u32,
    /// Whether latency tracers also record every function; costly.
    pub function_trace: bool,
}

/// How long the parts of a run may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// From the reboot to the agent's first word under the candidate.
    pub boot: Span,
    /// Waiting after a boot before the first trial, so that start-up work is over.
    pub settle: Span,
    /// Without a word with the controller under a candidate for so long, the agent
    /// returns to the known-good kernel.
    pub no_network: Span,
}

/// A plan that has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name.
    pub name: PlanName,
    /// One sentence for people.
    pub about: String,
    /// Commands that run beside every workload.
    pub loads: Vec<Load>,
    /// At least one.
    pub workloads: Vec<Workload>,
    /// The tracer, if any.
    pub trace: Option<TracePlan>,
    /// Time limits.
    pub time_limits: TimeLimits,
}

/// One trial of a plan: which workload, which repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialPlan<'a> {
    /// Its place in the run, from 0.
    pub index: TrialIndex,
    /// What is executed.
    pub workload: &'a Workload,
    /// Which repeat of the workload, from 0.
    pub repeat: u32,
}

impl Plan {
    /// The trials of one run in order: workload by workload, repeat by repeat.
    pub fn trials(&self) -> impl Iterator<Item = TrialPlan<'_>> {
        self.workloads
            .iter()
            .flat_map(|workload| (0..workload.trials).map(move |repeat| (workload, repeat)))
            .zip(0..)
            .map(|((workload, repeat), index)| TrialPlan {
                index: TrialIndex(index),
                workload,
                repeat,
            })
    }

    /// How many trials one run has.
    pub fn trial_count(&self) -> u32 {
        self.workloads.iter().map(|workload| workload.trials).sum()
    }

    /// The programs that must exist on a board, without repeats, in order of use.
    pub fn programs(&self) -> Vec<&str> {
        let loads = self.loads.iter().map(|load| &load.command);
        let workloads = self.workloads.iter().map(|workload| &workload.command);
        let mut programs = Vec::new();
        for program in loads.chain(workloads).filter_map(|command| command.first()) {
            if !programs.contains(&program.as_str()) {
                programs.push(program.as_str());
            }
        }
        programs
    }

    /// The longest time that one trial of `workload` may take, load and clean-up included.
    pub fn trial_limit(&self, workload: &Workload) -> std::time::Duration {
        let leads: std::time::Duration = self.loads.iter().map(|l| l.lead.as_duration()).sum();
        // Ending the load and reading the trace are bounded by the agent.
        leads + workload.time_limit.as_duration() + std::time::Duration::from_secs(30)
    }

    /// How to read the artifact `name` of a trial of `workload`.
    pub fn format_of(&self, workload: &WorkloadName, name: &ArtifactName) -> Option<ResultFormat> {
        let own = self.workloads.iter().filter(|w| &w.name == workload);
        let own = own.map(|w| (&w.name, &w.artifacts));
        let loads = self.loads.iter().map(|load| (&load.name, &load.artifacts));
        own.chain(loads)
            .flat_map(|(owner, rules)| rules.iter().map(move |rule| (owner, rule)))
            .find(|(owner, rule)| &rule.artifact_name(owner) == name)
            .and_then(|(_, rule)| rule.format)
    }
}
