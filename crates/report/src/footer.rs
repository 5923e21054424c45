//! The blocks below the numbers: conditions, worst trials, rules, notes.

use klab_compare::VariantConditions;
use klab_model::BoardName;

use crate::number::number;
use crate::{Report, Table, TraceEvidence, WorstTrace, counting};

const ENVIRONMENT_RULE: &str = "Environment: of the command line only the words that some trials \
    lack are shown; klab.*, BOOT_IMAGE= and initrd= always differ and are not compared.";

/// What the agent cost and how warm it was, on one board.
pub(crate) fn conditions(report: &Report, board: &BoardName) -> Table {
    let mut table = Table::new([
        "variant",
        "trials",
        "wake-ups",
        "preemptions",
        "CPU us",
        "RSS KiB",
        "deg C",
    ])
    .right(1)
    .right(2)
    .right(3)
    .right(4)
    .right(5);
    for conditions in of_board(report, board) {
        let worst = &conditions.worst_perturbation;
        table.row([
            conditions.variant.to_string(),
            conditions.trials.to_string(),
            worst.wakeups.to_string(),
            worst.preemptions.to_string(),
            worst.cpu_us.to_string(),
            worst.rss_kib.to_string(),
            temperature(conditions),
        ]);
    }
    table
}

fn of_board<'a>(
    report: &'a Report,
    board: &'a BoardName,
) -> impl Iterator<Item = &'a VariantConditions> {
    report.conditions.iter().filter(move |c| c.board == *board)
}

fn temperature(conditions: &VariantConditions) -> String {
    let degrees = |millidegrees: i64| {
        let sign = if millidegrees < 0 { "-" } else { "" };
        let tenths = (millidegrees.unsigned_abs() + 50) / 100;
        format!("{sign}{}.{}", tenths / 10, tenths % 10)
    };
    match conditions.temperature {
        Some((low, high)) => format!("{} to {}", degrees(low), degrees(high)),
        None => "not known".to_owned(),
    }
}

/// What trials on a board asked for and could not have, one sentence each.
pub(crate) fn trial_notes(report: &Report, board: &BoardName) -> Vec<String> {
    let mut lines = Vec::new();
    for conditions in of_board(report, board) {
        for note in &conditions.notes {
            lines.push(format!(
                "{}: {} (noted by {} of {} trials)",
                conditions.variant, note.note, note.trials, conditions.trials
            ));
        }
    }
    lines
}

/// The worst trials on a board, a line each.
pub(crate) fn worst_trials(report: &Report, board: &BoardName) -> Vec<String> {
    let own = report.worst_traces.iter().filter(|w| w.board == *board);
    own.map(worst_trial).collect()
}

fn worst_trial(worst: &WorstTrace) -> String {
    let trace = match &worst.trace {
        TraceEvidence::Latency {
            tracer,
            latency_us,
            artifact,
            file,
        } => format!("{tracer} {latency_us} us, artifact {artifact} {file}"),
        TraceEvidence::Missing { reason } => reason.clone(),
    };
    format!(
        "worst trial: {} round {} trial {}: {} {} {}; {trace}",
        worst.variant,
        counting::number(worst.round),
        counting::number(worst.trial.0),
        worst.metric,
        number(worst.value, 2),
        worst.unit
    )
}

/// The rules and what was left out, a paragraph each.
pub(crate) fn rules(report: &Report) -> Vec<String> {
    let provenance = &report.comparison.provenance;
    let reference = report.comparison.variants.first();
    let mut lines = vec![
        format!(
            "Change: {}{}.",
            provenance.change_rule,
            reference.map_or_else(String::new, |name| format!(
                " (here the first variant is {name})"
            ))
        ),
        format!("Stars: {}.", provenance.significance_rule),
        format!("Means: {}.", provenance.mean_rule),
        format!("Percentiles: {}.", provenance.percentile_rule),
        format!(
            "Left out: {} ({} samples here).",
            provenance.exclusion_rule, provenance.excluded_samples
        ),
    ];
    if provenance.unplaced_runs > 0 {
        lines.push(format!(
            "Not placed: {} runs have no board yet.",
            provenance.unplaced_runs
        ));
    }
    lines.push(
        "A dash stands for a number that does not exist: no samples, or the spread of one sample."
            .to_owned(),
    );
    if !report.environment.is_empty() {
        lines.push(ENVIRONMENT_RULE.to_owned());
    }
    lines.push(format!("{}klab {}.", parsers(report), report.klab_version));
    lines
}

fn parsers(report: &Report) -> String {
    if report.parsers.is_empty() {
        return String::new();
    }
    let parser = |p: &crate::ParserVersion| format!("{} v{}", p.format.as_str(), p.version);
    let parsers: Vec<String> = report.parsers.iter().map(parser).collect();
    format!("Parsers: {}. ", parsers.join(", "))
}

/// Sentences for people, from the report and its comparison.
pub(crate) fn notes(report: &Report) -> impl Iterator<Item = &String> {
    report.comparison.notes.iter().chain(&report.notes)
}
