//! Points in time. Stored everywhere as microseconds since 1970 in UTC.

pub use jiff::Timestamp;

/// Microseconds since the Unix epoch.
pub fn to_micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// The inverse of [`to_micros`]; a value outside the calendar is cut to its nearest end.
pub fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}
