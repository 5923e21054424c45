//! Whatever the text, the answer is a plan or diagnostics with places inside the file.

use klab_config::{builtin_plans, parse_plan, parse_plan_bytes};
use proptest::prelude::*;

fn check(text: &str) -> Result<(), TestCaseError> {
    if let Err(diagnostics) = parse_plan("p.yaml", text) {
        prop_assert!(diagnostics.iter().count() > 0);
        // The end of the text may be meant, which is on a line of its own.
        let lines = text.split(['\n', '\r']).count() + 1;
        for diagnostic in &diagnostics {
            prop_assert!((1..=lines).contains(&diagnostic.line), "{diagnostic}");
            prop_assert!(diagnostic.column >= 1);
            prop_assert_eq!(diagnostic.to_string().lines().count(), 1);
            prop_assert!(diagnostic.render().contains("--> p.yaml:"));
        }
    }
    Ok(())
}

/// Words from which YAML-like text is built.
fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "name",
        "workloads",
        "command",
        "time-limit",
        "trials",
        "artifacts",
        "file",
        "load",
        "trace",
        "tracer",
        ": ",
        ":\n",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "? ",
        "# ",
        "---\n",
        "\t",
        "\r\n",
        "\u{feff}",
        "1",
        "35m",
        "true",
        "~",
        "{out}",
        "\u{e4}",
        "\0",
        "\\x",
    ];
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.concat())
}

/// A built-in plan with one part cut out and something else put in.
fn mutated() -> impl Strategy<Value = String> {
    let plans: Vec<String> = builtin_plans()
        .iter()
        .map(|(_, text)| (*text).to_owned())
        .collect();
    let place = any::<prop::sample::Index>();
    (prop::sample::select(plans), place, 0..40usize, pieces()).prop_map(
        |(text, place, cut, new)| {
            let chars: Vec<char> = text.chars().collect();
            let start = place.index(chars.len());
            let end = (start + cut).min(chars.len());
            let head: String = chars[..start].iter().collect();
            let tail: String = chars[end..].iter().collect();
            format!("{head}{new}{tail}")
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn any_yaml_like_text_is_answered(text in pieces()) {
        check(&text)?;
    }

    #[test]
    fn any_damaged_plan_is_answered(text in mutated()) {
        check(&text)?;
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_plan_bytes("p.yaml", &bytes);
    }
}
