//! The configuration files of boards' known-good kernels, which builds may begin with.

use klab_model::BoardName;
use klab_proto::status::Reason;
use klab_store::{BoardConfig, StoreError};

use super::{Engine, EngineError, Hello};

/// Bytes of a configuration file that are kept; those of distributions have 300 KiB.
const LONGEST: usize = 1 << 20;

impl Engine {
    /// Whether an agent has a configuration file that is not known here.
    pub(super) async fn wants_config(&self, hello: &Hello) -> Result<bool, EngineError> {
        let Some(digest) = hello.config else {
            return Ok(false);
        };
        Ok(self.store.board_config_digest(&hello.board).await? != Some(digest))
    }

    /// Keeps the configuration file of a board.
    pub(crate) async fn keep_board_config(
        &self,
        board: &BoardName,
        config: BoardConfig,
    ) -> Result<(), EngineError> {
        if config.content.len() > LONGEST {
            let problem = format!("is longer than {LONGEST} bytes");
            return Err(EngineError::field("kernel_config.content", problem));
        }
        Ok(self.store.set_board_config(board, &config).await?)
    }

    /// The configuration file of a board.
    pub(crate) async fn board_config(&self, board: &BoardName) -> Result<BoardConfig, EngineError> {
        // Whether there is such a board is the first question.
        self.store.board(board).await?;
        match self.store.board_config(board).await {
            Err(StoreError::NotFound { .. }) => Err(EngineError::refused(
                Reason::NotFound,
                format!(
                    "board {board} has told no configuration of its known-good kernel: it is \
                     read from /proc/config.gz (CONFIG_IKCONFIG_PROC=y), /boot/config-RELEASE or \
                     /lib/modules/RELEASE/config when the agent connects"
                ),
            )),
            config => Ok(config?),
        }
    }
}
