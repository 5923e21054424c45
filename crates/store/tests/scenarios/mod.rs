//! What must hold on both engines.

pub(crate) mod builds;
pub(crate) mod jobs;
pub(crate) mod results;
pub(crate) mod runs;
pub(crate) mod things;
