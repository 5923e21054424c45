//! Boards for users.

use std::sync::Arc;

use klab_model::BoardName;
use klab_proto::v1;
use klab_proto::v1::board_service_server::BoardService;
use klab_store::BoardConfig;
use tonic::{Request, Response, Status, Streaming};

use super::{page, slice, wrong};
use crate::engine::{Engine, store_status};

/// The service for boards.
#[derive(Debug, Clone)]
pub(crate) struct Boards(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl BoardService for Boards {
    async fn get_board(
        &self,
        request: Request<v1::GetBoardRequest>,
    ) -> Result<Response<v1::GetBoardResponse>, Status> {
        let name = board_name("name", &request.into_inner().name)?;
        let board = self.0.store().board(&name).await;
        let board = board.map_err(|error| store_status(&error))?;
        Ok(Response::new(v1::GetBoardResponse {
            board: Some(board.value.into()),
        }))
    }

    async fn list_boards(
        &self,
        request: Request<v1::ListBoardsRequest>,
    ) -> Result<Response<v1::ListBoardsResponse>, Status> {
        let request = request.into_inner();
        let boards = self.0.store().list_boards().await;
        let boards = boards.map_err(|error| store_status(&error))?;
        let (boards, next_page_token) =
            slice(boards, &page(request.page_size, request.page_token))?;
        Ok(Response::new(v1::ListBoardsResponse {
            boards: boards.into_iter().map(|board| board.value.into()).collect(),
            next_page_token,
        }))
    }

    async fn get_board_config(
        &self,
        request: Request<v1::GetBoardConfigRequest>,
    ) -> Result<Response<v1::GetBoardConfigResponse>, Status> {
        let name = board_name("board", &request.into_inner().board)?;
        let BoardConfig { release, content } = self.0.board_config(&name).await?;
        Ok(Response::new(v1::GetBoardConfigResponse {
            release,
            content: content.into(),
        }))
    }

    async fn stream_console(
        &self,
        request: Request<Streaming<v1::StreamConsoleRequest>>,
    ) -> Result<Response<v1::StreamConsoleResponse>, Status> {
        let mut pieces = request.into_inner();
        let mut board: Option<BoardName> = None;
        let mut received = 0;
        while let Some(piece) = self.next_piece(&mut pieces).await? {
            // The name may be left out after the first piece.
            if !piece.board.is_empty() {
                board = Some(board_name("board", &piece.board)?);
            }
            let name = board
                .as_ref()
                .ok_or_else(|| wrong("board", "must be named in the first piece"))?;
            received += piece.data.len() as u64;
            self.0.console(name, piece.data).await?;
        }
        Ok(Response::new(v1::StreamConsoleResponse { received }))
    }
}

impl Boards {
    /// The next piece; `None` at the end, and when the controller stops.
    async fn next_piece(
        &self,
        pieces: &mut Streaming<v1::StreamConsoleRequest>,
    ) -> Result<Option<v1::StreamConsoleRequest>, Status> {
        tokio::select! {
            () = self.0.shutdown().requested() => Ok(None),
            piece = pieces.message() => piece,
        }
    }
}

fn board_name(field: &str, text: &str) -> Result<BoardName, Status> {
    BoardName::parse(text).map_err(|error| wrong(field, error))
}
