//! `klab boards`.

use klab_proto::v1;
use klab_report::Table;

use crate::args::Global;
use crate::client::{Client, every_page};
use crate::exit::{CliError, ExitCode};
use crate::{json, output};

/// Every board of a controller.
pub(crate) async fn all(client: &Client) -> Result<Vec<v1::Board>, CliError> {
    every_page(async |page_token| {
        let request = v1::ListBoardsRequest {
            page_size: 200,
            page_token,
        };
        let page = client.boards().list_boards(request).await?.into_inner();
        Ok((page.boards, page.next_page_token))
    })
    .await
}

pub(crate) async fn list(global: &Global) -> Result<ExitCode, CliError> {
    let boards = all(&Client::connect(global).await?).await?;
    if global.json {
        output::json(&boards.iter().map(json::board).collect())?;
        return Ok(ExitCode::Done);
    }
    let mut table = Table::new(["NAME", "ARCH", "STATE", "LINK", "CPUS", "RELEASE", "TAGS"]);
    for board in &boards {
        let facts = board.facts.clone().unwrap_or_default();
        let tags = board
            .tags
            .iter()
            .map(|tag| format!("{}={}", tag.key, tag.value));
        table.row([
            board.name.clone(),
            json::arch(board.arch).to_owned(),
            board.state.clone(),
            if board.online { "up" } else { "down" }.to_owned(),
            facts.cpus.to_string(),
            facts.release,
            tags.collect::<Vec<_>>().join(","),
        ]);
    }
    output::line(table.to_string())?;
    Ok(ExitCode::Done)
}
