//! Telling a build from another thread to stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Stops whatever it was handed to, from any thread, once and for all. Clones share the state.
///
/// It is a file descriptor, so that a build waits for its children and for this in one
/// `poll()`, without a timer.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    /// A token that nobody has cancelled.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(Arc::new(eventfd(0, flags)?)))
    }

    /// Cancels: the children of what it was handed to are ended.
    pub fn cancel(&self) {
        // Fails only when the counter is full, which is cancelled as well.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Readable once it was cancelled.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::Cancel;

    #[test]
    fn clones_share_the_state_and_it_stays() {
        let cancel = Cancel::new().expect("a descriptor");
        let other = cancel.clone();
        assert!(!cancel.is_cancelled());
        other.cancel();
        other.cancel();
        assert!(cancel.is_cancelled() && cancel.is_cancelled());
    }
}
