//! What time it is, and waiting.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A wait that can be polled anywhere.
pub type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time.
pub trait Clock: Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Waits until it is `until` or later.
    fn sleep_until(&self, until: Timestamp) -> Wait;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration) -> Wait {
        self.sleep_until(later(self.now(), duration))
    }
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep_until(&self, until: Timestamp) -> Wait {
        Box::pin(async move {
            // The system clock may be set back or forth while tokio's clock runs on, so the
            // wait is done in pieces and the time looked at again.
            loop {
                let left = until.duration_since(Timestamp::now());
                let Ok(left) = Duration::try_from(left) else {
                    return;
                };
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST_PIECE)).await;
            }
        })
    }
}

const LONGEST_PIECE: Duration = Duration::from_secs(60);

/// A clock that moves only when it is told to. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: watch::Sender::new(now),
        }
    }

    /// Moves the clock forward; waits that are over then end.
    pub fn advance(&self, duration: Duration) {
        self.now.send_modify(|now| *now = later(*now, duration));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, until: Timestamp) -> Wait {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // A clock that is gone never reaches the time.
            if now.wait_for(|now| *now >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// `from` plus `duration`, cut at the end of the calendar.
fn later(from: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| from.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_ends_waits_only_when_it_is_moved_far_enough() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let mut wait = clock.sleep(Duration::from_secs(10));
        clock.advance(Duration::from_secs(9));
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut wait)
                .await
                .is_err()
        );
        clock.advance(Duration::from_secs(1));
        wait.await;
        assert_eq!(clock.now().as_second(), 10);
    }

    #[tokio::test]
    async fn the_system_clock_does_not_wait_for_the_past() {
        SystemClock.sleep_until(Timestamp::UNIX_EPOCH).await;
        SystemClock.sleep(Duration::ZERO).await;
    }

    #[test]
    fn adding_too_much_stops_at_the_end_of_the_calendar() {
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
    }
}
