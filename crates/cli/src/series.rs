//! `klab series`.

use std::path::{Path, PathBuf};

use klab_report::Table;
use klab_series::{
    BaseSummary, ChangeKind, FileSummary, GitError, Options, PatchSummary, SeriesError, Source,
    Summary, TrailerSummary,
};

use crate::args::{Global, SeriesCommand};
use crate::exit::{CliError, ExitCode};
use crate::output;

pub(crate) fn run(global: &Global, command: SeriesCommand) -> Result<ExitCode, CliError> {
    match command {
        SeriesCommand::Show {
            file,
            revision,
            tree,
        } => {
            let summary = summary(&file, revision, tree.as_deref())?;
            if global.json {
                let json = serde_json::to_value(&summary).map_err(CliError::infrastructure)?;
                output::json(&json)?;
            } else {
                output::line(describe(&summary))?;
            }
        }
    }
    Ok(ExitCode::Done)
}

fn summary(
    file: &Path,
    revision: Option<u32>,
    tree: Option<&Path>,
) -> Result<Summary, SeriesError> {
    let source = Source::parse(file, |tree| PathBuf::from(tree))?;
    let series = klab_series::read(&source, &Options { revision })?;
    let tree = match (tree, &source) {
        (None, Source::Range(range)) => Some(range.tree.as_path()),
        (tree, _) => tree,
    };
    let finding = tree.map(|tree| klab_series::find_base(&series, tree));
    Ok(Summary::new(&series, finding.transpose()?.as_ref()))
}

impl From<SeriesError> for CliError {
    fn from(error: SeriesError) -> Self {
        let refused = Self::refused(&error);
        match error {
            SeriesError::Git(GitError::Start { .. } | GitError::Output { .. }) => Self {
                code: ExitCode::Infrastructure,
                ..refused
            },
            _ => refused,
        }
    }
}

/// What was understood, in words.
fn describe(summary: &Summary) -> String {
    let mut parts = vec![head(summary), patches(summary)];
    let total = summary.patches.len();
    let cover = lines(&summary.cover_trailers, || format!("0/{total}"));
    let given = summary
        .patches
        .iter()
        .flat_map(|patch| lines(&patch.trailers, move || format!("{}/{total}", patch.number)));
    let given: Vec<String> = cover.into_iter().chain(given).collect();
    for (title, lines) in [
        ("trailers of replies", given),
        ("warnings", summary.warnings.clone()),
    ] {
        if !lines.is_empty() {
            parts.push(format!("{title}\n  {}\n", lines.join("\n  ")));
        }
    }
    parts.join("\n")
}

fn head(summary: &Summary) -> String {
    let mut table = Table::new(["series", &summary.subject]);
    table.row(["author", &summary.author]);
    if !summary.sent_at.is_empty() {
        table.row(["sent", &summary.sent_at]);
    }
    table.row(["revision", &revision(summary)]);
    if !summary.tags.is_empty() {
        table.row(["tags", &summary.tags.join(", ")]);
    }
    if !summary.change_id.is_empty() {
        table.row(["change-id", &summary.change_id]);
    }
    table.row(["base", &base(summary)]);
    for needed in &summary.prerequisites {
        table.row(["needs", needed]);
    }
    table.to_string()
}

fn revision(summary: &Summary) -> String {
    let others: Vec<String> = summary
        .other_revisions
        .iter()
        .map(|revision| format!("v{revision}"))
        .collect();
    match others.as_slice() {
        [] => format!("v{}", summary.revision),
        others => format!("v{}, also here: {}", summary.revision, others.join(", ")),
    }
}

fn base(summary: &Summary) -> String {
    match &summary.base {
        Some(BaseSummary {
            commit,
            reference,
            matched,
            total,
        }) if !reference.is_empty() => format!(
            "{reference} ({commit}), guessed: {matched} of {} as the series expects",
            match total {
                1 => "1 file is".to_owned(),
                total => format!("{total} files are"),
            }
        ),
        Some(found) => format!("{}, which is in the tree", found.commit),
        None if summary.base_commit.is_empty() => "not named".to_owned(),
        None => summary.base_commit.clone(),
    }
}

fn patches(summary: &Summary) -> String {
    let mut table = Table::new(["", "PATCH", "FILE", "+", "-", "NOTE"])
        .right(3)
        .right(4);
    let total = summary.patches.len();
    for patch in &summary.patches {
        for (index, file) in patch.files.iter().enumerate() {
            let first = |text: String| if index == 0 { text } else { String::new() };
            table.row([
                first(format!("{}/{total}", patch.number)),
                first(patch.subject.clone()),
                file.path.clone(),
                file.insertions.to_string(),
                file.deletions.to_string(),
                note(file),
            ]);
        }
    }
    let files = |patch: &PatchSummary| patch.files.iter().map(|file| file.path.clone()).collect();
    let files: Vec<Vec<String>> = summary.patches.iter().map(files).collect();
    let files: std::collections::BTreeSet<String> = files.into_iter().flatten().collect();
    format!(
        "{table}{}, {}, {}, {}\n",
        output::counted(total as u64, "patch", "patches"),
        output::counted(files.len() as u64, "file", "files"),
        output::counted(summary.insertions, "insertion", "insertions"),
        output::counted(summary.deletions, "deletion", "deletions"),
    )
}

/// What a file's line does not say.
fn note(file: &FileSummary) -> String {
    let mut notes = match file.kind {
        ChangeKind::Modified => Vec::new(),
        ChangeKind::Added => vec!["new".to_owned()],
        ChangeKind::Deleted => vec!["deleted".to_owned()],
        ChangeKind::Renamed => vec![format!("renamed from {}", file.old_path)],
        ChangeKind::Copied => vec![format!("copied from {}", file.old_path)],
    };
    if file.binary {
        notes.push("binary".to_owned());
    }
    match (file.old_mode, file.new_mode) {
        (Some(old), Some(new)) if old != new => notes.push(format!("mode {old} to {new}")),
        (None, Some(new)) if !new.is_regular() => notes.push(format!("mode {new}")),
        _ => {}
    }
    notes.join(", ")
}

/// The trailers that came with replies.
fn lines(trailers: &[TrailerSummary], number: impl Fn() -> String) -> Vec<String> {
    trailers
        .iter()
        .filter(|trailer| !trailer.reply.is_empty())
        .map(|trailer| format!("{}  {}: {}", number(), trailer.name, trailer.value))
        .collect()
}
