//! Hunks: counted against their headers.

use super::{At, PatchProblem};
use crate::display::defuse;

/// Lines of one hunk.
pub(super) struct Counts {
    pub(super) insertions: u32,
    pub(super) deletions: u32,
}

/// Reads one hunk. Its added lines are appended to `added` while they are few: the target
/// of a symbolic link is the one added line of its diff.
pub(super) fn read(
    lines: &[&str],
    at: &mut usize,
    path: &str,
    added: &mut String,
) -> Result<Counts, At> {
    let begins = *at;
    let header = lines[begins];
    let (mut old, mut new) = ranges(header).ok_or_else(|| At {
        line: begins,
        problem: PatchProblem::HunkHeader {
            found: defuse(header),
        },
    })?;
    let mut counts = Counts {
        insertions: 0,
        deletions: 0,
    };
    *at += 1;
    while old > 0 || new > 0 {
        let fail = |problem| At { line: *at, problem };
        let path = || path.to_owned();
        let Some(line) = lines.get(*at).map(|line| line.trim_end_matches('\r')) else {
            let problem = PatchProblem::HunkCut {
                path: path(),
                old,
                new,
            };
            return Err(At {
                line: lines.len().saturating_sub(1),
                problem,
            });
        };
        // An unchanged empty line may have lost its blank; git takes it, too.
        let (minus, plus) = match line.as_bytes().first() {
            None | Some(b' ') => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ if line.starts_with('\u{a0}') => {
                return Err(fail(PatchProblem::NoBreakSpace { path: path() }));
            }
            _ => {
                return Err(fail(PatchProblem::HunkLine {
                    path: path(),
                    found: defuse(line),
                }));
            }
        };
        if minus > old || plus > new {
            return Err(fail(PatchProblem::HunkTooLong {
                path: path(),
                header: defuse(header),
            }));
        }
        old -= minus;
        new -= plus;
        counts.deletions += u32::from(plus == 0 && minus == 1);
        counts.insertions += u32::from(plus == 1 && minus == 0);
        if let Some(text) = line.strip_prefix('+')
            && added.len() < crate::limits::MAX_PATH
        {
            added.push_str(text);
        }
        *at += 1;
    }
    while lines.get(*at).is_some_and(|line| line.starts_with("\\ ")) {
        *at += 1;
    }
    Ok(counts)
}

/// `@@ -1,4 +1,5 @@`: the two counts, 1 where there is none.
fn ranges(header: &str) -> Option<(u32, u32)> {
    let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| {
        let (line, count) = range.split_once(',').unwrap_or((range, "1"));
        line.parse::<u32>().ok()?;
        count.parse::<u32>().ok()
    };
    Some((count(old)?, count(new)?))
}

/// What follows the last hunk of a file: another file, the end of the patch, or lines that
/// the hunk's header did not count.
pub(super) fn check_after(
    lines: &[&str],
    at: usize,
    path: &str,
    header: &str,
    trailing: &mut Vec<String>,
) -> Result<(), At> {
    let Some(line) = lines.get(at).map(|line| line.trim_end_matches('\r')) else {
        return Ok(());
    };
    let ends = line.trim_end().is_empty()
        || line.starts_with("--")
        || line.starts_with("diff ")
        || line.starts_with("Index: ")
        || line.starts_with("===");
    if ends {
        Ok(())
    } else if line.starts_with([' ', '+', '-']) {
        let problem = PatchProblem::HunkTooLong {
            path: path.to_owned(),
            header: defuse(header),
        };
        Err(At { line: at, problem })
    } else {
        trailing.push(line.to_owned());
        Ok(())
    }
}
