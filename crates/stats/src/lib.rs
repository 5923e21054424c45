//! Numbers to estimates.
//!
//! A [`SampleSet`] is a non-empty list of finite numbers; everything else reads one.
//! What it answers: mean, spread, percentiles ([`SampleSet`]); how far two numbers lie
//! apart in percent ([`pdiff`], [`pndiff`]); whether two sets differ ([`mmtests`],
//! [`welch`], [`mann_whitney`]) and by how much ([`hodges_lehmann`]).
//!
//! The rules of mmtests are reproduced exactly where they are named so, edge cases
//! included, because tables in cover letters are read against them. Where mmtests
//! answers `NaN`, this crate answers `None`.
//!
//! The crate knows no files, no clock and no units: a caller that knows whether
//! lower or higher is better says so with [`Better`].

mod diff;
mod error;
pub mod mmtests;
mod quantile;
mod sample_set;
mod shift;
mod student;
mod sum;
mod two_sample;

pub use diff::{Better, improvement, pdiff, pndiff, ratio};
pub use error::{QuantileError, SampleError};
pub use quantile::Quantile;
pub use sample_set::{Moments, SampleSet};
pub use shift::{Shift, hodges_lehmann};
pub use student::{student_t_cdf, student_t_quantile, two_sided_p};
pub use two_sample::{MannWhitney, RankMethod, TTest, mann_whitney, welch};
