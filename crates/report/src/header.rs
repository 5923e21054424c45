//! The blocks above the numbers: kernels, boards, environment.

use klab_compare::{EnvironmentDifference, VariantSummary};
use klab_model::{BoardName, IdentityProof};

use crate::{KernelLine, Report, Table};

/// One line: the job, its plan, its rounds.
pub(crate) fn title(report: &Report) -> String {
    let rounds = match report.rounds {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    format!("job {}, plan {}, {rounds}", report.job, report.plan)
}

pub(crate) fn kernels(report: &Report) -> Table {
    let mut table = Table::new([
        "variant",
        "kernel",
        "arch",
        "release",
        "build-id",
        "proved by",
    ]);
    for kernel in &report.kernels {
        let build_id = kernel.build_id.as_ref();
        table.row([
            kernel.variant.to_string(),
            kernel.kernel.to_string(),
            kernel.arch.to_string(),
            kernel.release.clone(),
            build_id.map_or_else(|| "none".to_owned(), ToString::to_string),
            proof(kernel),
        ]);
    }
    table
}

fn proof(kernel: &KernelLine) -> String {
    match &kernel.proof {
        None => "not proved (no run got that far)".to_owned(),
        Some(IdentityProof::BuildId(id)) if kernel.build_id.as_ref() == Some(id) => {
            "build-id".to_owned()
        }
        Some(IdentityProof::BuildId(id)) => format!("build-id {id}"),
        Some(IdentityProof::ImageDigest(digest)) => {
            format!("image digest {} (kernel exposes no notes)", digest.short())
        }
    }
}

pub(crate) fn boards(report: &Report) -> Table {
    let mut table = Table::new(["board", "arch", "model", "CPUs", "memory"])
        .right(3)
        .right(4);
    for board in &report.boards {
        table.row([
            board.board.to_string(),
            board.arch.to_string(),
            board.model.clone(),
            board.cpus.to_string(),
            format!("{} MiB", board.memory_kib / 1024),
        ]);
    }
    table
}

/// The facts that differ on one board, a row per fact and variant.
pub(crate) fn environment<'a>(
    differences: impl IntoIterator<Item = &'a EnvironmentDifference>,
) -> Table {
    let mut table = Table::new(["fact", "variant", "value"]);
    for difference in differences {
        for value in &difference.values {
            table.row([
                difference.fact.clone(),
                value.variant.to_string(),
                value.values.join(" | "),
            ]);
        }
    }
    table
}

/// What each variant contributed on one board.
pub(crate) fn runs(summaries: &[VariantSummary]) -> Table {
    let titles = [
        "variant",
        "trials",
        "runs done",
        "kernel failed",
        "workload failed",
        "infra failed",
        "infra repeats",
        "cancelled",
        "not ended",
    ];
    let mut table = Table::new(titles);
    for column in 1..titles.len() {
        table = table.right(column);
    }
    for summary in summaries {
        let runs = &summary.runs;
        let counts = [
            summary.trials,
            runs.done,
            runs.kernel_failed,
            runs.workload_failed,
            runs.infrastructure_failed,
            runs.repeated_attempts,
            runs.cancelled,
            runs.unfinished,
        ];
        let counts = counts.iter().map(ToString::to_string);
        table.row(std::iter::once(summary.variant.to_string()).chain(counts));
    }
    table
}

/// Why variants have no samples on a board at all, one sentence each.
pub(crate) fn absences(summaries: &[VariantSummary]) -> Vec<String> {
    let reason = |summary: &VariantSummary| {
        let reason = summary.absent?;
        Some(format!("{}: no samples: {reason}", summary.variant))
    };
    summaries.iter().filter_map(reason).collect()
}

/// What is said where no fact differs: that all were alike, or that nothing is known.
pub(crate) fn no_differences(report: &Report, board: &BoardName) -> &'static str {
    if report.conditions.iter().any(|c| c.board == *board) {
        "Environment: no differences between variants"
    } else {
        "Environment: not known, no trial reported it"
    }
}
