//! Sends a virtual board's serial console to the controller while the board runs.

use std::time::Duration;

use klab_proto::v1;
use klab_vboard::ConsoleFollower;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::client::Client;

/// Follows the console for ever, across restarts of the controller.
pub(crate) async fn stream(address: String, board: String, mut console: ConsoleFollower) {
    let mut kept: Vec<u8> = Vec::new();
    loop {
        if let Ok(client) = Client::to(&address).await {
            send(&client, &board, &mut console, &mut kept).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Sends until the connection breaks; what was read and not sent stays in `kept`.
async fn send(client: &Client, board: &str, console: &mut ConsoleFollower, kept: &mut Vec<u8>) {
    let (chunks, requests) = mpsc::channel(4);
    let mut boards = client.boards();
    let mut call = std::pin::pin!(boards.stream_console(ReceiverStream::new(requests)));
    loop {
        tokio::select! {
            _ = &mut call => return,
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        kept.extend(console.read().unwrap_or_default());
        while !kept.is_empty() {
            let part = kept[..kept.len().min(klab_proto::CHUNK)].to_vec();
            let length = part.len();
            let request = v1::StreamConsoleRequest {
                board: board.to_owned(),
                data: part.into(),
            };
            tokio::select! {
                _ = &mut call => return,
                sent = chunks.send(request) => if sent.is_err() { return },
            }
            kept.drain(..length);
        }
    }
}
