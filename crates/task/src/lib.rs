//! Named tasks, cancellation, injected clock and randomness, back-off.
