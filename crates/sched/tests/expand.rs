//! Every job is expanded completely and fairly.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::{bound, job, runs};

proptest! {
    /// Each slot gets each variant once in each round, at positions without gaps, and
    /// rounds do not mix.
    #[test]
    fn every_round_has_every_variant_once(variants in 1..7u32, rounds in 1..9u32, slots in 1..4u32) {
        let boards = (0..slots).map(|n| bound(&format!("b{n}"))).collect();
        let job = job(1, "ann", 0, boards, (variants, rounds));
        let runs = runs(&job);
        prop_assert_eq!(runs.len() as u32, variants * rounds * slots);
        for (index, run) in (0..).zip(&runs) {
            prop_assert_eq!(run.slot, index / (variants * rounds));
            prop_assert_eq!(run.position, index % (variants * rounds));
            prop_assert_eq!(run.round, run.position / variants);
        }
        for group in runs.chunks(variants as usize) {
            let mut names: Vec<_> = group.iter().map(|run| &run.variant).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len() as u32, variants);
        }
    }

    /// After full turns of the rotation every variant has had every place equally often,
    /// so their mean places are equal; in between no variant had a place twice more often
    /// than another.
    #[test]
    fn places_are_shared_out_evenly(variants in 1..7u32, rounds in 1..20u32) {
        let job = job(1, "ann", 0, vec![bound("b")], (variants, rounds));
        let mut counts = BTreeMap::new();
        for run in runs(&job) {
            *counts.entry((run.variant, run.position % variants)).or_insert(0u32) += 1;
        }
        for variant in &job.variants {
            for place in 0..variants {
                let count = counts.get(&(variant.name.clone(), place)).copied().unwrap_or(0);
                prop_assert!(count == rounds / variants || count == rounds.div_ceil(variants));
            }
        }
    }
}

#[test]
fn two_variants_alternate_who_comes_first() {
    let job = job(1, "ann", 0, vec![bound("b")], (2, 3));
    let order: Vec<String> = runs(&job).iter().map(|r| r.variant.to_string()).collect();
    assert_eq!(order, ["v0", "v1", "v1", "v0", "v0", "v1"]);
}
