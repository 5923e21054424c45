//! Numbers to estimates: means, percentiles, spreads.
