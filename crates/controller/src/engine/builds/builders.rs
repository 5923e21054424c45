//! The builders that are connected now.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use klab_model::{Arch, Build, BuildRef, BuildState, BuilderName, Tree};
use klab_sched::FreeBuilder;
use klab_task::CancellationToken;
use tokio::sync::mpsc;

/// What a builder says first.
#[derive(Debug, Clone)]
pub(crate) struct BuilderHello {
    pub(crate) builder: BuilderName,
    pub(crate) archs: Vec<Arch>,
    pub(crate) toolchains: Vec<String>,
}

/// What a controller says to a builder.
#[derive(Debug)]
pub(crate) enum BuilderDown {
    /// The builder is accepted.
    Welcome,
    /// A build begins.
    Order {
        at: BuildRef,
        tree: Tree,
        build: Box<Build>,
        state: BuildState,
    },
    /// Whether the lab has the kernel of a target already.
    Verdict {
        at: BuildRef,
        index: u32,
        known: bool,
    },
    /// The attempt is to be ended.
    Cancel { at: BuildRef, reason: String },
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct BuilderConnection {
    pub(crate) builder: BuilderName,
    /// Tells this connection from a later one of the same name.
    pub(crate) number: u64,
    pub(crate) down: mpsc::UnboundedReceiver<BuilderDown>,
    /// Cancelled when the connection is to end.
    pub(crate) end: CancellationToken,
}

#[derive(Debug)]
struct Handle {
    number: u64,
    archs: Vec<Arch>,
    down: mpsc::UnboundedSender<BuilderDown>,
    work: Option<BuildRef>,
}

#[derive(Debug, Default)]
struct Connected {
    last: u64,
    by_name: HashMap<BuilderName, Handle>,
}

/// The connections by name. Locks are held for single look-ups only.
#[derive(Debug, Default)]
pub(super) struct Builders(Mutex<Connected>);

impl Builders {
    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection; `None` if a builder of that name is connected.
    pub(super) fn open(
        &self,
        hello: &BuilderHello,
        end: CancellationToken,
    ) -> Option<BuilderConnection> {
        let mut connected = self.lock();
        if connected.by_name.contains_key(&hello.builder) {
            return None;
        }
        connected.last += 1;
        let number = connected.last;
        let (down, receiver) = mpsc::unbounded_channel();
        let handle = Handle {
            number,
            archs: hello.archs.clone(),
            down,
            work: None,
        };
        connected.by_name.insert(hello.builder.clone(), handle);
        Some(BuilderConnection {
            builder: hello.builder.clone(),
            number,
            down: receiver,
            end,
        })
    }

    /// Forgets a connection; the attempt that it worked on.
    pub(super) fn close(&self, builder: &BuilderName, number: u64) -> Option<BuildRef> {
        let mut connected = self.lock();
        match connected.by_name.get(builder) {
            Some(handle) if handle.number == number => connected
                .by_name
                .remove(builder)
                .and_then(|handle| handle.work),
            _ => None,
        }
    }

    /// Those with nothing to do.
    pub(super) fn free(&self) -> Vec<FreeBuilder> {
        let connected = self.lock();
        let free = connected
            .by_name
            .iter()
            .filter(|(_, handle)| handle.work.is_none());
        free.map(|(name, handle)| FreeBuilder {
            name: name.clone(),
            archs: handle.archs.clone(),
        })
        .collect()
    }

    /// Whether anybody who is connected can build this.
    pub(super) fn can_build(&self, arch: Arch) -> bool {
        let connected = self.lock();
        connected
            .by_name
            .values()
            .any(|handle| handle.archs.contains(&arch))
    }

    /// Marks a builder as busy; `false` if it is gone or busy.
    pub(super) fn begin(&self, builder: &BuilderName, at: BuildRef) -> bool {
        match self.lock().by_name.get_mut(builder) {
            Some(handle) if handle.work.is_none() => {
                handle.work = Some(at);
                true
            }
            _ => false,
        }
    }

    /// Marks the builder of an attempt as free.
    pub(super) fn end_work(&self, builder: &BuilderName, at: BuildRef) {
        if let Some(handle) = self.lock().by_name.get_mut(builder)
            && handle.work == Some(at)
        {
            handle.work = None;
        }
    }

    /// Says something to the builder of an attempt, if it is still at it.
    pub(super) fn send(&self, at: BuildRef, message: BuilderDown) {
        let connected = self.lock();
        let mut handles = connected.by_name.values();
        if let Some(handle) = handles.find(|handle| handle.work == Some(at)) {
            // A builder that has just gone away needs no message.
            let _ = handle.down.send(message);
        }
    }

    /// Says the first word to a builder.
    pub(super) fn welcome(&self, builder: &BuilderName) {
        if let Some(handle) = self.lock().by_name.get(builder) {
            let _ = handle.down.send(BuilderDown::Welcome);
        }
    }
}
