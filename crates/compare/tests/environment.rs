//! What differed between variants besides the kernel.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use klab_compare::{EnvironmentDifference, TrialConditions, conditions, environment_differences};
use klab_model::{BoardName, Perturbation, TrialFacts, VariantName};

struct Trial(VariantName, TrialFacts, Perturbation);

fn facts(cmdline: &str) -> TrialFacts {
    TrialFacts {
        cmdline: cmdline.to_owned(),
        clocksource: "tsc".to_owned(),
        governors: vec!["performance".to_owned(); 2],
        ..TrialFacts::default()
    }
}

fn trial(variant: &str, facts: TrialFacts) -> Trial {
    Trial(variant.parse().unwrap(), facts, Perturbation::default())
}

fn with<T>(trials: &[Trial], f: impl Fn(&[VariantName], &[TrialConditions<'_>]) -> T) -> T {
    let board: BoardName = "vb1".parse().unwrap();
    let variants: Vec<VariantName> = vec!["base".parse().unwrap(), "rt".parse().unwrap()];
    let trials: Vec<TrialConditions<'_>> = trials
        .iter()
        .map(|Trial(variant, facts, perturbation)| TrialConditions {
            variant,
            board: &board,
            facts,
            perturbation: *perturbation,
        })
        .collect();
    f(&variants, &trials)
}

fn lines(differences: &[EnvironmentDifference]) -> Vec<String> {
    let value = |v: &klab_compare::VariantValue| format!("{}: {}", v.variant, v.values.join(" | "));
    differences
        .iter()
        .map(|d| {
            let values: Vec<String> = d.values.iter().map(value).collect();
            format!("{} = {}", d.fact, values.join(", "))
        })
        .collect()
}

#[test]
fn the_same_environment_has_no_differences() {
    let trials = [
        trial(
            "base",
            facts("BOOT_IMAGE=/boot/a ro quiet klab.run=1 initrd=/a"),
        ),
        trial("rt", facts("BOOT_IMAGE=/boot/b ro  quiet klab.run=2")),
    ];
    assert!(with(&trials, environment_differences).is_empty());
    assert!(with(&[], environment_differences).is_empty());
}

#[test]
fn each_kind_of_difference_is_listed_once() {
    let mut rt = facts("ro quiet threadirqs klab.run=2");
    rt.clocksource = "hpet".to_owned();
    rt.governors = vec![
        "performance".to_owned(),
        "powersave".to_owned(),
        "performance".to_owned(),
    ];
    rt.mitigations = vec![("spectre_v2".to_owned(), "Vulnerable".to_owned())];
    let trials = [
        trial("base", facts("ro quiet klab.run=1")),
        trial("rt", rt),
        trial("rt", facts("ro quiet klab.run=3")),
    ];
    assert_eq!(
        lines(&with(&trials, environment_differences)),
        [
            "clocksource = base: tsc, rt: hpet | tsc",
            "cmdline = base: nothing more, rt: nothing more | threadirqs",
            "governor = base: performance, rt: performance | performance on CPU 0,2; powersave on CPU 1",
            "mitigation spectre_v2 = base: not listed, rt: Vulnerable | not listed",
        ]
    );
}

#[test]
fn conditions_are_the_extremes_of_the_trials() {
    let mut trials = [
        trial("rt", facts("")),
        trial("rt", facts("")),
        trial("base", facts("")),
    ];
    trials[0].1.temperatures = vec![("cpu".to_owned(), 41_000), ("gpu".to_owned(), 39_500)];
    trials[1].1.temperatures = vec![("cpu".to_owned(), 47_250)];
    trials[0].1.notes = vec!["no wakeup_rt".to_owned(), "no wakeup_rt".to_owned()];
    trials[1].1.notes = vec!["no wakeup_rt".to_owned()];
    trials[0].2.wakeups = 7;
    trials[1].2.cpu_us = 900;
    trials[0].2.rss_kib = 5120;
    let found = with(&trials, conditions);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].variant.as_str(), "base");
    assert_eq!(found[0].temperature, None);
    let rt = &found[1];
    assert_eq!((rt.trials, rt.temperature), (2, Some((39_500, 47_250))));
    assert_eq!(
        rt.worst_perturbation,
        Perturbation {
            wakeups: 7,
            preemptions: 0,
            cpu_us: 900,
            rss_kib: 5120,
        }
    );
    assert_eq!(
        (rt.notes[0].note.as_str(), rt.notes[0].trials),
        ("no wakeup_rt", 2)
    );
}
