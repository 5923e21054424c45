//! The words of klab as types: ids, variants, runs, boards, and their state machines.
