//! Boards.

use klab_model::{Board, BoardName, Timestamp, to_micros};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::row::{Cells, json};
use crate::{Store, StoreError, Version, Versioned, sql};

impl Store {
    /// Saves a board: a new one without `expected`, or the successor of the version that
    /// was read. Gives the version it has now.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if somebody was faster, or if a new board is not new.
    pub async fn upsert_board(
        &self,
        board: &Board,
        expected: Option<Version>,
    ) -> Result<Version, StoreError> {
        let mut tx = self.begin().await?;
        let version = save(&mut tx, board, expected).await?;
        tx.commit()
            .await
            .map_err(StoreError::database("save a board"))?;
        Ok(version)
    }

    /// Notes that a board was heard, which does not change its version.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn board_seen(&self, name: &BoardName, at: Timestamp) -> Result<(), StoreError> {
        sqlx::query(sql::BOARD_SEEN)
            .bind(name.as_str())
            .bind(to_micros(at))
            .execute(self.writers())
            .await
            .map(|_| ())
            .map_err(StoreError::database("note that a board was heard"))
    }

    /// The board of that name.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn board(&self, name: &BoardName) -> Result<Versioned<Board>, StoreError> {
        self.find_board(name)
            .await?
            .ok_or_else(|| StoreError::not_found("board", name))
    }

    /// The board of that name, if it was ever heard of.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn find_board(
        &self,
        name: &BoardName,
    ) -> Result<Option<Versioned<Board>>, StoreError> {
        let row = sqlx::query(sql::BOARD_GET)
            .bind(name.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a board"))?;
        row.as_ref().map(read_board).transpose()
    }

    /// Every board, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_boards(&self) -> Result<Vec<Versioned<Board>>, StoreError> {
        let rows = sqlx::query(sql::BOARDS_ALL)
            .fetch_all(self.readers())
            .await
            .map_err(StoreError::database("list boards"))?;
        rows.iter().map(read_board).collect()
    }
}

/// Compare and swap of a whole board.
pub(crate) async fn save(
    connection: &mut AnyConnection,
    board: &Board,
    expected: Option<Version>,
) -> Result<Version, StoreError> {
    let text = if expected.is_some() {
        sql::BOARD_UPDATE
    } else {
        sql::BOARD_ADD
    };
    let mut query = sqlx::query(text)
        .bind(board.name.as_str())
        .bind(board.arch.as_str())
        .bind(json(&board.tags))
        .bind(json(&board.facts))
        .bind(board.holder.map(|holder| holder.to_string()))
        .bind(json(&board.state))
        .bind(to_micros(board.seen_at));
    if let Some(version) = expected {
        query = query.bind(version.0);
    }
    let done = query
        .execute(connection)
        .await
        .map_err(StoreError::database("save a board"))?;
    match (done.rows_affected(), expected) {
        (1, None) => Ok(Version::FIRST),
        (1, Some(version)) => Ok(version.next()),
        _ => Err(StoreError::conflict("board", &board.name)),
    }
}

fn read_board(row: &AnyRow) -> Result<Versioned<Board>, StoreError> {
    let cells = Cells::new(row, "boards", &["name"]);
    Ok(Versioned {
        value: Board {
            name: cells.parsed("name")?,
            arch: cells.parsed("arch")?,
            tags: cells.json("tags")?,
            facts: cells.json("facts")?,
            holder: cells.maybe_parsed("holder")?,
            state: cells.json("state")?,
            seen_at: cells.time("seen_at")?,
        },
        version: cells.version()?,
    })
}
