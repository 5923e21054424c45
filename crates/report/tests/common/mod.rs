//! Made-up reports.

use klab_compare::{
    Input, Observation, RunRecord, SignificanceRule, TrialConditions, compare, conditions,
    environment_differences,
};
use klab_model::{
    Arch, BoardName, Digest, Failure, IdentityProof, Metric, Outcome, Perturbation, ResultFormat,
    Sample, TrialFacts, TrialIndex, Unit, VariantName,
};
use klab_report::{
    BoardLine, KernelLine, ParserVersion, Report, Schema, TraceEvidence, WorstTrace,
};

pub(crate) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u32) -> T {
    format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

pub(crate) fn board() -> BoardName {
    "vb1".parse().unwrap()
}

/// The values of one metric in one run; the run failed in its kernel if there are none.
pub(crate) struct Values<'a>(pub(crate) &'a str, pub(crate) &'a str, pub(crate) Vec<f64>);

pub(crate) fn input(variants: &[&str], runs: &[Values<'_>]) -> Input {
    let mut input = Input {
        variants: variants.iter().map(|v| v.parse().unwrap()).collect(),
        runs: Vec::new(),
        observations: Vec::new(),
        rule: SignificanceRule::default(),
        notes: Vec::new(),
    };
    for (number, Values(variant, metric, values)) in runs.iter().enumerate() {
        let number = number as u32;
        let variant: VariantName = variant.parse().unwrap();
        input.runs.push(RunRecord {
            run: id(number),
            variant: variant.clone(),
            board: Some(board()),
            attempts: 1,
            outcome: Some(if values.is_empty() {
                Outcome::Failed(Failure::kernel("panic"))
            } else {
                Outcome::Done
            }),
        });
        for (trial, value) in values.iter().enumerate() {
            input.observations.push(Observation {
                variant: variant.clone(),
                run: id(number),
                attempt: 1,
                round: number / variants.len() as u32,
                board: board(),
                trial: TrialIndex(trial as u32),
                artifact: id(100 * (number + 1) + trial as u32),
                sample: sample(metric, *value),
            });
        }
    }
    input
}

fn sample(metric: &str, value: f64) -> Sample {
    let metric: Metric = metric.parse().unwrap();
    let higher = metric.as_str().ends_with("bogo-ops");
    let (unit, direction) = if higher {
        (Unit::BogoOpsPerSecond, "higher")
    } else {
        (Unit::Microseconds, "lower")
    };
    Sample {
        metric,
        value,
        unit,
        direction: direction.parse().unwrap(),
    }
}

/// A report with nothing but its comparison.
pub(crate) fn bare(input: &Input) -> Report {
    Report {
        schema: Schema::V1,
        klab_version: "0.1.0".to_owned(),
        job: id(7),
        plan: "rt-latency".parse().unwrap(),
        rounds: 2,
        kernels: Vec::new(),
        boards: Vec::new(),
        environment: Vec::new(),
        conditions: Vec::new(),
        worst_traces: Vec::new(),
        parsers: Vec::new(),
        comparison: compare(input).unwrap(),
        notes: Vec::new(),
    }
}

fn kernel(variant: &str, release: &str, proof: Option<IdentityProof>) -> KernelLine {
    KernelLine {
        variant: variant.parse().unwrap(),
        kernel: format!("linux-{variant}").parse().unwrap(),
        arch: Arch::X86_64,
        release: release.to_owned(),
        build_id: match &proof {
            Some(IdentityProof::BuildId(id)) => Some(id.clone()),
            _ => None,
        },
        proof,
    }
}

fn facts(cmdline: &str, notes: &[&str]) -> TrialFacts {
    TrialFacts {
        cmdline: cmdline.to_owned(),
        clocksource: "tsc".to_owned(),
        governors: vec!["performance".to_owned(); 4],
        mitigations: vec![("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())],
        temperatures: vec![("cpu".to_owned(), 41_250)],
        notes: notes.iter().map(|n| (*n).to_owned()).collect(),
    }
}

/// Two rounds of three variants, the last of which never booted.
pub(crate) fn full() -> Report {
    let latency = "cyclictest.latency.max";
    let ops = "stress-ng.vm.bogo-ops";
    let mut runs = Vec::new();
    for round in 0..2_u32 {
        let f = f64::from(round);
        runs.push(Values("base", latency, vec![120.0 + f, 260.0, 131.0]));
        runs.push(Values("rt", latency, vec![41.0, 43.0 + f, 251.0]));
        runs.push(Values("v2", latency, vec![]));
        runs.push(Values("base", ops, vec![1000.5 + f, 1001.25]));
        runs.push(Values("rt", ops, vec![901.0 - f, 902.5]));
    }
    let mut input = input(&["base", "rt", "v2"], &runs);
    // One attempt of the second run was repeated.
    input.runs[1].attempts = 2;
    for observation in &mut input.observations {
        if observation.run == id(1) {
            observation.attempt = 2;
        }
    }
    input.notes = vec!["rounds were run in a balanced order".to_owned()];
    let mut report = bare(&input);
    report.kernels = vec![
        kernel(
            "base",
            "6.12.43+deb13-amd64",
            Some(IdentityProof::BuildId(
                "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334".parse().unwrap(),
            )),
        ),
        kernel(
            "rt",
            "6.12.43+deb13-rt-amd64",
            Some(IdentityProof::ImageDigest(Digest::of(b"image"))),
        ),
        kernel("v2", "6.18.0-rc1", None),
    ];
    report.boards = vec![BoardLine {
        board: board(),
        arch: Arch::X86_64,
        model: "QEMU Standard PC (Q35 + ICH9, 2009)".to_owned(),
        cpus: 4,
        memory_kib: 2_097_152,
    }];
    fill_conditions(&mut report);
    fill_traces(&mut report);
    report.parsers = vec![
        ParserVersion {
            format: ResultFormat::CyclictestJson,
            version: 1,
        },
        ParserVersion {
            format: ResultFormat::StressNgYaml,
            version: 2,
        },
    ];
    report.notes = vec!["board vb1 is virtual | its clock is the host's".to_owned()];
    report
}

fn fill_conditions(report: &mut Report) {
    let (base, rt): (VariantName, VariantName) = ("base".parse().unwrap(), "rt".parse().unwrap());
    let all = [
        (&base, facts("ro quiet klab.run=1", &[])),
        (
            &rt,
            facts(
                "ro quiet threadirqs klab.run=2",
                &["kernel has no wakeup_rt"],
            ),
        ),
        (&rt, facts("ro quiet threadirqs klab.run=3", &[])),
    ];
    let board = board();
    let trials: Vec<TrialConditions<'_>> = all
        .iter()
        .enumerate()
        .map(|(n, (variant, facts))| TrialConditions {
            variant,
            board: &board,
            facts,
            perturbation: Perturbation {
                wakeups: 2 + n as u64,
                preemptions: 0,
                cpu_us: 310,
                rss_kib: 6144,
            },
        })
        .collect();
    report.environment = environment_differences(&report.comparison.variants, &trials);
    report.conditions = conditions(&report.comparison.variants, &trials);
}

fn fill_traces(report: &mut Report) {
    let section = report.comparison.boards[0].clone();
    for (number, (metric, worst)) in section.worst_latency_trials().into_iter().enumerate() {
        let evidence = if number == 0 {
            TraceEvidence::Latency {
                tracer: "wakeup_rt".to_owned(),
                latency_us: 258,
                artifact: id(4242),
                file: "trace.txt".parse().unwrap(),
            }
        } else {
            TraceEvidence::Missing {
                reason: "kernel has no wakeup_rt (noted)".to_owned(),
            }
        };
        let entry = WorstTrace::new(&section.board, metric, worst, evidence);
        report.worst_traces.push(entry);
    }
}
