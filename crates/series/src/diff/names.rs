//! Path names in diffs: quoted as C strings where they must be, with `a/` in front.

use super::PatchProblem;
use crate::display::defuse;
use crate::path::PatchPath;

/// Reads a name up to its end: `"..."` with escapes, else all of it up to a tab.
pub(super) fn unquote(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find('\t').unwrap_or(text.len());
        return Some((text[..end].trim_end_matches('\r').to_owned(), &text[end..]));
    };
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => {
                let name = String::from_utf8_lossy(&bytes).into_owned();
                return Some((name, &quoted[at + 1..]));
            }
            b'\\' => bytes.push(escape(&mut rest)?),
            byte => bytes.push(byte),
        }
    }
    None
}

/// What follows a backslash: one letter, or three octal digits.
fn escape(rest: &mut impl Iterator<Item = (usize, u8)>) -> Option<u8> {
    let mut next = || rest.next().map(|(_, byte)| byte);
    Some(match next()? {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        byte @ (b'"' | b'\\') => byte,
        first @ b'0'..=b'3' => {
            let digit = |byte: u8| (b'0'..=b'7').contains(&byte).then(|| byte - b'0');
            let (second, third) = (digit(next()?)?, digit(next()?)?);
            (first - b'0') * 64 + second * 8 + third
        }
        _ => return None,
    })
}

/// The two names of `diff --git `: if they are not quoted, they must be equal but for the
/// prefix, since a blank may be part of a name. Others are told by the lines that follow.
pub(super) fn both(text: &str) -> Option<(String, String)> {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') {
        let (old, rest) = unquote(text)?;
        let (new, _) = unquote(rest.strip_prefix(' ')?)?;
        return Some((old, new));
    }
    if text.ends_with('"') {
        let (old, new) = text.split_once(" \"")?;
        let (new, _) = unquote(&text[text.len() - new.len() - 1..])?;
        return Some((old.to_owned(), new));
    }
    let middle = text.len() / 2;
    let (old, new) = (text.get(..middle)?, text.get(middle + 1..)?);
    let same = text.as_bytes().get(middle) == Some(&b' ') && after_prefix(old) == after_prefix(new);
    same.then(|| (old.to_owned(), new.to_owned()))
}

fn after_prefix(name: &str) -> Option<&str> {
    name.split_once('/').map(|(_, rest)| rest)
}

/// Takes `a/` off a name and checks the rest. Git's own prefixes are one letter (`a`, `b`,
/// and `i`, `w`, `c`, `o` with `diff.mnemonicPrefix`).
pub(super) fn git_path(name: &str) -> Result<PatchPath, PatchProblem> {
    match name.split_once('/') {
        Some(("", _)) => Ok(PatchPath::parse(name)?),
        Some((prefix, rest)) if prefix.len() == 1 && prefix != "." => Ok(PatchPath::parse(rest)?),
        _ => {
            // What is dangerous is told as that, whatever its prefix.
            PatchPath::parse(name)?;
            Err(PatchProblem::NoPrefix {
                found: defuse(name),
            })
        }
    }
}

/// Takes the first folder off a name, as `patch -p1` does; quilt writes `linux.orig/`.
pub(super) fn quilt_path(name: &str) -> Result<PatchPath, PatchProblem> {
    match name.split_once('/') {
        Some(("", _)) => Ok(PatchPath::parse(name)?),
        Some((prefix, rest)) if prefix != ".." => Ok(PatchPath::parse(rest)?),
        _ => {
            PatchPath::parse(name)?;
            Err(PatchProblem::NoPrefix {
                found: defuse(name),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names() {
        let name = |text: &str| unquote(text).map(|(name, rest)| format!("{name}|{rest}"));
        assert_eq!(name("a/x.c\t2023"), Some("a/x.c|\t2023".to_owned()));
        assert_eq!(name(r#""a/\303\274.c" b"#), Some("a/ü.c| b".to_owned()));
        assert_eq!(name(r#""a\"\\\t""#), Some("a\"\\\t|".to_owned()));
        for bad in [r#""a"#, r#""a\"#, r#""a\9""#, r#""a\38x""#] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_a_header() {
        let names = |text: &str| both(text).map(|(old, new)| format!("{old}|{new}"));
        assert_eq!(names("a/x.c b/x.c"), Some("a/x.c|b/x.c".to_owned()));
        assert_eq!(names("a/x y b/x y"), Some("a/x y|b/x y".to_owned()));
        assert_eq!(
            names(r#""a/\303\274" "b/\303\274""#),
            Some("a/ü|b/ü".to_owned())
        );
        assert_eq!(names("a/x.c b/y.cc"), None);
        assert_eq!(names(""), None);
        assert_eq!(names("ää ä"), None);
    }
}
