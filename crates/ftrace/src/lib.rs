//! Trace text to events and latency traces; usable without the rest of klab.
