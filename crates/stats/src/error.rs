//! What can be wrong with numbers handed in.

use thiserror::Error;

/// Why a list of numbers is not a [`SampleSet`](crate::SampleSet).
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum SampleError {
    /// The list was empty.
    #[error("no samples: at least one number is needed")]
    Empty,
    /// A number was NaN or infinite.
    #[error(
        "sample {index} is {value}: only finite numbers can be summarised; drop or mend it at its source"
    )]
    NotFinite {
        /// Position in the list, from 0.
        index: usize,
        /// The number found there.
        value: f64,
    },
    /// A number was so large or so small that its square leaves the range of `f64`.
    #[error(
        "sample {index} is {value:e}: magnitudes must be 0 or between 1e-150 and 1e150; choose another unit"
    )]
    OutOfRange {
        /// Position in the list, from 0.
        index: usize,
        /// The number found there.
        value: f64,
    },
}

/// Why a fraction is not a [`Quantile`](crate::Quantile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{numerator}/{denominator} is not a quantile: it must lie above 0 and not above 1")]
pub struct QuantileError {
    /// The upper number given.
    pub numerator: u32,
    /// The lower number given.
    pub denominator: u32,
}
