//! Builds, their targets and their feed.

use klab_model::{
    Build, BuildEvent, BuildEventBody, BuildState, BuildTaskId, Digest, KernelName, Timestamp,
    from_micros, to_micros,
};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::row::{Cells, big, json};
use crate::{Page, PageRequest, Store, StoreError, Version, Versioned, sql};

/// A build and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRecord {
    /// What was asked for.
    pub build: Build,
    /// What became of it.
    pub state: Versioned<BuildState>,
    /// Digest and size in bytes of its log, once it has one.
    pub log: Option<(Digest, u64)>,
}

/// A change of a build: all of it happens, or nothing.
#[derive(Debug, Clone)]
pub struct BuildTransition {
    build: BuildTaskId,
    expected: Version,
    state: BuildState,
    at: Timestamp,
    events: Vec<BuildEventBody>,
    key: Option<(Digest, KernelName)>,
}

impl BuildTransition {
    /// A build gets a new state at time `at`.
    pub const fn new(record: &BuildRecord, state: BuildState, at: Timestamp) -> Self {
        Self {
            build: record.build.id,
            expected: record.state.version,
            state,
            at,
            events: Vec::new(),
            key: None,
        }
    }

    /// Adds to the feed of the build.
    #[must_use]
    pub fn event(mut self, body: BuildEventBody) -> Self {
        self.events.push(body);
        self
    }

    /// Remembers which kernel these inputs gave; what was remembered first stays.
    #[must_use]
    pub fn key(mut self, key: Digest, kernel: KernelName) -> Self {
        self.key = Some((key, kernel));
        self
    }
}

impl Store {
    /// Saves a new build and begins its feed with [`BuildEventBody::Submitted`].
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] for the id or the name of one of its kernels.
    pub async fn create_build(&self, build: &Build) -> Result<BuildRecord, StoreError> {
        let mut tx = self.begin().await?;
        insert(&mut tx, build).await?;
        for (target, index) in build.targets.iter().zip(0_i64..) {
            insert_target(&mut tx, build.id, index, &target.kernel).await?;
        }
        let submitted = BuildEventBody::Submitted {
            targets: u32::try_from(build.targets.len()).unwrap_or(u32::MAX),
        };
        append(&mut tx, build.id, build.created_at, &submitted).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("save a build"))?;
        self.build(build.id).await
    }

    /// A build.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn build(&self, id: BuildTaskId) -> Result<BuildRecord, StoreError> {
        let row = sqlx::query(sql::BUILD_GET)
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a build"))?
            .ok_or_else(|| StoreError::not_found("build", id))?;
        read_build(&row)
    }

    /// Builds, newest first.
    ///
    /// # Errors
    /// [`StoreError::BadPageToken`].
    pub async fn list_builds(&self, page: &PageRequest) -> Result<Page<BuildRecord>, StoreError> {
        let before = match &page.after {
            // Greater than every id.
            None => "~".to_owned(),
            Some(token) if token.parse::<BuildTaskId>().is_ok() => token.clone(),
            Some(token) => {
                return Err(StoreError::BadPageToken {
                    found: token.clone(),
                });
            }
        };
        let rows = sqlx::query(sql::BUILDS_PAGE)
            .bind(before)
            .bind(page.fetch())
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list builds"))?;
        let builds = rows.iter().map(read_build).collect::<Result<_, _>>()?;
        Ok(Page::cut(builds, page.limit(), |record| {
            record.build.id.to_string()
        }))
    }

    /// Every build that can still go on, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn live_builds(&self) -> Result<Vec<BuildRecord>, StoreError> {
        let rows = sqlx::query(sql::BUILDS_LIVE)
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list live builds"))?;
        rows.iter().map(read_build).collect()
    }

    /// The build that adds, or was to add, a kernel of this name, and which target it is.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn build_of_kernel(
        &self,
        kernel: &KernelName,
    ) -> Result<Option<(BuildRecord, u32)>, StoreError> {
        let row = sqlx::query(sql::BUILD_OF_KERNEL)
            .bind(kernel.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("find the build of a kernel"))?;
        let Some(row) = row else {
            return Ok(None);
        };
        let index = Cells::new(&row, "build_targets", &["kernel"]).int("idx")?;
        Ok(Some((read_build(&row)?, index)))
    }

    /// The kernel that these inputs gave, if they were ever built.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn kernel_of_key(&self, key: &Digest) -> Result<Option<KernelName>, StoreError> {
        let row = sqlx::query(sql::KERNEL_KEY_GET)
            .bind(key.to_string())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("look a build's inputs up"))?;
        row.map(|row| Cells::new(&row, "kernel_keys", &["build_key"]).parsed("kernel"))
            .transpose()
    }

    /// Makes a change of a build.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the build was changed since it was read, or has ended;
    /// [`StoreError::NotFound`] for a kernel that was never added. Nothing has changed then.
    pub async fn change_build(
        &self,
        transition: &BuildTransition,
    ) -> Result<Vec<BuildEvent>, StoreError> {
        let mut tx = self.begin().await?;
        update(&mut tx, transition).await?;
        if let Some((key, kernel)) = &transition.key {
            remember(&mut tx, key, kernel).await?;
        }
        let mut events = Vec::new();
        for body in &transition.events {
            events.push(append(&mut tx, transition.build, transition.at, body).await?);
        }
        tx.commit()
            .await
            .map_err(StoreError::database("save the state of a build"))?;
        Ok(events)
    }

    /// Names the log of a build; it is among the objects.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn set_build_log(
        &self,
        id: BuildTaskId,
        digest: &Digest,
        size: u64,
    ) -> Result<(), StoreError> {
        self.objects().require(digest, size).await?;
        let done = sqlx::query(sql::BUILD_LOG_SET)
            .bind(id.to_string())
            .bind(digest.to_string())
            .bind(big(size))
            .execute(self.writers())
            .await
            .map_err(StoreError::database("name the log of a build"))?;
        match done.rows_affected() {
            0 => Err(StoreError::not_found("build", id)),
            _ => Ok(()),
        }
    }

    /// At most `limit` events of a build after number `after`; 0 is from the start.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn build_events(
        &self,
        build: BuildTaskId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<BuildEvent>, StoreError> {
        let rows = sqlx::query(sql::BUILD_EVENTS_AFTER)
            .bind(build.to_string())
            .bind(big(after))
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("read the feed of a build"))?;
        rows.iter().map(read_event).collect()
    }
}

async fn insert(connection: &mut AnyConnection, build: &Build) -> Result<(), StoreError> {
    let state = BuildState::new(build.targets.len());
    let done = sqlx::query(sql::BUILD_ADD)
        .bind(build.id.to_string())
        .bind(build.tree.as_str())
        .bind(json(build))
        .bind(json(&state))
        .bind(to_micros(build.created_at))
        .execute(connection)
        .await
        .map_err(StoreError::database("save a build"))?;
    match done.rows_affected() {
        0 => Err(exists("build", build.id)),
        _ => Ok(()),
    }
}

async fn insert_target(
    connection: &mut AnyConnection,
    build: BuildTaskId,
    index: i64,
    kernel: &KernelName,
) -> Result<(), StoreError> {
    let done = sqlx::query(sql::BUILD_TARGET_ADD)
        .bind(kernel.as_str())
        .bind(build.to_string())
        .bind(index)
        .execute(connection)
        .await
        .map_err(StoreError::database("save the targets of a build"))?;
    match done.rows_affected() {
        0 => Err(exists("kernel", kernel)),
        _ => Ok(()),
    }
}

fn exists(what: &'static str, name: impl ToString) -> StoreError {
    StoreError::AlreadyExists {
        what,
        name: name.to_string(),
        existing: None,
    }
}

async fn update(
    connection: &mut AnyConnection,
    transition: &BuildTransition,
) -> Result<(), StoreError> {
    let done = sqlx::query(sql::BUILD_UPDATE)
        .bind(transition.build.to_string())
        .bind(transition.expected.0)
        .bind(json(&transition.state))
        .bind(i64::from(transition.state.is_live()))
        .execute(connection)
        .await
        .map_err(StoreError::database("save the state of a build"))?;
    match done.rows_affected() {
        0 => Err(StoreError::conflict("build", transition.build)),
        _ => Ok(()),
    }
}

async fn remember(
    connection: &mut AnyConnection,
    key: &Digest,
    kernel: &KernelName,
) -> Result<(), StoreError> {
    sqlx::query(sql::KERNEL_KEY_ADD)
        .bind(key.to_string())
        .bind(kernel.as_str())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(StoreError::missing(
            "remember what a build's inputs gave",
            "kernel",
            kernel.to_string(),
        ))
}

/// Appends to the feed. The build's row stays locked until the transaction ends, so numbers
/// appear in order and without gaps.
async fn append(
    connection: &mut AnyConnection,
    build: BuildTaskId,
    at: Timestamp,
    body: &BuildEventBody,
) -> Result<BuildEvent, StoreError> {
    let failed = || StoreError::database("append to the feed of a build");
    let row = sqlx::query(sql::BUILD_EVENT_SEQ)
        .bind(build.to_string())
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed())?
        .ok_or_else(|| StoreError::not_found("build", build))?;
    let seq: i64 = row.try_get("events").map_err(failed())?;
    sqlx::query(sql::BUILD_EVENT_ADD)
        .bind(build.to_string())
        .bind(seq)
        .bind(to_micros(at))
        .bind(json(body))
        .execute(connection)
        .await
        .map_err(failed())?;
    Ok(BuildEvent {
        seq: seq.unsigned_abs(),
        // As it will be read back.
        at: from_micros(to_micros(at)),
        body: body.clone(),
    })
}

fn read_build(row: &AnyRow) -> Result<BuildRecord, StoreError> {
    let cells = Cells::new(row, "builds", &["id"]);
    let log: Option<Digest> = cells.maybe_parsed("log")?;
    let log = match log {
        Some(digest) => Some((digest, cells.int("log_size")?)),
        None => None,
    };
    Ok(BuildRecord {
        build: cells.json("spec")?,
        state: Versioned {
            value: cells.json("state")?,
            version: cells.version()?,
        },
        log,
    })
}

fn read_event(row: &AnyRow) -> Result<BuildEvent, StoreError> {
    let cells = Cells::new(row, "build_events", &["build", "seq"]);
    Ok(BuildEvent {
        seq: cells.int("seq")?,
        at: cells.time("at")?,
        body: cells.json("body")?,
    })
}
