//! Binary patches: the form of git's base85 lines is checked, not their content.

use super::{At, PatchProblem};

/// Characters of git's base85 besides letters and digits.
const PUNCTUATION: &[u8] = b"!#$%&()*+-;<=>?@^_`{|}~";

/// Skips `GIT binary patch` with its one or two hunks.
pub(super) fn skip(lines: &[&str], at: &mut usize) -> Result<(), At> {
    *at += 1;
    hunk(lines, at, "has no content")?;
    // The way back is optional.
    if lines.get(*at).is_some_and(|line| is_size(line)) {
        hunk(lines, at, "is cut short")?;
    }
    Ok(())
}

/// `literal 123` or `delta 123`.
fn is_size(line: &str) -> bool {
    let size = line
        .strip_prefix("literal ")
        .or_else(|| line.strip_prefix("delta "));
    size.is_some_and(|size| size.trim_end().parse::<u64>().is_ok())
}

fn hunk(lines: &[&str], at: &mut usize, missing: &'static str) -> Result<(), At> {
    let fail = |line: usize, found: &'static str| At {
        line,
        problem: PatchProblem::Binary { found },
    };
    if !lines.get(*at).is_some_and(|line| is_size(line)) {
        return Err(fail((*at).min(lines.len().saturating_sub(1)), missing));
    }
    *at += 1;
    let mut data = 0;
    loop {
        let Some(line) = lines.get(*at).map(|line| line.trim_end()) else {
            return Err(fail(lines.len().saturating_sub(1), "is cut short"));
        };
        if line.is_empty() {
            *at += 1;
            break;
        }
        if !is_data(line.as_bytes()) {
            return Err(fail(*at, "has a line that is not git's base85"));
        }
        data += 1;
        *at += 1;
    }
    if data == 0 {
        return Err(fail(*at - 1, "has no content"));
    }
    Ok(())
}

/// A length (A-Z: 1 to 26, a-z: 27 to 52) and five characters for each four bytes.
fn is_data(line: &[u8]) -> bool {
    let Some((first, data)) = line.split_first() else {
        return false;
    };
    let length = match first {
        b'A'..=b'Z' => usize::from(first - b'A') + 1,
        b'a'..=b'z' => usize::from(first - b'a') + 27,
        _ => return false,
    };
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || PUNCTUATION.contains(byte);
    data.len() == length.div_ceil(4) * 5 && data.iter().all(legal)
}
