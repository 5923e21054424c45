//! Apt source entries: both file formats in, deb822 out.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// One entry of the apt sources, as in sources.list(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptSource {
    /// Base addresses.
    pub uris: Vec<String>,
    /// Suites, like `bookworm` and `bookworm-updates`.
    pub suites: Vec<String>,
    /// Components, like `main`.
    pub components: Vec<String>,
    /// The key file or the key itself (lines after the first start with a space).
    pub signed_by: Option<String>,
    /// Whether the entry is marked as trusted without a signature.
    pub trusted: bool,
}

/// Reads a `.sources` file (deb822). Disabled entries and entries without `deb` are left out.
///
/// # Errors
/// [`Error::Sources`] with file and line for a line that is no field.
pub fn parse_deb822(file: &str, text: &str) -> Result<Vec<AptSource>> {
    let mut found = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            found.extend(entry(std::mem::take(&mut fields)));
        } else if line.starts_with([' ', '\t']) {
            let Some((_, value)) = fields.last_mut() else {
                return Err(bad(
                    file,
                    index,
                    "a continuation line without a field before it",
                ));
            };
            value.push('\n');
            value.push_str(line.trim_end());
        } else {
            let Some((name, value)) = line.split_once(':') else {
                return Err(bad(file, index, "expected `Field: value`"));
            };
            fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found.extend(entry(fields));
    Ok(found)
}

fn bad(file: &str, index: usize, problem: &str) -> Error {
    Error::Sources {
        file: file.to_owned(),
        line: index + 1,
        problem: problem.to_owned(),
    }
}

/// An entry from the fields of one stanza, if it is an enabled binary source.
fn entry(fields: Vec<(String, String)>) -> Option<AptSource> {
    let get = |name: &str| {
        fields
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    let words = |name| {
        get(name)
            .unwrap_or("")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let enabled = !matches!(get("enabled"), Some("no" | "false" | "0" | "off"));
    if !enabled || !words("types").iter().any(|t| t == "deb") {
        return None;
    }
    Some(AptSource {
        uris: words("uris"),
        suites: words("suites"),
        components: words("components"),
        signed_by: get("signed-by").map(str::to_owned),
        trusted: matches!(get("trusted"), Some("yes" | "true" | "1")),
    })
}

/// Reads a `.list` file (one-line format). Comments and `deb-src` lines are left out.
///
/// # Errors
/// [`Error::Sources`] with file and line for a `deb` line that is cut short.
pub fn parse_one_line(file: &str, text: &str) -> Result<Vec<AptSource>> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let Some(rest) = line
            .strip_prefix("deb")
            .filter(|r| r.starts_with([' ', '\t']))
        else {
            continue;
        };
        let (options, rest) = match rest.trim_start().strip_prefix('[') {
            None => ("", rest),
            Some(tail) => tail
                .split_once(']')
                .ok_or_else(|| bad(file, index, "options start with `[` and have no `]`"))?,
        };
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else {
            return Err(bad(
                file,
                index,
                "expected `deb [options] uri suite component...`",
            ));
        };
        let option = |name: &str| {
            options
                .split_whitespace()
                .filter_map(|o| o.split_once('='))
                .find(|(n, _)| *n == name)
        };
        found.push(AptSource {
            uris: vec![uri],
            suites: vec![suite],
            components: words.collect(),
            signed_by: option("signed-by").map(|(_, v)| v.to_owned()),
            trusted: matches!(option("trusted"), Some((_, "yes" | "true" | "1"))),
        });
    }
    Ok(found)
}

/// Keeps the entries that serve `host` (a release code name) and turns them to `wanted`:
/// `bookworm-security` becomes `trixie-security`. Other entries are dropped, and all but the
/// release's own where a pocket such as `trixie-backports` is wanted.
#[must_use]
pub fn retarget(sources: &[AptSource], host: &str, wanted: &str) -> Vec<AptSource> {
    let turn = |suite: &String| {
        let rest = suite.strip_prefix(host)?;
        let fits = rest.is_empty() || rest.starts_with(['-', '/']) && !wanted.contains('-');
        fits.then(|| format!("{wanted}{rest}"))
    };
    let turned = sources.iter().map(|s| AptSource {
        suites: s.suites.iter().filter_map(turn).collect(),
        ..s.clone()
    });
    turned
        .filter(|s| !s.suites.is_empty() && !s.uris.is_empty())
        .collect()
}

/// Writes entries in deb822 form.
#[must_use]
pub fn render(sources: &[AptSource]) -> String {
    let stanza = |s: &AptSource| {
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {}\n",
            s.uris.join(" "),
            s.suites.join(" ")
        );
        if !s.components.is_empty() {
            text += &format!("Components: {}\n", s.components.join(" "));
        }
        if let Some(key) = &s.signed_by {
            text += &format!("Signed-By: {}\n", key.trim_start_matches(' '));
        }
        if s.trusted {
            text += "Trusted: yes\n";
        }
        text
    };
    sources.iter().map(stanza).collect::<Vec<_>>().join("\n")
}

/// The host's release code name, from os-release(5).
fn host_codename() -> Result<String> {
    let path = "/etc/os-release";
    let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
    codename(&text).ok_or_else(|| Error::Packages {
        what: format!("{path} has no VERSION_CODENAME"),
        mend: "give the recipe a sources file".to_owned(),
    })
}

fn codename(os_release: &str) -> Option<String> {
    let value = os_release
        .lines()
        .find_map(|l| l.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim().trim_matches('"').to_owned()).filter(|v| !v.is_empty())
}

/// All enabled sources of the host and its code name.
pub(crate) fn host_sources() -> Result<(Vec<AptSource>, String)> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(dir) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(dir.flatten().map(|e| e.path()));
    }
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|f| f.is_file()) {
        let parse = match file.extension().and_then(|e| e.to_str()) {
            Some("sources") => parse_deb822,
            Some("list") => parse_one_line,
            _ => continue,
        };
        let text = std::fs::read_to_string(file).map_err(Error::io("read", file))?;
        found.extend(parse(&file.to_string_lossy(), &text)?);
    }
    Ok((found, host_codename()?))
}

/// Writes the sources for `suite`, derived from the host's, into `dir` and returns the file.
pub(crate) fn sources_file(dir: &Path, suite: &str) -> Result<PathBuf> {
    let (all, host) = host_sources()?;
    let turned = retarget(&all, &host, suite);
    if turned.is_empty() {
        return Err(Error::Packages {
            what: format!("the host's apt sources have no entry for its release {host}"),
            mend: format!("give the recipe a sources file for {suite}"),
        });
    }
    let file = dir.join(format!("{suite}.sources"));
    std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    std::fs::write(&file, render(&turned)).map_err(Error::io("write", &file))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEB822: &str = "# made by a person\nTypes: deb deb-src\nURIs: http://mirror.test/debian\n\
        Suites: bookworm bookworm-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n -----END\n\n\
        Types: deb\nEnabled: no\nURIs: http://off.test\nSuites: bookworm\n\n\
        Types: deb-src\nURIs: http://src.test\nSuites: bookworm\n";

    #[test]
    fn deb822_keeps_enabled_binary_entries_and_inline_keys() {
        let found = parse_deb822("x.sources", DEB822).expect("valid");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(
            found[0].signed_by.as_deref(),
            Some("\n -----BEGIN\n .\n -----END")
        );
        assert_eq!(
            parse_deb822("y", &render(&found)).expect("own output"),
            found
        );
    }

    #[test]
    fn one_line_reads_options_and_skips_source_lines() {
        let text = "deb [arch=amd64 signed-by=/k.gpg] http://m.test/d bookworm main contrib # c\n\
                    deb-src http://m.test/d bookworm main\n#deb http://no.test x y\n";
        let found = parse_one_line("sources.list", text).expect("valid");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].components, ["main", "contrib"]);
        assert_eq!(found[0].signed_by.as_deref(), Some("/k.gpg"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = parse_one_line("a.list", "\ndeb http://m.test\n").expect_err("cut short");
        assert_eq!(
            error.to_string(),
            "a.list:2: expected `deb [options] uri suite component...`"
        );
        let error = parse_deb822("a.sources", "Types: deb\nnonsense\n").expect_err("no field");
        assert_eq!(error.to_string(), "a.sources:2: expected `Field: value`");
    }

    #[test]
    fn retarget_turns_only_the_hosts_own_suites() {
        let text = "deb http://a.test/d bookworm main\ndeb http://b.test/s bookworm-security main\n\
                    deb http://c.test/x bookwormish main\ndeb http://d.test/y stable main\n";
        let sources = parse_one_line("l", text).expect("valid");
        let suites = |wanted: &str| -> Vec<String> {
            let turned = retarget(&sources, "bookworm", wanted);
            turned.into_iter().flat_map(|s| s.suites).collect()
        };
        assert_eq!(suites("trixie"), ["trixie", "trixie-security"]);
        assert_eq!(suites("trixie-backports"), ["trixie-backports"]);
    }

    #[test]
    fn codename_is_unquoted() {
        assert_eq!(
            codename("ID=debian\nVERSION_CODENAME=\"bookworm\"\n").as_deref(),
            Some("bookworm")
        );
        assert_eq!(codename("ID=debian\n"), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "(?s).{0,400}") {
            let _ = parse_deb822("f", &text);
            let _ = parse_one_line("f", &text);
        }

        #[test]
        fn rendered_entries_read_back(
            uris in prop::collection::vec("[a-z]{1,8}:/[a-z/]{1,12}", 1..3),
            suites in prop::collection::vec("[a-z]{1,8}(-[a-z]{1,8})?", 1..3),
            components in prop::collection::vec("[a-z]{1,8}", 0..3),
            key in prop::option::of("/[a-z]{1,9}"), trusted: bool,
        ) {
            let sources = vec![AptSource { uris, suites, components, signed_by: key, trusted }];
            prop_assert_eq!(parse_deb822("f", &render(&sources)).expect("own output"), sources);
        }
    }
}
