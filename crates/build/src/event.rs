//! What a build tells while it goes on.

use std::fmt;

use crate::{BuildError, Cancel};

/// A step of the way from a variant to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Objects come from a tree's source.
    Fetching,
    /// Patches are applied.
    Applying,
    /// The work tree moves to a commit.
    CheckingOut,
    /// The configuration is made.
    Configuring,
    /// `make` runs.
    Building,
    /// The package is written.
    Packing,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetching => "fetching",
            Self::Applying => "applying patches",
            Self::CheckingOut => "checking out",
            Self::Configuring => "configuring",
            Self::Building => "building",
            Self::Packing => "packing",
        })
    }
}

/// Where the total of a [`Progress`] comes from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalFrom {
    /// The objects whose recorded dependencies name a file that changed.
    Dependencies,
    /// The steps of the last build from nothing of the same configuration.
    EarlierBuild,
    /// The number of symbols that are switched on in the configuration.
    Configuration,
}

/// How far `make` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Steps of `make` so far: files compiled, linked, generated.
    pub done: u64,
    /// Expected steps; never less than `done`.
    pub total: u64,
    /// Where the total comes from.
    pub total_from: TotalFrom,
    /// The file of the last step, as `make` names it.
    pub current: String,
}

/// Something that whoever waits for a build may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildEvent {
    /// A step begins.
    Stage(Stage),
    /// Another build or process holds what is needed; says what.
    Waiting(String),
    /// `make` went on.
    Progress(Progress),
    /// A line of git about objects that come in.
    Transfer(String),
    /// Something that does not stop the build, one sentence.
    Note(String),
}

/// How a caller follows a build and stops it: where events go, and the token.
pub struct Watcher<'a> {
    cancel: &'a Cancel,
    events: &'a mut dyn FnMut(BuildEvent),
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("cancel", self.cancel)
            .finish_non_exhaustive()
    }
}

impl<'a> Watcher<'a> {
    /// `events` is called on the thread that builds and should return at once.
    pub fn new(cancel: &'a Cancel, events: &'a mut dyn FnMut(BuildEvent)) -> Self {
        Self { cancel, events }
    }

    pub(crate) fn cancel(&self) -> &'a Cancel {
        self.cancel
    }

    pub(crate) fn tell(&mut self, event: BuildEvent) {
        (self.events)(event);
    }

    pub(crate) fn stage(&mut self, stage: Stage) -> Result<(), BuildError> {
        self.check()?;
        self.tell(BuildEvent::Stage(stage));
        Ok(())
    }

    pub(crate) fn note(&mut self, text: String) {
        self.tell(BuildEvent::Note(text));
    }

    /// Fails once the token is cancelled.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if self.cancel.is_cancelled() {
            Err(BuildError::Cancelled)
        } else {
            Ok(())
        }
    }
}
