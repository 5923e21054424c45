//! Conversions, by subject. From the model to a message is `From`, the other way is
//! `TryFrom` with a [`ConvertError`](crate::ConvertError) that names the field.

mod agent;
mod build;
mod builder;
mod common;
mod feed;
mod plan;
mod user;

pub use agent::attempt_ref;
pub use common::{arch_of, duration, duration_of, span_of, tags_of};
pub use user::{board_slot, kernel_message};
