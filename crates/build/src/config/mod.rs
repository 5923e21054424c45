//! Kernel configurations: a base, fragments over it, and what became of both.

mod dotconfig;
mod expression;
mod fragment;
mod kconfig;
mod request;
mod resolve;
mod untaken;

pub use dotconfig::{DotConfig, Value};
pub use fragment::Fragment;
pub use request::{BaseConfig, ConfigRequest};
pub use resolve::ResolvedConfig;
pub use untaken::{Untaken, Why};

pub(crate) use resolve::{Configure, configure};
