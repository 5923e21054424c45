//! What can go wrong, with the data to act on.

use std::io;
use std::path::{Path, PathBuf};

use klab_model::Digest;
use sqlx::error::ErrorKind;
use thiserror::Error;

/// An error of the store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Something that was named is not there.
    #[error("there is no {what} {name}")]
    NotFound {
        /// Which kind of thing.
        what: &'static str,
        /// Its name, id or digest.
        name: String,
    },
    /// The name or id is taken by something else.
    #[error("{what} {name} exists already{}", .existing.map(|d| format!(" with digest {d}")).unwrap_or_default())]
    AlreadyExists {
        /// Which kind of thing.
        what: &'static str,
        /// The name or id.
        name: String,
        /// The digest of what is there, for things that have one.
        existing: Option<Digest>,
    },
    /// Somebody else changed it since it was read: read again and decide again.
    #[error("{what} {name} was changed by somebody else since it was read: read it again")]
    Conflict {
        /// Which kind of thing.
        what: &'static str,
        /// Its name or id.
        name: String,
    },
    /// The disk is full. Nothing of what was to be written is kept.
    #[error("no space left for {need} bytes in {path}: free some space, then repeat")]
    DiskFull {
        /// Where it was to be written.
        path: PathBuf,
        /// How many bytes were to be written.
        need: u64,
    },
    /// The disk of the database is full; the transaction was undone.
    #[error(
        "no space left for the database while it was to {context}: free some space, then repeat"
    )]
    DatabaseFull {
        /// What was being done.
        context: &'static str,
    },
    /// A row holds something that is not a legal value.
    #[error("table {table}, row {key}, column {column}: {problem}; restore the row from a backup")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The primary key of the row.
        key: String,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Another controller works with these files.
    #[error(
        "{path} is locked by another controller: stop that one first, or give this one another \
         folder"
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Another controller works with this PostgreSQL database.
    #[error(
        "the database is in use by another controller: stop that one first, or give this one \
         another database; if that one's machine is gone, end its session with \
         pg_terminate_backend"
    )]
    DatabaseLocked,
    /// An upload was continued at the wrong place.
    #[error("upload {key} continues at byte {committed}, not at byte {offset}")]
    WrongOffset {
        /// The upload.
        key: String,
        /// Where the sender wanted to continue.
        offset: u64,
        /// The number of bytes that are stored: where to continue.
        committed: u64,
    },
    /// An upload was to be committed before all of it had arrived.
    #[error("upload {key} has {committed} of {size} bytes: send the rest first")]
    Incomplete {
        /// The upload.
        key: String,
        /// The number of bytes that are stored.
        committed: u64,
        /// The number of bytes it should have.
        size: u64,
    },
    /// The bytes of an upload are not what was promised; they were thrown away.
    #[error(
        "upload {key} has digest {found} and {found_size} bytes, but {expected} and \
         {expected_size} bytes were promised: it was thrown away, send it again from the start"
    )]
    Mismatch {
        /// The upload.
        key: String,
        /// The digest that was promised.
        expected: Digest,
        /// The size that was promised.
        expected_size: u64,
        /// The digest of what arrived.
        found: Digest,
        /// The size of what arrived.
        found_size: u64,
    },
    /// A name that no upload can have.
    #[error(
        "upload key {found:?} is not valid: expected 1 to 200 characters of a-z, 0-9, '.', '_' \
         and '-', not starting with '.'"
    )]
    BadUploadKey {
        /// The text as it was found.
        found: String,
    },
    /// Reading was to begin behind the end of an object.
    #[error("object {digest} has {size} bytes: it cannot be read from byte {offset}")]
    BeyondEnd {
        /// The object.
        digest: Digest,
        /// Its size.
        size: u64,
        /// Where reading was to begin.
        offset: u64,
    },
    /// A page token that this store did not give out.
    #[error("page token {found:?} is not valid: use the one that the page before gave")]
    BadPageToken {
        /// The text as it was found.
        found: String,
    },
    /// The tables are not what this version of klab makes.
    #[error(
        "the tables were made by another version of klab: use that version or a newer one, or \
         restore a backup"
    )]
    Migration {
        /// The reason.
        #[source]
        source: Box<sqlx::migrate::MigrateError>,
    },
    /// The file of the rows cannot be used.
    #[error(
        "{path} cannot be opened as a SQLite database: restore it from a backup, or move it away to begin anew"
    )]
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The database failed.
    #[error("the database failed to {context}")]
    Database {
        /// What was being done.
        context: &'static str,
        /// The reason.
        #[source]
        source: sqlx::Error,
    },
    /// A file could not be worked with.
    #[error("failed to {context} {path}")]
    File {
        /// What was being done.
        context: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The object store failed.
    #[error("failed to read object {digest}")]
    Object {
        /// The object.
        digest: Digest,
        /// The reason.
        #[source]
        source: object_store::Error,
    },
}

/// SQLITE_FULL, SQLITE_IOERR_SHMSIZE (no space for the shared memory file) and PostgreSQL's
/// `disk_full`.
const FULL: [&str; 3] = ["13", "4874", "53100"];
/// SQLITE_BUSY and its kinds; PostgreSQL's `serialization_failure` and `deadlock_detected`.
const CLASH: [&str; 5] = ["5", "261", "517", "40001", "40P01"];

impl StoreError {
    /// For `map_err`: the database failed to `context`.
    pub(crate) fn database(context: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
        move |source| {
            let code = source
                .as_database_error()
                .and_then(|error| error.code())
                .unwrap_or_default();
            if FULL.contains(&code.as_ref()) {
                StoreError::DatabaseFull { context }
            } else if CLASH.contains(&code.as_ref()) {
                StoreError::Conflict {
                    what: "transaction to",
                    name: context.to_owned(),
                }
            } else {
                StoreError::Database { context, source }
            }
        }
    }

    /// For `map_err`: a row that names a missing `what` is that thing not found.
    pub(crate) fn missing(
        context: &'static str,
        what: &'static str,
        name: String,
    ) -> impl FnOnce(sqlx::Error) -> StoreError {
        move |source| match source.as_database_error().map(|error| error.kind()) {
            Some(ErrorKind::ForeignKeyViolation) => StoreError::NotFound { what, name },
            _ => Self::database(context)(source),
        }
    }

    /// For `map_err`: failed to `context` the file `path`, while `need` bytes were written.
    pub(crate) fn file<'a>(
        context: &'static str,
        path: &'a Path,
        need: u64,
    ) -> impl Fn(io::Error) -> StoreError + 'a {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull {
                path: path.to_owned(),
                need,
            },
            _ => StoreError::File {
                context,
                path: path.to_owned(),
                source,
            },
        }
    }

    /// Somebody was faster.
    pub(crate) fn conflict(what: &'static str, name: impl ToString) -> StoreError {
        StoreError::Conflict {
            what,
            name: name.to_string(),
        }
    }

    /// It is not there.
    pub(crate) fn not_found(what: &'static str, name: impl ToString) -> StoreError {
        StoreError::NotFound {
            what,
            name: name.to_string(),
        }
    }
}
