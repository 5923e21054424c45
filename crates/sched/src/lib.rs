//! Which run goes to which board, as pure functions.
//!
//! [`expand`] turns a job into runs: for every slot, round after round, each variant
//! once, in an order that rotates from round to round. [`assign`] looks at all boards and
//! all live jobs and says which runs begin now. It is called after every change; it
//! keeps nothing between calls, so a decision that was not carried out is made again.
//!
//! The rules of [`assign`]:
//!
//! - a board executes at most one run, and a slot has at most one active run;
//! - the runs of a slot begin in the order of their positions; a run that is repeated
//!   keeps its position, so nothing overtakes it;
//! - older jobs choose first; among jobs of the same moment, the owner with fewer active
//!   runs does;
//! - an open slot is bound to the first free board that fits and stays there, because
//!   only variants that ran on the same board can be compared.
//!
//! [`assign_builds`] does the same for kernels that are to be built.
//!
//! No clock, no random numbers, no stores: ids come in as an argument, and the result
//! depends neither on the order of boards nor on the order of jobs in the input.

mod assign;
mod builds;
mod expand;

pub use assign::{Decision, JobEntry, Lab, assign};
pub use builds::{FreeBuilder, assign_builds};
pub use expand::expand;
