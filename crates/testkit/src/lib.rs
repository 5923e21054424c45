//! Builders, a fake board and golden helpers for tests.
