//! Jobs to runs, and (boards, runs, now) to assignments: pure functions.
