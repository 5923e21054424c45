//! Boards, how they are chosen, and their state machine.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::text::{InvalidText, text_type};
use crate::{Arch, BoardFacts, BoardName, Fence, InstanceId, RunId, SessionId, Timestamp};

/// A tag of a board: `key=value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag {
    key: String,
    value: String,
}

impl Tag {
    /// Reads `key=value`.
    ///
    /// # Errors
    /// [`InvalidText`] unless both sides are words of letters, digits, `.`, `_`, `-`.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let word = |text: &str| {
            (1..=63).contains(&text.len())
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        match text.split_once('=') {
            Some((key, value)) if word(key) && word(value) => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(InvalidText::new(
                "tag",
                text,
                "key=value, both of letters, digits, '.', '_' and '-'",
            )),
        }
    }

    /// The part before `=`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The part after `=`.
    pub fn value(&self) -> &str {
        &self.value
    }
}

text_type!(Tag);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Tags that a board must all have. `arch` matches the architecture of the board.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagSelector(pub Vec<Tag>);

impl TagSelector {
    /// Whether a board with this arch and these tags fits.
    pub fn matches(&self, arch: Arch, tags: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|tag| match tag.key() {
            "arch" => Arch::parse(tag.value()) == Ok(arch),
            key => tags.get(key).is_some_and(|value| value == tag.value()),
        })
    }
}

/// What `--boards` asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BoardSelector {
    /// Each of these boards.
    Named(Vec<BoardName>),
    /// One board that has all these tags; always the same one within a job.
    Tagged(TagSelector),
}

impl BoardSelector {
    /// Reads `NAME,NAME,...` or `tag=value,tag=value,...`.
    ///
    /// # Errors
    /// [`InvalidText`] for a bad name or tag, a repeat, or a mixture of both.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let parts: Vec<&str> = text.split(',').collect();
        let distinct: std::collections::BTreeSet<&&str> = parts.iter().collect();
        if distinct.len() != parts.len() {
            return Err(InvalidText::new(
                "board selector",
                text,
                "each name or tag once",
            ));
        }
        if parts.iter().all(|part| part.contains('=')) {
            let tags = parts
                .into_iter()
                .map(Tag::parse)
                .collect::<Result<_, _>>()?;
            return Ok(Self::Tagged(TagSelector(tags)));
        }
        if parts.iter().any(|part| part.contains('=')) {
            return Err(InvalidText::new(
                "board selector",
                text,
                "either board names or tag=value pairs, separated by commas",
            ));
        }
        parts
            .into_iter()
            .map(BoardName::parse)
            .collect::<Result<_, _>>()
            .map(Self::Named)
    }
}

text_type!(BoardSelector);

impl fmt::Display for BoardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = match self {
            Self::Named(names) => names.iter().map(ToString::to_string).collect(),
            Self::Tagged(tags) => tags.0.iter().map(ToString::to_string).collect(),
        };
        f.write_str(&parts.join(","))
    }
}

/// One live connection of a board's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Which installation of the agent is connected.
    pub instance: InstanceId,
}

/// Whether the board's agent is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// No connection.
    Offline,
    /// Connected.
    Online(Session),
}

/// The attempt that a board is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// The run.
    pub run: RunId,
    /// The attempt's fencing token.
    pub fence: Fence,
    /// Until when silence is no sign of death.
    pub lease_until: Timestamp,
}

/// The state of a board: connected or not, at work or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardState {
    /// Whether its agent is connected.
    pub presence: Presence,
    /// What it works on. It works on while it is not connected.
    pub busy: Option<Busy>,
}

/// Something a board cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoardError {
    /// Another installation of the agent holds the name.
    #[error(
        "the name is held by agent instance {holder}: give this board another name, or stop \
         the other agent first"
    )]
    NameHeld {
        /// Who holds it.
        holder: InstanceId,
    },
    /// The board is at work.
    #[error("the board is busy with run {run}")]
    Busy {
        /// With which run.
        run: RunId,
    },
    /// The board is not connected.
    #[error("the board is offline")]
    Offline,
    /// The session that speaks is not the current one.
    #[error("session {found} was replaced by another connection")]
    StaleSession {
        /// The session that spoke.
        found: SessionId,
    },
}

impl BoardState {
    /// A board that nobody has heard of yet.
    pub const fn new() -> Self {
        Self {
            presence: Presence::Offline,
            busy: None,
        }
    }

    /// The current session.
    pub const fn session(&self) -> Option<&Session> {
        match &self.presence {
            Presence::Online(session) => Some(session),
            Presence::Offline => None,
        }
    }

    /// Whether the board could take a run now.
    pub const fn is_free(&self) -> bool {
        matches!(self.presence, Presence::Online(_)) && self.busy.is_none()
    }

    /// The word used in tables and JSON.
    pub const fn as_str(&self) -> &'static str {
        match (&self.presence, &self.busy) {
            (_, Some(_)) => "busy",
            (Presence::Online(_), None) => "idle",
            (Presence::Offline, None) => "offline",
        }
    }

    /// An agent connects. `holder` is the installation that held the name last.
    ///
    /// A newer connection of the same installation replaces the older one. Another
    /// installation gets the name only from a board that is offline and has no run.
    ///
    /// # Errors
    /// [`BoardError::NameHeld`].
    pub fn connect(
        &self,
        session: Session,
        holder: Option<InstanceId>,
    ) -> Result<BoardState, BoardError> {
        let quiet = matches!(self.presence, Presence::Offline) && self.busy.is_none();
        match holder {
            Some(holder) if holder != session.instance && !quiet => {
                Err(BoardError::NameHeld { holder })
            }
            _ => Ok(BoardState {
                presence: Presence::Online(session),
                busy: self.busy,
            }),
        }
    }

    /// A connection ended.
    ///
    /// # Errors
    /// [`BoardError::StaleSession`] if it had been replaced before.
    pub fn disconnect(&self, session: SessionId) -> Result<BoardState, BoardError> {
        match &self.presence {
            Presence::Online(current) if current.id == session => Ok(BoardState {
                presence: Presence::Offline,
                busy: self.busy,
            }),
            _ => Err(BoardError::StaleSession { found: session }),
        }
    }

    /// The board is given a run.
    ///
    /// # Errors
    /// [`BoardError::Busy`] or [`BoardError::Offline`].
    pub fn assign(&self, busy: Busy) -> Result<BoardState, BoardError> {
        match (&self.presence, &self.busy) {
            (_, Some(current)) => Err(BoardError::Busy { run: current.run }),
            (Presence::Offline, None) => Err(BoardError::Offline),
            (Presence::Online(_), None) => Ok(BoardState {
                presence: self.presence.clone(),
                busy: Some(busy),
            }),
        }
    }

    /// The attempt with this token is over. A board that works on something else stays
    /// as it is.
    pub fn release(&self, fence: Fence) -> BoardState {
        let busy = self.busy.filter(|busy| busy.fence != fence);
        BoardState {
            presence: self.presence.clone(),
            busy,
        }
    }

    /// Silence until `until` is agreed for the attempt with this token.
    pub fn extend(&self, fence: Fence, until: Timestamp) -> BoardState {
        let busy = self.busy.map(|busy| {
            if busy.fence == fence {
                Busy {
                    lease_until: until,
                    ..busy
                }
            } else {
                busy
            }
        });
        BoardState {
            presence: self.presence.clone(),
            busy,
        }
    }
}

impl Default for BoardState {
    fn default() -> Self {
        Self::new()
    }
}

/// A machine under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// Its name.
    pub name: BoardName,
    /// Its architecture.
    pub arch: Arch,
    /// Tags given in its agent's configuration.
    pub tags: BTreeMap<String, String>,
    /// What its agent told last.
    pub facts: BoardFacts,
    /// The installation that held the name last.
    pub holder: Option<InstanceId>,
    /// Where it stands.
    pub state: BoardState,
    /// When it was heard last.
    pub seen_at: Timestamp,
}
