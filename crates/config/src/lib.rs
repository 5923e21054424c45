//! Plan files to [`klab_model::Plan`], with diagnostics that name the place and the mend.
//!
//! [`parse_plan`] reads a file that a person wrote. It accepts a plan as a whole or not
//! at all, and reports everything that is wrong with it at once: each [`Diagnostic`] says
//! where (file, line, column and field), what was found, what was expected and, where one
//! can be guessed, what was probably meant.
//!
//! [`builtin_plan`] gives the text of the plans that come with klab; they are the files of
//! `configs/plans` and go through the same reader.
//!
//! Inside: `yaml` turns text into a tree with places and is the only module that knows
//! the YAML library, `reader` checks trees, `plan` and `commands` know what a plan looks
//! like. No file is opened here: callers bring text and a name for it.

mod builtin;
mod commands;
mod diagnostic;
mod nearest;
mod plan;
mod reader;
mod yaml;

pub use builtin::{UnknownName, builtin_fragment, builtin_fragments, builtin_plan, builtin_plans};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use plan::{MAX_FILE_BYTES, parse_plan, parse_plan_bytes};
