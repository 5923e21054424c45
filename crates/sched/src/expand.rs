//! Jobs to runs.

use klab_model::{Job, Run, RunId, RunState};

/// The runs of a job: for every slot and round one run per variant.
///
/// The order of the variants rotates by one place from round to round. After as many
/// rounds as there are variants each variant was first, second, ... equally often (a
/// cyclic Latin square), so that a board which slowly warms up favours none of them.
///
/// `make_run_id` is called once per run, in the order of the result: slot by slot, each
/// by position.
pub fn expand(job: &Job, mut make_run_id: impl FnMut() -> RunId) -> Vec<Run> {
    let mut runs = Vec::new();
    for (slot, _) in (0..).zip(&job.boards) {
        let mut position = 0;
        for round in 0..job.rounds {
            for variant in rotated(&job.variants, round) {
                runs.push(Run {
                    id: make_run_id(),
                    job: job.id,
                    slot,
                    round,
                    position,
                    variant: variant.name.clone(),
                    state: RunState::new(),
                });
                position += 1;
            }
        }
    }
    runs
}

/// All items once, beginning with the one that leads in `round`.
fn rotated<T>(items: &[T], round: u32) -> impl Iterator<Item = &T> {
    let lead = (round as usize).checked_rem(items.len()).unwrap_or(0);
    let (tail, head) = items.split_at(lead);
    head.iter().chain(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_leads_in_turn() {
        let orders: Vec<String> = (0..4)
            .map(|round| rotated(&['a', 'b', 'c'], round).collect())
            .collect();
        assert_eq!(orders, ["abc", "bca", "cab", "abc"]);
        assert_eq!(rotated::<char>(&[], 3).count(), 0);
    }
}
