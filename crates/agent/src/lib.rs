//! The agent: journal, spool, step machine, uplink.
