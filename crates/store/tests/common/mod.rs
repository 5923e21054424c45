//! Engines and values for the tests of the store.
#![allow(dead_code)] // Each test file uses its own part.

pub(crate) mod postgres;
pub(crate) mod values;

use std::path::PathBuf;

use klab_store::{Database, Store, StoreLocation};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tempfile::TempDir;

/// A fresh place for one store. It can be opened again and again.
pub(crate) struct Lab {
    pub(crate) location: StoreLocation,
    _folder: TempDir,
}

impl Lab {
    pub(crate) fn sqlite() -> Lab {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Lab {
            location: StoreLocation::in_folder(folder.path()),
            _folder: folder,
        }
    }

    pub(crate) fn postgres(url: String) -> Lab {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Lab {
            location: StoreLocation {
                database: Database::Postgres(url),
                folder: folder.path().to_owned(),
            },
            _folder: folder,
        }
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location).await.expect("the store opens")
    }

    pub(crate) fn url(&self) -> String {
        match &self.location.database {
            Database::Sqlite(path) => format!("sqlite://{}", path.display()),
            Database::Postgres(url) => url.clone(),
        }
    }

    /// A connection beside the store.
    pub(crate) async fn connection(&self) -> AnyConnection {
        sqlx::any::install_default_drivers();
        AnyConnection::connect(&self.url())
            .await
            .expect("a second connection")
    }

    /// Changes rows behind the store's back.
    pub(crate) async fn tamper(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&mut self.connection().await)
            .await
            .expect("the statement is good");
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.location.folder.clone()
    }
}
