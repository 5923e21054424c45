//! The files of a trial: what the plan names, outputs, trace and facts.

use std::fs;
use std::path::{Path, PathBuf};

use klab_model::{ArtifactKind, ArtifactName, ArtifactRule, Load, Workload, WorkloadName};

/// A file that a trial left, in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducedFile {
    /// The name of the artifact, which is that of the file.
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
    pub(crate) missing: Vec<(WorkloadName, ArtifactName)>,
}

/// Looks for the files of the plan and the outputs of its commands.
pub(crate) fn collect(folder: &Path, workload: &Workload, loads: &[Load]) -> Collected {
    let mut collected = Collected::default();
    collected.rules(folder, &workload.name, &workload.artifacts);
    for load in loads {
        collected.rules(folder, &load.name, &load.artifacts);
    }
    let names = loads.iter().map(|load| load.name.as_str());
    for name in std::iter::once(workload.name.as_str()).chain(names) {
        for stream in ["stdout", "stderr"] {
            collected.log(folder, &format!("{name}.{stream}"));
        }
    }
    for (name, kind) in [(TRACE, ArtifactKind::Trace), (FACTS, ArtifactKind::Facts)] {
        collected.add(folder, name, kind);
    }
    collected
}

impl Collected {
    fn rules(&mut self, folder: &Path, owner: &WorkloadName, rules: &[ArtifactRule]) {
        for rule in rules {
            let name = rule.artifact_name(owner);
            let kind = rule.format.map_or(ArtifactKind::Log, ArtifactKind::Result);
            if !self.add(folder, name.as_str(), kind) {
                self.missing.push((owner.clone(), name));
            }
        }
    }

    /// An output that is not empty; one that the plan names is there already.
    fn log(&mut self, folder: &Path, file: &str) {
        let path = folder.join(file);
        let empty = fs::metadata(&path).is_ok_and(|meta| meta.len() == 0);
        if !empty {
            self.add(folder, file, ArtifactKind::Log);
        }
    }

    /// Adds a regular file; `false` if it is not there. Links may lead anywhere and are none.
    fn add(&mut self, folder: &Path, name: &str, kind: ArtifactKind) -> bool {
        let path = folder.join(name);
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
