//! The report as Markdown (GitHub tables).

use klab_compare::{BoardComparison, MetricComparison};
use klab_model::VariantName;

use crate::table::one_line;
use crate::{Report, Table, footer, grid, header, number};

/// The same report as [`text`](crate::text), as Markdown. A starred change is bold.
pub fn markdown(report: &Report) -> String {
    let mut out = format!("# klab report\n\n{}\n", escaped(&header::title(report)));
    block(&mut out, "## Kernels", &header::kernels(report));
    block(&mut out, "## Boards", &header::boards(report));
    for board in &report.comparison.boards {
        out.push_str(&section(report, board));
    }
    if report.comparison.boards.is_empty() {
        out.push_str("\nNo run has a board yet: there is nothing to compare.\n");
    }
    list(&mut out, "## How to read this", footer::rules(report));
    list(
        &mut out,
        "## Notes",
        footer::notes(report).cloned().collect(),
    );
    out
}

fn section(report: &Report, board: &BoardComparison) -> String {
    let name = &board.board;
    let mut out = format!("\n## Board {}\n", escaped(name.as_str()));
    if board.metrics.is_empty() {
        out.push_str("\nNo samples.\n");
    }
    for metric in &board.metrics {
        let title = format!("### {}", escaped(&grid::heading(metric)));
        out.push_str(&format!("\n{title}\n\n"));
        out.push_str(&numbers(&report.comparison.variants, metric));
        list(&mut out, "", grid::absences(board, metric));
    }
    block(&mut out, "### Runs", &header::runs(&board.variants));
    list(&mut out, "", header::absences(&board.variants));
    let differences = report.environment.iter().filter(|d| d.board == *name);
    let differences = header::environment(differences);
    if differences.is_empty() {
        out.push_str(&format!("\n{}.\n", header::no_differences(report, name)));
    }
    block(
        &mut out,
        "### Environment differences between variants",
        &differences,
    );
    let conditions = footer::conditions(report, name);
    let title = "### Agent, most in any one trial; temperature before trials";
    block(&mut out, title, &conditions);
    list(&mut out, "", footer::trial_notes(report, name));
    list(
        &mut out,
        "### Worst trials",
        footer::worst_trials(report, name),
    );
    out
}

fn numbers(variants: &[VariantName], metric: &MetricComparison) -> String {
    let decimals = number::decimals(&metric.rows);
    let titles = variants.iter().map(ToString::to_string);
    let mut table = Table::new(std::iter::once(String::new()).chain(titles));
    for column in 1..=variants.len() {
        table = table.right(column);
    }
    let mut text = head(&table);
    for row in &metric.rows {
        let mut line = format!("| {} |", row.statistic);
        for cell in &row.cells {
            let value = number::value(row.statistic, cell, decimals);
            let change = match number::change(cell) {
                Some(change) if cell.significant => format!(" (**{change}**)"),
                Some(change) => format!(" ({change})"),
                None => String::new(),
            };
            line.push_str(&format!(" {value}{change} |"));
        }
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn head(table: &Table) -> String {
    let titles = line(table.header());
    let rules = (0..table.header().len())
        .map(|column| {
            if table.is_right(column) {
                "---:|"
            } else {
                "---|"
            }
        })
        .collect::<String>();
    format!("{titles}|{rules}\n")
}

fn line(cells: &[String]) -> String {
    let cells: String = cells
        .iter()
        .map(|cell| format!(" {} |", escaped(cell)))
        .collect();
    format!("|{cells}\n")
}

fn block(out: &mut String, title: &str, table: &Table) {
    if !table.is_empty() {
        let rows: String = table.rows().iter().map(|row| line(row)).collect();
        out.push_str(&format!("\n{title}\n\n{}{rows}", head(table)));
    }
}

fn list(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    if !title.is_empty() {
        out.push_str(&format!("\n{title}\n"));
    }
    out.push('\n');
    for line in lines {
        out.push_str(&format!("- {}\n", escaped(&line)));
    }
}

/// Text that Markdown would read as mark-up. `_` inside words is left alone: it is plain
/// there, and names are full of it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text.to_owned()).chars() {
        if "\\`*|<>[]#".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
