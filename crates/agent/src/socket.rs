//! The sockets below a channel: made by the dialler that was passed in, and seen to close.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint, Error, Uri};

use crate::outside::{Connection, Dial};

/// Tells when every socket of a channel is closed. Each of them holds a sender.
#[derive(Debug)]
pub(crate) struct Sockets(mpsc::Receiver<Infallible>);

impl Sockets {
    /// Waits until the channel and its sockets are gone.
    pub(crate) async fn closed(mut self) {
        // Nothing can be sent, so this is the end.
        let _ = self.0.recv().await;
    }
}

/// Connects to `endpoint` by `dial`.
pub(crate) async fn connect(endpoint: &Endpoint, dial: Dial) -> Result<(Channel, Sockets), Error> {
    let (open, sockets) = mpsc::channel(1);
    let connector = tower::service_fn(move |uri: Uri| {
        let (open, dialing) = (open.clone(), dial(uri));
        async move {
            let io = dialing.await?;
            Ok::<_, io::Error>(TokioIo::new(Socket { io, _open: open }))
        }
    });
    let channel = endpoint.connect_with_connector(connector).await?;
    Ok((channel, Sockets(sockets)))
}

/// A socket. The fields are dropped in order: whoever waits is told after it is closed.
struct Socket {
    io: Box<dyn Connection>,
    _open: mpsc::Sender<Infallible>,
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
