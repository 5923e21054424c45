//! Good plan files, built-in plans, and input that is no text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use klab_config::{MAX_FILE_BYTES, builtin_plan, builtin_plans, parse_plan, parse_plan_bytes};
use klab_model::{ArtifactName, IfMissing, Plan, ResultFormat, Span, WorkloadName};

fn plan(text: &str) -> Plan {
    parse_plan("plan.yaml", text).unwrap_or_else(|error| panic!("{}", error.render()))
}

fn artifact(name: &str) -> ArtifactName {
    ArtifactName::parse(name).expect("legal file name")
}

fn workload(name: &str) -> WorkloadName {
    WorkloadName::parse(name).expect("legal name")
}

#[test]
fn a_minimal_plan_gets_the_documented_defaults() {
    let plan = plan(include_str!("data/good/minimal.yaml"));
    assert_eq!(plan.about, "");
    assert_eq!(plan.loads, []);
    assert_eq!(plan.trace, None);
    assert_eq!(plan.workloads[0].trials, 1);
    assert_eq!(plan.workloads[0].artifacts, []);
    assert_eq!(plan.time_limits.boot, Span::secs(300));
    assert_eq!(plan.time_limits.settle, Span::secs(5));
    assert_eq!(plan.time_limits.no_network, Span::secs(120));
    let short = "name: x\nworkloads: [{name: w, command: [w], time-limit: 1s}]\n";
    let traced = format!("{short}load: [{{name: l, command: [l]}}]\ntrace: {{tracer: irqsoff}}\n");
    let traced = self::plan(&traced);
    assert_eq!(traced.loads[0].lead, Span::secs(1));
    let trace = traced.trace.expect("a tracer");
    assert_eq!(trace.if_missing, IfMissing::Fail);
    assert_eq!(trace.buffer_kib, 4096);
    assert!(!trace.function_trace);
}

#[test]
fn every_field_arrives() {
    let plan = plan(include_str!("data/good/full.yaml"));
    assert_eq!(plan.name.as_str(), "full");
    assert_eq!(plan.about, "Everything there is.");
    assert_eq!(
        plan.loads[0].command,
        ["hog", "--dir", "{out}", "{print $1}"]
    );
    assert_eq!(plan.loads[0].lead.as_millis(), 500);
    assert_eq!(plan.loads[1].name.as_str(), "hog-2");
    assert_eq!(plan.loads[1].command, plan.loads[0].command);
    assert_eq!(plan.loads[1].artifacts, []);
    assert_eq!(plan.trial_count(), 4);
    assert_eq!(plan.workloads[0].time_limit, Span::secs(90));
    let format = |name, file| plan.format_of(&workload(name), &artifact(file));
    assert_eq!(
        format("first", "a.json"),
        Some(ResultFormat::CyclictestJson)
    );
    assert_eq!(format("first", "a.raw"), None);
    assert_eq!(
        format("second", "a.json"),
        Some(ResultFormat::CyclictestHistogram)
    );
    // Outputs are known by the name of their command.
    assert_eq!(
        format("second", "second.stdout"),
        Some(ResultFormat::CyclictestText)
    );
    assert_eq!(
        format("second", "hog.stdout"),
        Some(ResultFormat::StressNgYaml)
    );
    for name in ["stdout", "first.stdout", "hog-2.stdout"] {
        assert_eq!(format("second", name), None, "{name}");
    }
    let trace = plan.trace.as_ref().expect("a tracer");
    assert_eq!(trace.tracer, "wakeup_rt");
    assert_eq!(trace.if_missing, IfMissing::Note);
    assert_eq!(trace.buffer_kib, 128);
    assert!(trace.function_trace);
    assert_eq!(plan.time_limits.boot, Span::secs(600));
    assert_eq!(plan.time_limits.settle, Span::secs(1));
    assert_eq!(plan.time_limits.no_network, Span::secs(90));
}

#[test]
fn the_files_in_configs_are_the_built_in_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/plans");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder of plans") {
        let path = entry.expect("a readable folder").path();
        let text = fs::read_to_string(&path).expect("a readable file");
        let name = plan(&text).name.to_string();
        assert_eq!(
            path.file_name().expect("a file"),
            format!("{name}.yaml").as_str()
        );
        assert_eq!(builtin_plan(&name).expect("a built-in plan"), text);
        files.insert(name);
    }
    let built_in: BTreeSet<String> = builtin_plans().iter().map(|(n, _)| n.to_string()).collect();
    assert_eq!(files, built_in);
}

#[test]
fn the_latency_recipe_is_complete() {
    let plan = plan(builtin_plan("rt-latency").expect("it comes with klab"));
    assert_eq!(plan.programs(), ["stress-ng", "cyclictest"]);
    let options = &plan.workloads[0].command;
    for option in [
        "--mlockall",
        "--smp",
        "--priority=99",
        "--distance=0",
        "--duration=30m",
    ] {
        assert!(options.iter().any(|word| word == option), "{option}");
    }
    let load = plan.loads[0].command.join(" ");
    assert!(
        load.starts_with("stress-ng --vm 8 --vm-bytes 2G "),
        "{load}"
    );
    let trace = plan.trace.expect("a tracer");
    assert_eq!(
        (trace.tracer.as_str(), trace.if_missing),
        ("wakeup_rt", IfMissing::Fail)
    );
}

#[test]
fn an_unknown_built_in_plan_is_answered_with_the_known_ones() {
    let error = builtin_plan("rt_latency").expect_err("no such plan");
    assert_eq!(
        error.to_string(),
        "there is no built-in plan \"rt_latency\": expected one of rt-latency, \
         rt-latency-quick; did you mean `rt-latency`?"
    );
    assert_eq!(
        builtin_plan("boot-time").expect_err("no such plan").nearest,
        None
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let text = format!("\u{feff}{}", include_str!("data/good/minimal.yaml"));
    assert_eq!(plan(&text).name.as_str(), "minimal");
}

fn error_of(bytes: &[u8]) -> String {
    parse_plan_bytes("p.yaml", bytes)
        .expect_err("a bad file")
        .to_string()
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    assert_eq!(
        error_of(b"name: x\nabout: \xc3\xa4\xff\n"),
        "p.yaml:2:9: found the byte 0xff; expected UTF-8 text"
    );
    assert_eq!(
        error_of(b"\xff\xfen\0a\0"),
        "p.yaml:1:1: found the byte 0xff; expected UTF-8 text (the file is UTF-16: save it \
         as UTF-8)"
    );
    // A character that was cut off.
    assert_eq!(
        error_of(b"name: \xc3"),
        "p.yaml:1:7: found the byte 0xc3; expected UTF-8 text"
    );
}

#[test]
fn files_of_more_than_a_mebibyte_are_refused_unread() {
    let mut text = include_str!("data/good/minimal.yaml").to_owned();
    text.push_str(&"#".repeat(MAX_FILE_BYTES - text.len()));
    assert!(parse_plan("p.yaml", &text).is_ok());
    text.push('#');
    let expected = "p.yaml:1:1: found 1048577 bytes; expected a plan of at most 1 MiB";
    assert_eq!(error_of(text.as_bytes()), expected);
    let error = parse_plan("p.yaml", &text).expect_err("too large");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_examples_of_the_reference_are_plans() {
    let reference = include_str!("../../../docs/plans.md");
    let examples: Vec<Plan> = reference
        .split("```yaml\n")
        .skip(1)
        .map(|rest| {
            let (example, _) = rest.split_once("```\n").expect("the end of an example");
            plan(example)
        })
        .collect();
    let names: Vec<&str> = examples.iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names, ["rt-latency", "rt-latency-text"]);
    let format = examples[1].format_of(&workload("cyclictest"), &artifact("cyclictest.stdout"));
    assert_eq!(format, Some(ResultFormat::CyclictestText));
}

#[test]
fn the_reference_names_every_format() {
    let reference = include_str!("../../../docs/plans.md");
    for format in ResultFormat::ALL {
        assert!(reference.contains(&format!("| `{format}` |")), "{format}");
    }
}
