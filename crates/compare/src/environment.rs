//! What differed between the variants besides the kernel.

use std::collections::{BTreeMap, BTreeSet};

use klab_model::{BoardName, Perturbation, TrialFacts, VariantName};
use serde::{Deserialize, Serialize};

/// What one trial reported about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialConditions<'a> {
    /// The variant that ran.
    pub variant: &'a VariantName,
    /// The board.
    pub board: &'a BoardName,
    /// The environment.
    pub facts: &'a TrialFacts,
    /// What the agent itself cost.
    pub perturbation: Perturbation,
}

/// A fact that is not the same for all variants on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentDifference {
    /// The board.
    pub board: BoardName,
    /// The fact: `cmdline`, `clocksource`, `governor` or `mitigation <name>`.
    pub fact: String,
    /// What each variant that ran there reported.
    pub values: Vec<VariantValue>,
}

/// What a variant reported about a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantValue {
    /// The variant.
    pub variant: VariantName,
    /// Every value that its trials reported, sorted; usually one.
    pub values: Vec<String>,
}

/// What the trials of one variant on one board report about their conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantConditions {
    /// The board.
    pub board: BoardName,
    /// The variant.
    pub variant: VariantName,
    /// The number of trials.
    pub trials: u32,
    /// The most that the agent disturbed any one trial; each field on its own.
    pub worst_perturbation: Perturbation,
    /// Lowest and highest temperature before a trial, over all thermal zones, in
    /// millidegrees Celsius; `None` without thermal zones.
    pub temperature: Option<(i64, i64)>,
    /// What was asked for and could not be had.
    pub notes: Vec<CountedNote>,
}

/// A note and how many trials made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedNote {
    /// The note.
    pub note: String,
    /// The number of trials.
    pub trials: u32,
}

/// Each fact's values by variant.
type Values<'a> = BTreeMap<&'a VariantName, BTreeSet<String>>;

/// The facts that were not the same for all variants, or not for all trials of one.
/// Sorted by board and fact; variants in the given order.
///
/// From the command line, markers of klab (`klab.*`) and the words that name the kernel
/// itself (`BOOT_IMAGE=`, `initrd=`) are left out; of the rest, the words that all trials
/// share are not repeated.
pub fn environment_differences(
    variants: &[VariantName],
    trials: &[TrialConditions<'_>],
) -> Vec<EnvironmentDifference> {
    let mut boards: BTreeMap<&BoardName, Vec<&TrialConditions<'_>>> = BTreeMap::new();
    for trial in trials {
        boards.entry(trial.board).or_default().push(trial);
    }
    let mut differences = Vec::new();
    for (board, trials) in boards {
        for (fact, values) in facts_of(&trials) {
            let distinct: BTreeSet<&String> = values.values().flatten().collect();
            if distinct.len() > 1 {
                differences.push(EnvironmentDifference {
                    board: board.clone(),
                    fact,
                    values: in_order(variants, &values),
                });
            }
        }
    }
    differences
}

fn in_order(variants: &[VariantName], values: &Values<'_>) -> Vec<VariantValue> {
    variants
        .iter()
        .filter_map(|variant| {
            Some(VariantValue {
                variant: variant.clone(),
                values: values.get(variant)?.iter().cloned().collect(),
            })
        })
        .collect()
}

fn facts_of<'a>(trials: &[&TrialConditions<'a>]) -> BTreeMap<String, Values<'a>> {
    let shared = shared_words(trials);
    let names: BTreeSet<&str> = trials
        .iter()
        .flat_map(|trial| &trial.facts.mitigations)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut facts: BTreeMap<String, Values<'a>> = BTreeMap::new();
    for trial in trials {
        let mut put = |fact: &str, value: String| {
            let values = facts.entry(fact.to_owned()).or_default();
            values.entry(trial.variant).or_default().insert(value);
        };
        put("cmdline", extra_words(&trial.facts.cmdline, &shared));
        put("clocksource", or_none(&trial.facts.clocksource));
        put("governor", governor(&trial.facts.governors));
        for name in &names {
            let state = trial.facts.mitigations.iter().find(|(n, _)| n == name);
            let state = state.map_or_else(|| "not listed".to_owned(), |(_, s)| or_none(s));
            put(&format!("mitigation {name}"), state);
        }
    }
    facts
}

fn or_none(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { "none" } else { text }.to_owned()
}

fn cmdline_words(cmdline: &str) -> impl Iterator<Item = &str> {
    let skipped = ["klab.", "BOOT_IMAGE=", "initrd="];
    cmdline
        .split_whitespace()
        .filter(move |word| !skipped.iter().any(|start| word.starts_with(start)))
}

fn shared_words<'a>(trials: &[&TrialConditions<'a>]) -> BTreeSet<&'a str> {
    let mut shared: Option<BTreeSet<&str>> = None;
    for trial in trials {
        let words: BTreeSet<&str> = cmdline_words(&trial.facts.cmdline).collect();
        shared = Some(match shared {
            Some(shared) => &shared & &words,
            None => words,
        });
    }
    shared.unwrap_or_default()
}

fn extra_words(cmdline: &str, shared: &BTreeSet<&str>) -> String {
    let extra: Vec<&str> = cmdline_words(cmdline)
        .filter(|word| !shared.contains(word))
        .collect();
    if extra.is_empty() {
        "nothing more".to_owned()
    } else {
        extra.join(" ")
    }
}

/// One word if all CPUs agree, else each governor with its CPUs.
fn governor(governors: &[String]) -> String {
    let mut cpus: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (cpu, governor) in governors.iter().enumerate() {
        cpus.entry(governor).or_default().push(cpu.to_string());
    }
    match cpus.len() {
        0 => "none".to_owned(),
        1 => or_none(&governors[0]),
        _ => cpus
            .iter()
            .map(|(governor, cpus)| format!("{} on CPU {}", or_none(governor), cpus.join(",")))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// The conditions of the trials by board (sorted) and variant (in the given order).
pub fn conditions(
    variants: &[VariantName],
    trials: &[TrialConditions<'_>],
) -> Vec<VariantConditions> {
    let boards: BTreeSet<&BoardName> = trials.iter().map(|trial| trial.board).collect();
    let mut all = Vec::new();
    for board in boards {
        for variant in variants {
            let own: Vec<_> = trials
                .iter()
                .filter(|trial| trial.board == board && trial.variant == variant)
                .collect();
            if !own.is_empty() {
                all.push(variant_conditions(board, variant, &own));
            }
        }
    }
    all
}

fn variant_conditions(
    board: &BoardName,
    variant: &VariantName,
    trials: &[&TrialConditions<'_>],
) -> VariantConditions {
    let worst = |field: fn(&Perturbation) -> u64| {
        let values = trials.iter().map(|trial| field(&trial.perturbation));
        values.max().unwrap_or_default()
    };
    let degrees = || {
        let zones = trials.iter().flat_map(|trial| &trial.facts.temperatures);
        zones.map(|(_, millidegrees)| *millidegrees)
    };
    let mut notes: BTreeMap<&str, u32> = BTreeMap::new();
    for trial in trials {
        let own: BTreeSet<&str> = trial.facts.notes.iter().map(String::as_str).collect();
        for note in own {
            *notes.entry(note).or_default() += 1;
        }
    }
    let counted = |(note, trials): (&str, u32)| CountedNote {
        note: note.to_owned(),
        trials,
    };
    VariantConditions {
        board: board.clone(),
        variant: variant.clone(),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
        worst_perturbation: Perturbation {
            wakeups: worst(|p| p.wakeups),
            preemptions: worst(|p| p.preemptions),
            cpu_us: worst(|p| p.cpu_us),
            rss_kib: worst(|p| p.rss_kib),
        },
        temperature: degrees().min().zip(degrees().max()),
        notes: notes.into_iter().map(counted).collect(),
    }
}
