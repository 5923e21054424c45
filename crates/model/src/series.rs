//! Patch series.

use serde::{Deserialize, Serialize};

/// One patch of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The subject without the `[PATCH v2 1/3]` prefix.
    pub subject: String,
    /// The `Message-Id`, if it came as a mail.
    pub message_id: Option<String>,
}

/// An ordered list of patches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The subject of the cover letter, or of the only patch.
    pub subject: String,
    /// The revision: 1 for a series without a `v2` in its prefix.
    pub revision: u32,
    /// The commit that the series applies to, if it says so.
    pub base_commit: Option<String>,
    /// The patches, first to apply first.
    pub patches: Vec<Patch>,
}
