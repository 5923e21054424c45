//! Samples of variants side by side, with statistics.
