//! Artifact bytes to samples: one versioned parser per format.
