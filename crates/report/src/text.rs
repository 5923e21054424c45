//! The report as plain text.

use klab_compare::BoardComparison;

use crate::table::one_line;
use crate::{Report, Table, footer, grid, header};

/// Prose is broken here; tables and names are not.
const LINE: usize = 78;

/// The report in the layout of `compare-mmtests.pl`, with where every number comes from.
/// No blanks at line ends, one newline at the end.
pub fn text(report: &Report) -> String {
    let mut out = format!("klab report: {}\n", header::title(report));
    block(&mut out, "Kernels", header::kernels(report));
    block(&mut out, "Boards", header::boards(report));
    for board in &report.comparison.boards {
        out.push_str(&section(report, board));
    }
    if report.comparison.boards.is_empty() {
        out.push_str("\nNo run has a board yet: there is nothing to compare.\n");
    }
    out.push_str("\nHow to read this\n");
    for rule in footer::rules(report) {
        paragraph(&mut out, &rule);
    }
    let mut notes = footer::notes(report).peekable();
    if notes.peek().is_some() {
        out.push_str("\nNotes\n");
    }
    for note in notes {
        paragraph(&mut out, note);
    }
    out
}

fn section(report: &Report, board: &BoardComparison) -> String {
    let name = &board.board;
    let mut out = format!("\nBoard {name}\n\n");
    if board.metrics.is_empty() {
        out.push_str("No samples.\n");
    } else {
        out.push_str(&grid::grid(&report.comparison.variants, board));
    }
    block(
        &mut out,
        &format!("Runs on {name}"),
        header::runs(&board.variants),
    );
    for line in header::absences(&board.variants) {
        paragraph(&mut out, &line);
    }
    let differences = report.environment.iter().filter(|d| d.board == *name);
    let differences = header::environment(differences);
    if differences.is_empty() {
        out.push_str(&format!(
            "\n{} on {name}\n",
            header::no_differences(report, name)
        ));
    }
    let title = format!("Environment differences between variants on {name}");
    block(&mut out, &title, differences);
    let title = format!("Agent on {name}, most in any one trial; temperature before trials");
    block(&mut out, &title, footer::conditions(report, name));
    for line in footer::trial_notes(report, name) {
        paragraph(&mut out, &line);
    }
    let worst = footer::worst_trials(report, name);
    if !worst.is_empty() {
        out.push_str(&format!("\nWorst trials on {name}\n"));
    }
    for line in worst {
        // Unbroken, so that it can be searched for and copied.
        out.push_str(&format!("  {}\n", one_line(line)));
    }
    out
}

fn block(out: &mut String, title: &str, table: Table) {
    if !table.is_empty() {
        out.push_str(&format!("\n{title}\n{}", table.indent(2)));
    }
}

/// Words in lines of at most [`LINE`] characters, later lines indented deeper. A longer
/// word gets a line of its own.
fn paragraph(out: &mut String, text: &str) {
    let mut line = String::from(" ");
    let mut empty = true;
    for word in text.split_whitespace() {
        let word = one_line(word.to_owned());
        if !empty && line.chars().count() + 1 + word.chars().count() > LINE {
            out.push_str(&line);
            out.push('\n');
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(&word);
        empty = false;
    }
    if !empty {
        out.push_str(&line);
        out.push('\n');
    }
}
