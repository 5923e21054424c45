//! klab: submit, watch, compare.
