//! Specifications of variants, and what they give for a series.
#![allow(missing_docs)]

mod support;

use std::collections::BTreeSet;

use klab_series::{Series, Side, VariantKernel, VariantsError, VariantsSpec};
use proptest::prelude::*;
use support::{Letter, diff, mbox, read};

fn series(revision: u32, patches: u32) -> Series {
    let letter = |n: u32| {
        let subject = format!("[PATCH v{revision} {n}/{patches}] mm: {n}");
        Letter::new(&format!("p{n}"), &subject, &diff(&format!("p{n}")))
    };
    read(&mbox(&(1..=patches).map(letter).collect::<Vec<_>>())).expect("a series")
}

fn spec(text: &str) -> Result<VariantsSpec, VariantsError> {
    text.parse()
}

/// `base=0 +1=1`: names and numbers of patches; `<2` for the other series' patches.
#[track_caller]
fn expanded(text: &str, series: &Series, against: Option<&Series>) -> String {
    let variants = spec(text)
        .and_then(|spec| spec.expand(series, against))
        .expect(text);
    let told: Vec<String> = variants
        .iter()
        .map(|variant| match &variant.kernel {
            VariantKernel::Base => format!("{}=0", variant.name),
            VariantKernel::Patches {
                side: Side::Own,
                count,
            } => format!("{}={count}", variant.name),
            VariantKernel::Patches {
                side: Side::Other,
                count,
            } => format!("{}=<{count}", variant.name),
            VariantKernel::Reference(reference) => format!("{}={reference}", variant.name),
        })
        .collect();
    told.join(" ")
}

#[test]
fn items_and_their_names() {
    let three = series(2, 3);
    for (text, expected) in [
        ("base,all", "base=0 v2=3"),
        ("each", "base=0 +1=1 +1..2=2 +1..3=3"),
        ("base,+3", "base=0 +1..3=3"),
        ("base, +1..2", "base=0 +1..2=2"),
        ("all", "v2=3"),
        ("v6.1,base,all", "v6.1=v6.1 base=0 v2=3"),
        (
            "base,origin/master~3,all",
            "base=0 origin-master-3=origin/master~3 v2=3",
        ),
        ("old=refs/tags/v2,all", "old=refs/tags/v2 v2=3"),
        ("base,running,all", "base=0 running=running v2=3"),
    ] {
        assert_eq!(expanded(text, &three, None), expected, "{text}");
    }
    let default = VariantsSpec::default()
        .expand(&three, None)
        .expect("the default");
    assert_eq!(
        default,
        spec("base,all")
            .and_then(|spec| spec.expand(&three, None))
            .expect("the same")
    );
}

#[test]
fn against_another_series_on_the_same_base() {
    let (v1, v2) = (series(1, 2), series(2, 3));
    assert_eq!(expanded("base,all", &v2, Some(&v1)), "base=0 v1=<2 v2=3");
    assert_eq!(
        expanded("base,v6.1,all", &v2, Some(&v1)),
        "base=0 v6.1=v6.1 v1=<2 v2=3"
    );
    assert_eq!(
        expanded("each", &v2, Some(&v1)),
        "base=0 v1=<2 +1=1 +1..2=2 +1..3=3"
    );
    assert_eq!(expanded("base", &v2, Some(&v1)), "base=0 v1=<2");
    assert_eq!(
        expanded("base,all", &v2, Some(&series(2, 1))),
        "base=0 other-v2=<1 v2=3"
    );
}

#[test]
fn what_is_refused() {
    let three = series(1, 3);
    let (many, long) = (vec!["x"; 65].join(","), "y".repeat(64));
    let mut said = String::new();
    for text in [
        "",
        "base,,all",
        "+0",
        "+x",
        "++1",
        "+-1",
        "+4",
        "+99999999999",
        "base,base",
        "+3,all",
        "each,base",
        "v1,all",
        "a/b,a-b",
        "x=v6.1,x=v6.2",
        "v6.1,old=v6.1",
        "-rf",
        "--output=x",
        "a b",
        "a:b",
        "v6.1..v6.2",
        "\u{1b}[2J",
        "a\u{202e}b",
        "ä=v6.1",
        "=v6.1",
        "x=",
        "@{u}",
        &long,
        &many,
    ] {
        let error = spec(text)
            .and_then(|spec| spec.expand(&three, None))
            .expect_err(text);
        said += &format!("{}\n  {error}\n", text.escape_debug());
    }
    said = said.replace(&many, "x,x,...").replace(&long, "yyy...");
    let hundred = spec("each")
        .and_then(|spec| spec.expand(&series(1, 100), None))
        .expect_err("many");
    said += &format!("each of 100\n  {hundred}\n");
    insta::assert_snapshot!(said);
}

proptest! {
    #[test]
    fn whatever_is_accepted_has_names_of_its_own(
        items in prop::collection::vec("base|all|each|\\+[0-9]{1,2}|[a-z/=~.^-]{1,6}|\\PC{0,4}", 0..6),
        patches in 1_u32..9,
        other in prop::option::of(1_u32..4),
    ) {
        let (series, other) = (series(2, patches), other.map(|revision| series(revision, 1)));
        if let Ok(spec) = spec(&items.join(",")) {
            prop_assert_eq!(&spec.to_string().parse::<VariantsSpec>().expect("its own words"), &spec);
            if let Ok(variants) = spec.expand(&series, other.as_ref()) {
                let names: BTreeSet<_> = variants.iter().map(|variant| variant.name.clone()).collect();
                let kernels: BTreeSet<_> = variants.iter().map(|variant| variant.kernel.clone()).collect();
                prop_assert_eq!(names.len(), variants.len());
                prop_assert_eq!(kernels.len(), variants.len());
            }
        }
    }
}
