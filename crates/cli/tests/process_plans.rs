//! `klab plan`: what is said about good and bad plan files.
#![allow(missing_docs)]

mod support;

use insta::assert_snapshot;
use support::{PLAN, klab, write};

#[test]
fn process_plan_check_accepts_a_good_file() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "quick.yaml", PLAN);
    let told = klab(folder.path(), &["plan", "check", "quick.yaml"]);
    let expected = "quick.yaml: plan quick is good: 1 workload(s), 1 trial(s) per run\n";
    assert_eq!(told.ok(), expected);
    let told = klab(folder.path(), &["plan", "check", "quick.yaml", "--json"]);
    let expected = serde_json::json!({ "file": "quick.yaml", "plan": "quick", "ok": true });
    assert_eq!(told.json(), expected);
    let told = klab(folder.path(), &["--quiet", "plan", "check", "quick.yaml"]);
    assert!(told.ok().contains("is good"), "it is the result");
}

#[test]
fn process_plan_check_names_place_and_mend_of_everything_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let bad = PLAN
        .replace("time-limit: 1m", "time_limit: 1m")
        .replace("name: quick", "name: Quick One")
        .replace("format: cyclictest-json", "format: cyclictst-json")
        + "trace:\n  tracer: wakeup_rt\n  if-missing: notes\n";
    write(folder.path(), "plan.yaml", bad);
    let told = klab(folder.path(), &["plan", "check", "plan.yaml"]);
    assert_snapshot!(told.refused());
    // The whole is refused before anything is sent, so no controller is needed for this.
    let submit = "submit --variant a=b --boards c --plan plan.yaml";
    let submit: Vec<&str> = submit.split(' ').collect();
    assert_eq!(klab(folder.path(), &submit).refused(), told.refused());
}

#[test]
fn process_plan_check_refuses_what_is_no_plan_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = String::new();
    let deep = format!("name: {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let huge = format!("name: a\nabout: {}\n", "x".repeat(2 << 20));
    let many = format!("name: a\nload: [{}]\n", "1,".repeat(200_000));
    let bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned()
        + &('b'..='h')
            .map(|c| {
                let last = char::from(c as u8 - 1);
                format!("{c}: &{c} [{}]\n", vec![format!("*{last}"); 9].join(", "))
            })
            .collect::<String>();
    let files: [(&str, &[u8]); 8] = [
        ("empty.yaml", b""),
        ("binary.yaml", b"name: a\nload: \xff\xfe\x00\x01\n"),
        ("elf.yaml", b"\x7fELF\x02\x01\x01\0\0\0"),
        ("tab.yaml", b"name: a\nworkloads:\n\t- name: b\n"),
        ("deep.yaml", deep.as_bytes()),
        ("huge.yaml", huge.as_bytes()),
        ("many.yaml", many.as_bytes()),
        ("bomb.yaml", bomb.as_bytes()),
    ];
    for (name, bytes) in files {
        write(folder.path(), name, bytes);
        said += klab(folder.path(), &["plan", "check", name]).refused();
    }
    for missing in ["missing.yaml", "."] {
        said += klab(folder.path(), &["plan", "check", missing]).refused();
    }
    assert_snapshot!(said);
}

#[test]
fn process_plan_list_and_show_print_plans_that_check_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let list = klab(folder.path(), &["plan", "list"]);
    assert_eq!(list.ok(), "rt-latency\nrt-latency-quick\n");
    let names = klab(folder.path(), &["plan", "list", "--json"]).json();
    assert_eq!(names, serde_json::json!(["rt-latency", "rt-latency-quick"]));
    for name in list.ok().lines() {
        let shown = klab(folder.path(), &["plan", "show", name]);
        write(folder.path(), "shown.yaml", shown.ok());
        let checked = klab(folder.path(), &["plan", "check", "shown.yaml"]);
        assert!(checked.ok().contains(&format!("plan {name} is good")));
        let json = klab(folder.path(), &["plan", "show", name, "--json"]).json();
        assert_eq!(json["name"], name);
        let text = json["text"].as_str().unwrap();
        assert_eq!(text.trim_end(), shown.ok().trim_end());
    }
}

#[test]
fn process_plan_show_guesses_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let told = klab(folder.path(), &["plan", "show", "rt-latncy"]);
    assert_snapshot!(told.refused(), @r#"
    klab: there is no built-in plan "rt-latncy": expected one of rt-latency, rt-latency-quick; did you mean `rt-latency`?
    "#);
    let told = klab(folder.path(), &["plan", "shwo", "rt-latency"]);
    assert!(
        told.refused()
            .contains("tip: a similar subcommand exists: 'show'")
    );
}
