//! Progress on a terminal: runs done, and per board the variant, the step and the time left.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use klab_proto::v1;
use v1::job_event::Body;

use crate::events;

/// The bars of one job.
pub(crate) struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
    boards: BTreeMap<String, ProgressBar>,
    left: TimeLeft,
}

/// How long the rest will take if runs go on as they did.
#[derive(Debug, Default)]
struct TimeLeft {
    runs: u64,
    ended: u64,
    first: Option<Instant>,
}

impl TimeLeft {
    fn estimate(&self, now: Instant) -> Option<Duration> {
        let spent = now.duration_since(self.first?);
        let ended = u32::try_from(self.ended).ok().filter(|ended| *ended > 0)?;
        let left = u32::try_from(self.runs.saturating_sub(self.ended)).ok()?;
        Some(spent / ended * left)
    }
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let total = bars.add(ProgressBar::new(0));
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {pos}/{len} runs  {elapsed}  {msg}")
        {
            total.set_style(style);
        }
        Self {
            bars,
            total,
            boards: BTreeMap::new(),
            left: TimeLeft::default(),
        }
    }

    pub(crate) fn take(&mut self, event: &v1::JobEvent) {
        match &event.body {
            Some(Body::Submitted(submitted)) => {
                self.left.runs = submitted.runs.into();
                self.total.set_length(self.left.runs);
            }
            Some(Body::Assigned(_)) => {
                self.left.first.get_or_insert_with(Instant::now);
                self.show(event, "assigned");
            }
            Some(Body::StepStarted(step)) => self.show(event, &events::step(step)),
            Some(Body::RunEnded(ended)) => {
                self.left.ended += 1;
                self.total.set_position(self.left.ended);
                if let Some(left) = self.left.estimate(Instant::now()) {
                    let left = indicatif::HumanDuration(left);
                    self.total.set_message(format!("about {left} left"));
                }
                self.show(event, &ended.state);
            }
            Some(Body::AttemptFailed(_) | Body::Note(_)) => {
                // Bad news stays on the screen.
                self.say(&events::line(event));
            }
            _ => {}
        }
    }

    /// A line that stays on the screen.
    pub(crate) fn say(&self, text: &str) {
        let _ = self.bars.println(text);
    }

    fn show(&mut self, event: &v1::JobEvent, what: &str) {
        let bars = &self.bars;
        let bar = self.boards.entry(event.board.clone()).or_insert_with(|| {
            let bar = bars.add(ProgressBar::new_spinner());
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        let round = event.round + 1;
        bar.set_message(format!(
            "{}  round {round}  {}  {what}",
            event.board, event.variant
        ));
    }

    pub(crate) fn end(&self) {
        for bar in self.boards.values() {
            bar.finish_and_clear();
        }
        self.total.abandon_with_message("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_goes_on_at_the_pace_so_far() {
        let first = Instant::now();
        let left = TimeLeft {
            runs: 6,
            ended: 2,
            first: Some(first),
        };
        let now = first + Duration::from_secs(60);
        assert_eq!(left.estimate(now), Some(Duration::from_secs(120)));
        let unknown = TimeLeft {
            runs: 6,
            ended: 0,
            first: Some(first),
        };
        assert_eq!(unknown.estimate(now), None);
    }
}
