//! Opening: locks, connections, migrations.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use klab_model::Fence;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Any, AnyConnection, AnyPool, ConnectOptions, Connection, Row, SqlSafeStr, Transaction};

use crate::{Objects, StoreError, sql};

/// Name and text of each migration of an engine, in order.
macro_rules! migrations {
    (@ $engine:literal, $($number:literal $name:literal),*) => {
        [$((
            $name,
            include_str!(concat!("../migrations/", $engine, "/", $number, "_", $name, ".sql")),
        )),*]
    };
    ($engine:literal) => {
        migrations!(@ $engine, "0001" "rows", "0002" "builds", "0003" "board_configs", "0004" "kernel_reports")
    };
}

/// Where the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file; made if it is not there.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL database: `postgres://user:password@host/name`. Not that of a
    /// pooler in transaction mode: the lock of the one controller belongs to the session.
    Postgres(String),
}

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation {
    /// The rows.
    pub database: Database,
    /// The folder for objects and uploads; made if it is not there.
    pub folder: PathBuf,
}

impl StoreLocation {
    /// Everything in one folder, rows in SQLite.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self {
            database: Database::Sqlite(folder.join("klab.db")),
            folder,
        }
    }
}

/// The memory of a controller. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// One connection: SQLite allows one writer, and on PostgreSQL it holds the lock that
    /// keeps other controllers away, so that nothing is ever written without it.
    writers: AnyPool,
    readers: AnyPool,
    objects: Objects,
    /// Held until the store is dropped.
    _locks: Vec<File>,
}

const READERS: u32 = 4;
/// How long a new controller waits for the lock of one that has just ended: the server
/// frees it when it notices.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// Opens a store, makes it if it is not there, and brings its tables up to date.
    ///
    /// # Errors
    /// [`StoreError::Locked`] or [`StoreError::DatabaseLocked`] if another controller has
    /// the folder or the database open, [`StoreError::File`], [`StoreError::Database`],
    /// [`StoreError::Migration`].
    pub async fn open(location: &StoreLocation) -> Result<Store, StoreError> {
        make_folder(&location.folder)?;
        let mut locks = vec![lock(&location.folder.join("klab.lock"))?];
        let (writers, readers) = match &location.database {
            Database::Sqlite(path) => {
                locks.push(lock(&beside(path, ".lock"))?);
                open_sqlite(path).await?
            }
            Database::Postgres(url) => open_postgres(url).await?,
        };
        let objects = Objects::open(&location.folder).await?;
        Ok(Store {
            inner: Arc::new(Inner {
                writers,
                readers,
                objects,
                _locks: locks,
            }),
        })
    }

    /// The bytes.
    pub fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    /// A fencing token that is greater than every one given out before.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn next_fence(&self) -> Result<Fence, StoreError> {
        let context = "count up the fence";
        let row = sqlx::query(sql::FENCE_NEXT)
            .fetch_one(self.writers())
            .await
            .map_err(StoreError::database(context))?;
        let value: i64 = row
            .try_get("value")
            .map_err(StoreError::database(context))?;
        Ok(Fence(value.unsigned_abs()))
    }

    /// Waits for open transactions and closes every connection.
    pub async fn close(&self) {
        self.inner.readers.close().await;
        self.inner.writers.close().await;
    }

    pub(crate) fn readers(&self) -> &AnyPool {
        &self.inner.readers
    }

    pub(crate) fn writers(&self) -> &AnyPool {
        &self.inner.writers
    }

    /// A transaction that may write; undone unless it is committed.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.writers()
            .begin()
            .await
            .map_err(StoreError::database("begin a transaction"))
    }
}

async fn open_sqlite(path: &Path) -> Result<(AnyPool, AnyPool), StoreError> {
    sqlx::any::install_default_drivers();
    let path = std::path::absolute(path).map_err(StoreError::file("find", path, 0))?;
    let url = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .to_url_lossy();
    let options = AnyConnectOptions::from_url(&url).map_err(StoreError::database("open"))?;
    let pool = |size| {
        pool_of(size)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sqlx::raw_sql(sql::SQLITE_SETUP).execute(connection).await?;
                    Ok(())
                })
            })
            .connect_with(options.clone())
    };
    // A pool would try again and again, and only say that it ran out of time.
    check_sqlite(&options)
        .await
        .map_err(|source| StoreError::NoDatabase { path, source })?;
    let writers = pool(1).await.map_err(StoreError::database("open"))?;
    migrate(&writers, migrations!("sqlite")).await?;
    let readers = pool(READERS).await.map_err(StoreError::database("open"))?;
    Ok((writers, readers))
}

/// Opens the file once, and reads it.
async fn check_sqlite(options: &AnyConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = AnyConnection::connect_with(options).await?;
    sqlx::raw_sql(sql::SQLITE_SETUP)
        .execute(&mut connection)
        .await?;
    connection.close().await
}

async fn open_postgres(url: &str) -> Result<(AnyPool, AnyPool), StoreError> {
    sqlx::any::install_default_drivers();
    wait_for_lock(url).await?;
    let writers = pool_of(1)
        // A connection that comes after a lost one needs the lock as well.
        .after_connect(|connection, _| {
            Box::pin(async move {
                match try_lock(connection).await? {
                    true => Ok(()),
                    false => Err(sqlx::Error::Protocol(LOCK_LOST.to_owned())),
                }
            })
        })
        .connect(url)
        .await
        .map_err(StoreError::database("connect"))?;
    migrate(&writers, migrations!("postgres")).await?;
    let readers = pool_of(READERS)
        .connect(url)
        .await
        .map_err(StoreError::database("connect"))?;
    Ok((writers, readers))
}

const LOCK_LOST: &str = "another controller works with the database: stop that one first";

/// Asks for the lock on a connection of its own, so that a refusal is told from a server
/// that does not answer.
async fn wait_for_lock(url: &str) -> Result<(), StoreError> {
    let failed = || StoreError::database("connect");
    let mut connection = AnyConnection::connect(url).await.map_err(failed())?;
    let granted = tokio::time::timeout(LOCK_PATIENCE, async {
        while !try_lock(&mut connection).await? {
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        Ok(())
    });
    match granted.await {
        Ok(granted) => granted.map_err(failed())?,
        Err(_) => return Err(StoreError::DatabaseLocked),
    }
    sqlx::query(sql::POSTGRES_UNLOCK)
        .execute(&mut connection)
        .await
        .map_err(failed())?;
    connection.close().await.map_err(failed())
}

/// Takes the lock of the one controller for as long as the connection lasts.
async fn try_lock(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::query(sql::POSTGRES_LOCK)
        .fetch_one(connection)
        .await?;
    row.try_get("locked")
}

/// Connections that last. One whose transaction could not be undone in an orderly way is
/// not used again: SQLite ends a transaction of its own accord when the disk is full, the
/// driver goes on counting it, and what it then takes for a commit would only release a
/// savepoint.
fn pool_of(size: u32) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(size)
        .idle_timeout(None)
        .max_lifetime(None)
        .before_acquire(|connection, _| {
            Box::pin(async move { Ok(!connection.is_in_transaction()) })
        })
}

/// Runs what has not been run.
async fn migrate(pool: &AnyPool, all: [(&'static str, &'static str); 4]) -> Result<(), StoreError> {
    let migration = |(version, (name, text)): (i64, (&'static str, &'static str))| {
        let text = text.into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, text, false)
    };
    Migrator::with_migrations((1..).zip(all).map(migration).collect())
        .run(pool)
        .await
        .map_err(|error| match error {
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => {
                StoreError::database("bring its tables up to date")(source)
            }
            other => StoreError::Migration {
                source: Box::new(other),
            },
        })
}

fn lock(path: &Path) -> Result<File, StoreError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(StoreError::file("open", path, 0))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(StoreError::file("lock", path, 0)(source)),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn make_folder(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(StoreError::file("make the folder", path, 0))
}
