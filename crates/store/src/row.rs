//! Rows to model types and back: the only place that reads columns.

use std::fmt::Display;
use std::str::FromStr;

use klab_model::{Timestamp, from_micros};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::StoreError;

/// How often a row was changed. A change names the version it was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub(crate) i64);

impl Version {
    /// The version of something that was just made.
    pub const FIRST: Version = Version(1);

    /// The version after one change.
    #[must_use]
    pub const fn next(self) -> Version {
        Version(self.0.saturating_add(1))
    }
}

/// A value with the version it was read at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// Its version.
    pub version: Version,
}

/// The cells of one row, with the place to name when one of them is broken.
pub(crate) struct Cells<'r> {
    row: &'r AnyRow,
    table: &'static str,
    key: String,
}

impl<'r> Cells<'r> {
    /// A row of `table`; `key` are the columns of its primary key.
    pub(crate) fn new(row: &'r AnyRow, table: &'static str, key: &[&str]) -> Self {
        let part = |column: &&str| {
            row.try_get::<String, _>(*column)
                .or_else(|_| row.try_get::<i64, _>(*column).map(|n| n.to_string()))
                .unwrap_or_else(|_| "?".to_owned())
        };
        let key = key.iter().map(part).collect::<Vec<_>>().join("/");
        Self { row, table, key }
    }

    fn corrupt(&self, column: &'static str, problem: impl Display) -> StoreError {
        StoreError::Corrupt {
            table: self.table,
            key: self.key.clone(),
            column,
            problem: problem.to_string(),
        }
    }

    fn get<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, sqlx::Any> + sqlx::Type<sqlx::Any>,
    {
        self.row
            .try_get(column)
            .map_err(|error| self.corrupt(column, error))
    }

    /// Text as it is.
    pub(crate) fn text(&self, column: &'static str) -> Result<String, StoreError> {
        self.get(column)
    }

    /// The same, or NULL.
    pub(crate) fn maybe_text(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&self, column: &'static str) -> Result<Vec<u8>, StoreError> {
        self.get(column)
    }

    /// Text that a parsing constructor accepts.
    pub(crate) fn parsed<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text: String = self.get(column)?;
        text.parse().map_err(|error| self.corrupt(column, error))
    }

    /// The same, or NULL.
    pub(crate) fn maybe_parsed<T>(&self, column: &'static str) -> Result<Option<T>, StoreError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text: Option<String> = self.get(column)?;
        text.map(|text| text.parse().map_err(|error| self.corrupt(column, error)))
            .transpose()
    }

    /// A JSON document.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|error| self.corrupt(column, error))
    }

    /// The same, or NULL.
    pub(crate) fn maybe_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| self.corrupt(column, error)))
            .transpose()
    }

    /// A whole number in the range of `T`.
    pub(crate) fn int<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: TryFrom<i64>,
        T::Error: Display,
    {
        let number: i64 = self.get(column)?;
        T::try_from(number).map_err(|error| self.corrupt(column, format!("{number}: {error}")))
    }

    /// A floating point number.
    pub(crate) fn real(&self, column: &'static str) -> Result<f64, StoreError> {
        self.get(column)
    }

    /// A point in time.
    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.int(column).map(from_micros)
    }

    /// The same, or NULL.
    pub(crate) fn maybe_time(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        let micros: Option<i64> = self.get(column)?;
        Ok(micros.map(from_micros))
    }

    /// The row's version.
    pub(crate) fn version(&self) -> Result<Version, StoreError> {
        self.int("version").map(Version)
    }
}

/// A model value as JSON text.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Model types have text keys only and cannot fail to serialise.
    serde_json::to_string(value).expect("model types always serialise to JSON")
}

/// An unsigned number as the signed one that both engines store. Sizes and counters never
/// come near the limit.
pub(crate) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
