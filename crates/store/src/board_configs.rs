//! Configuration files of the boards' known-good kernels.

use klab_model::{BoardName, Digest};

use crate::row::Cells;
use crate::{Store, StoreError, sql};

/// A configuration file, as a board has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardConfig {
    /// The release of the kernel it belongs to.
    pub release: String,
    /// Text, or text packed with gzip.
    pub content: Vec<u8>,
}

impl Store {
    /// Keeps the configuration file of a known board in place of the one before.
    ///
    /// # Errors
    /// [`StoreError::Database`], also if there is no such board.
    pub async fn set_board_config(
        &self,
        board: &BoardName,
        config: &BoardConfig,
    ) -> Result<(), StoreError> {
        sqlx::query(sql::BOARD_CONFIG_SET)
            .bind(board.as_str())
            .bind(config.release.as_str())
            .bind(Digest::of(&config.content).to_string())
            .bind(config.content.as_slice())
            .execute(self.writers())
            .await
            .map(|_| ())
            .map_err(StoreError::database("keep a board's configuration"))
    }

    /// The digest of the configuration file that is kept of a board.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn board_config_digest(
        &self,
        board: &BoardName,
    ) -> Result<Option<Digest>, StoreError> {
        let row = sqlx::query(sql::BOARD_CONFIG_DIGEST)
            .bind(board.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a board's configuration"))?;
        row.as_ref()
            .map(|row| Cells::new(row, "board_configs", &["board"]).parsed("digest"))
            .transpose()
    }

    /// The configuration file that is kept of a board.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn board_config(&self, board: &BoardName) -> Result<BoardConfig, StoreError> {
        let row = sqlx::query(sql::BOARD_CONFIG_GET)
            .bind(board.as_str())
            .fetch_optional(self.readers())
            .await
            .map_err(StoreError::database("read a board's configuration"))?
            .ok_or_else(|| StoreError::not_found("configuration of board", board))?;
        let cells = Cells::new(&row, "board_configs", &["board"]);
        Ok(BoardConfig {
            release: cells.text("release")?,
            content: cells.bytes("content")?,
        })
    }
}
