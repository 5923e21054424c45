//! The files of a trial: what the plan names, outputs, trace and facts.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::{ArtifactKind, ArtifactName, ArtifactRule, Load, Workload};

/// A file that a trial left, in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducedFile {
    /// The name of the artifact; `stdout` for the workload's output if the plan names it so.
    pub name: ArtifactName,
    /// Where it is.
    pub path: PathBuf,
    /// What it is for.
    pub kind: ArtifactKind,
}

/// Name of the tracer's text.
pub(crate) const TRACE: &str = "trace.txt";
/// Name of the facts.
pub(crate) const FACTS: &str = "facts.json";

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) files: Vec<ProducedFile>,
    /// Command and file of the plan's rules that nothing is there for.
    pub(crate) missing: Vec<(String, ArtifactName)>,
}

/// Looks for the files of the plan and the outputs of its commands.
pub(crate) fn collect(folder: &Path, workload: &Workload, loads: &[Load]) -> Collected {
    let mut collected = Collected::default();
    collected.rules(folder, workload.name.as_str(), &workload.artifacts);
    for load in loads {
        collected.rules(folder, load.name.as_str(), &load.artifacts);
    }
    let names = loads.iter().map(|load| load.name.as_str());
    for name in std::iter::once(workload.name.as_str()).chain(names) {
        for stream in ["stdout", "stderr"] {
            collected.log(folder, &format!("{name}.{stream}"));
        }
    }
    for (name, kind) in [(TRACE, ArtifactKind::Trace), (FACTS, ArtifactKind::Facts)] {
        collected.add(folder, name, name, kind);
    }
    collected
}

impl Collected {
    fn rules(&mut self, folder: &Path, owner: &str, rules: &[ArtifactRule]) {
        for rule in rules {
            let file = match rule.file.as_str() {
                stream @ ("stdout" | "stderr") => format!("{owner}.{stream}"),
                file => file.to_owned(),
            };
            let kind = rule.format.map_or(ArtifactKind::Log, ArtifactKind::Result);
            if !self.add(folder, rule.file.as_str(), &file, kind) {
                self.missing.push((owner.to_owned(), rule.file.clone()));
            }
        }
    }

    /// An output that is not empty and not known under another name.
    fn log(&mut self, folder: &Path, file: &str) {
        let path = folder.join(file);
        let empty = fs::metadata(&path).is_ok_and(|meta| meta.len() == 0);
        if !empty && !self.files.iter().any(|known| known.path == path) {
            self.add(folder, file, file, ArtifactKind::Log);
        }
    }

    /// Adds a regular file; `false` if it is not there. Links may lead anywhere and are none.
    fn add(&mut self, folder: &Path, name: &str, file: &str, kind: ArtifactKind) -> bool {
        let path = folder.join(file);
        let there = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        let Ok(name) = ArtifactName::parse(name) else {
            return false;
        };
        if there && !self.files.iter().any(|known| known.name == name) {
            self.files.push(ProducedFile { name, path, kind });
        }
        there
    }
}
