//! Results on standard output: from the plan's text over the trial to samples.

use std::fs;
use std::path::Path;

use klab_config::parse_plan;
use klab_measure::{Finished, Host, Trial};
use klab_model::{ArtifactKind, ArtifactName, Plan, ResultFormat};

/// What `cyclictest --quiet` printed on a board.
const CYCLICTEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../parse/tests/data/cyclictest-nofunc.txt"
);

fn plan() -> Plan {
    let text = format!(
        "name: outputs\n\
         load:\n\
         \x20 - name: noise\n\
         \x20   command: [sh, -c, 'echo started; exec sleep 300']\n\
         \x20   lead: 100ms\n\
         \x20   artifacts: [{{ file: stdout }}]\n\
         workloads:\n\
         \x20 - name: cyclictest\n\
         \x20   command: [cat, {CYCLICTEST:?}]\n\
         \x20   time-limit: 1m\n\
         \x20   artifacts: [{{ file: stdout, format: cyclictest-text }}]\n"
    );
    parse_plan("outputs.yaml", &text).unwrap_or_else(|error| panic!("{}", error.render()))
}

fn run(plan: &Plan, folder: &Path) -> Finished {
    let host = Host {
        sysroot: folder.join("sysroot"),
        tracefs: folder.join("tracefs"),
        cgroup_root: None,
        wrapper: Vec::new(),
        trace_cap: 0,
    };
    Trial::new(plan, &plan.workloads[0], &folder.join("trial"))
        .prepare(&host)
        .expect("prepared")
        .run(None)
}

#[test]
fn standard_output_becomes_samples() {
    let folder = tempfile::tempdir().expect("folder");
    let plan = plan();
    let finished = run(&plan, folder.path());
    assert_eq!(finished.failure, None);
    let files: Vec<(&str, ArtifactKind)> = finished
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.kind))
        .collect();
    let format = ResultFormat::CyclictestText;
    assert_eq!(
        files,
        [
            ("cyclictest.stdout", ArtifactKind::Result(format)),
            ("noise.stdout", ArtifactKind::Log),
            ("facts.json", ArtifactKind::Facts),
        ]
    );
    let name = ArtifactName::parse("cyclictest.stdout").expect("name");
    let known = plan.format_of(&plan.workloads[0].name, &name);
    assert_eq!(known, Some(format));
    let bytes = fs::read(&finished.files[0].path).expect("output");
    let samples = klab_parse::parse(format, &bytes).expect("results").samples;
    assert!(!samples.is_empty());
}
