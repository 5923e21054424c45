//! What the agent takes from the world, passed in so that a test or a simulation can own it.
//!
//! Waits run on tokio's clock, which counts on when the board's own clock is set; [`Clock`]
//! only tells the time that is written into events.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use klab_task::{Clock, Ids, SystemClock, SystemIds, system_random};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::transport::Uri;

/// Clock, ids, chance and connections.
pub struct Outside {
    /// The board's own clock; it may be years off.
    pub clock: Box<dyn Clock>,
    /// Where the id of an installation comes from.
    pub ids: Box<dyn Ids>,
    /// A number that is at least 0 and less than 1, for spreading reconnects.
    pub random: Box<dyn Fn() -> f64 + Send>,
    /// How the controller is reached.
    pub dial: Dial,
}

impl Outside {
    /// The real world.
    pub fn real() -> Self {
        Self {
            clock: Box::new(SystemClock),
            ids: Box::new(SystemIds),
            random: Box::new(system_random),
            dial: Arc::new(tcp),
        }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

/// Bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<C: AsyncRead + AsyncWrite + Unpin + Send> Connection for C {}

/// Makes connections to an address.
pub type Dial = Arc<dyn Fn(Uri) -> Dialing + Send + Sync>;

/// A connection that is being made.
pub type Dialing = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send>>;

/// Dials over TCP; the port is 80 unless the address names one.
fn tcp(to: Uri) -> Dialing {
    Box::pin(async move {
        let host = to.host().unwrap_or_default();
        // An IPv6 address stands in brackets only to keep it apart from the port.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, to.port_u16().unwrap_or(80))).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream) as Box<dyn Connection>)
    })
}
