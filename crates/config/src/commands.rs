//! What workloads and loads have in common: a name, a command and artifacts.

use std::collections::BTreeMap;

use klab_model::{ArtifactName, ArtifactRule, ResultFormat, WorkloadName};

use crate::diagnostic::Problem;
use crate::nearest::nearest;
use crate::reader::{At, Fields, Reader, quoted};
use crate::yaml::Value;

const NAME: &str =
    "a name of 1 to 63 characters of a-z, 0-9, '.', '_' and '-', starting with a letter or digit";
const COMMAND: &str = "a list of the program and its arguments, at most 1000 items";
const ARTIFACTS: &str = "a list of at most 100 artifacts such as { file: cyclictest.json, \
                         format: cyclictest-json }";
const FILE: &str = "stdout, stderr, or a file name of letters, digits, '.', '_' and '-', at \
                    most 100 characters";
const OWN_FILE: &str = "a file name of its own for each artifact of a trial, loads included";

/// Files that klab writes into every trial folder.
const RESERVED: [&str; 3] = ["trace.txt", "facts.json", "kernel.log"];
/// The outputs of each command have names that end so.
const RESERVED_ENDS: [&str; 2] = [".stdout", ".stderr"];

/// Where names were used first; a second use is reported with the first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(BTreeMap<String, (String, usize)>);

impl Used {
    fn claim(&mut self, reader: &mut Reader<'_>, at: &At<'_>, name: &str, expected: &str) {
        if let Some((path, line)) = self.0.get(name) {
            // What stands there: `stdout` is only the end of its name.
            let text = match &at.node.value {
                Value::Text(text) => text,
                _ => name,
            };
            let found = format!("{}, which {path} on line {line} has", quoted(text));
            reader.report(at, Problem::new(found, expected));
        } else {
            let place = (at.path.clone(), at.node.place.line);
            self.0.insert(name.to_owned(), place);
        }
    }
}

/// Reads the field `name`. Loads and workloads share names, because their outputs share
/// a folder.
pub(crate) fn name(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    used: &mut Used,
) -> Option<WorkloadName> {
    let at = reader.required(fields, "name", NAME)?;
    let name = reader.parsed(&at, NAME, WorkloadName::parse)?;
    let expected = "a name of its own for each workload and load";
    used.claim(reader, &at, name.as_str(), expected);
    Some(name)
}

/// Reads the field `command`.
pub(crate) fn command(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<String>> {
    let at = reader.required(fields, "command", COMMAND)?;
    if let Value::Text(line) = &at.node.value {
        let problem = Problem::new(format!("the text {}", quoted(line)), COMMAND).help(
            "no shell is involved: write each argument as an item of its own, such as \
             [cyclictest, --quiet]",
        );
        reader.report(&at, problem);
        return None;
    }
    let words = reader.list(&at, COMMAND, 1..=1000)?;
    // Every word is read before the first failure counts, so that all are reported.
    let words: Vec<Option<String>> = words.iter().map(|at| word(reader, at)).collect();
    let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
    let program = words.first().map_or("", String::as_str);
    if program.is_empty() || program.contains("{out}") {
        let problem = Problem::new(quoted(program), "a program that is on the board");
        reader.report(&at, problem);
        return None;
    }
    Some(words)
}

fn word(reader: &mut Reader<'_>, at: &At<'_>) -> Option<String> {
    let text = reader.text(at, "text")?;
    if text.contains('\0') {
        reader.report(
            at,
            Problem::new("a zero byte", "text that a program can be given"),
        );
        return None;
    }
    let unknown = placeholders(text).find(|name| *name != "out");
    if let Some(name) = unknown {
        let meant = nearest(name, ["out"]).map(|_| "{out}");
        let found = format!("the placeholder {}", quoted(&format!("{{{name}}}")));
        let problem = Problem::new(found, "only {out}, the folder of the trial");
        reader.report(at, problem.nearest(meant));
        return None;
    }
    Some(text.to_owned())
}

/// The words in braces; braces around anything else are left to the program.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        !name.is_empty() && name.chars().all(legal)
    };
    let inside = text.split('{').skip(1);
    inside
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .filter(is_name)
}

/// Reads the field `artifacts` of the command `owner`. `used` holds the artifacts of those who
/// share the folder.
pub(crate) fn artifacts(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    owner: Option<&WorkloadName>,
    used: &mut Used,
) -> Option<Vec<ArtifactRule>> {
    let Some(at) = fields.get("artifacts") else {
        return Some(Vec::new());
    };
    let items = reader.list(&at, ARTIFACTS, 0..=100)?;
    let rules: Vec<_> = items
        .iter()
        .map(|at| artifact(reader, at, owner, used))
        .collect();
    rules.into_iter().collect()
}

fn artifact(
    reader: &mut Reader<'_>,
    at: &At<'_>,
    owner: Option<&WorkloadName>,
    used: &mut Used,
) -> Option<ArtifactRule> {
    let fields = reader.fields(at, &["file", "format"])?;
    let file = file(reader, &fields, owner, used);
    let formats = ResultFormat::ALL.map(|format| (format.as_str(), Some(format)));
    let format = reader.optional(&fields, "format", None, |reader, at| {
        reader.word(at, &formats)
    });
    Some(ArtifactRule {
        file: file?,
        format: format?,
    })
}

fn file(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    owner: Option<&WorkloadName>,
    used: &mut Used,
) -> Option<ArtifactName> {
    let at = reader.required(fields, "file", FILE)?;
    let file = reader.parsed(&at, FILE, ArtifactName::parse)?;
    let text = file.as_str();
    if RESERVED.contains(&text) || RESERVED_ENDS.iter().any(|end| text.ends_with(end)) {
        let expected = format!(
            "another name than {} and those that end in {}",
            RESERVED.join(", "),
            RESERVED_ENDS.join(" or ")
        );
        let help = match text.rsplit_once('.') {
            Some((_, output @ ("stdout" | "stderr"))) => {
                format!("for this output of the command itself write {output}")
            }
            _ => "klab writes and keeps this file itself".to_owned(),
        };
        reader.report(&at, Problem::new(quoted(text), expected).help(help));
        return None;
    }
    let rule = ArtifactRule { file, format: None };
    match owner {
        Some(owner) => used.claim(reader, &at, rule.artifact_name(owner).as_str(), OWN_FILE),
        // What a command without a name of its own puts out has no name either.
        None if rule.is_output() => {}
        None => used.claim(reader, &at, rule.file.as_str(), OWN_FILE),
    }
    Some(rule.file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_braces_are_placeholders() {
        for (text, expected) in [
            ("{out}/x.json", vec!["out"]),
            ("--a={out},{kernel}", vec!["out", "kernel"]),
            ("{print $1}", vec![]),
            ("{}", vec![]),
            ("a{b", vec![]),
            ("{{x}}", vec!["x"]),
            ("}{", vec![]),
        ] {
            assert_eq!(placeholders(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
