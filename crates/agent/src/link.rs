//! The link: one session with the controller, for as long as it lasts.
//!
//! The board always dials out. A background task keeps the heartbeat; whoever holds a
//! [`Link`] sends and receives whole messages. [`Link::close`] returns when the connection is
//! gone, which is how the agent becomes quiet.

use std::time::Duration;

use klab_model::{Fence, Order, RunId};
use klab_proto::v1::agent_service_client::AgentServiceClient;
use klab_proto::v1::session_request::Message as Up;
use klab_proto::v1::session_response::Message as Down;
use klab_proto::{attempt_ref, v1};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::outside::Dial;
use crate::socket::{Sockets, connect};

/// No connection, or it broke.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The address is no address.
    #[error("controller address {address:?}: {source}")]
    Address {
        /// As configured.
        address: String,
        /// Why.
        source: tonic::transport::Error,
    },
    /// Nobody answers.
    #[error("cannot reach the controller: {0}")]
    Connect(#[source] tonic::transport::Error),
    /// The controller answered with an error.
    #[error("the controller answered: {}", .0.message())]
    Refused(#[source] Box<tonic::Status>),
    /// The stream ended.
    #[error("the controller closed the session")]
    Closed,
    /// The controller said something that makes no sense.
    #[error("the controller sent a bad message: {0}")]
    BadMessage(String),
}

impl From<tonic::Status> for LinkError {
    fn from(status: tonic::Status) -> Self {
        LinkError::Refused(Box::new(status))
    }
}

impl LinkError {
    /// Whether trying again soon is of no use.
    pub fn is_refusal(&self) -> bool {
        match self {
            LinkError::Refused(status) => matches!(
                status.code(),
                tonic::Code::AlreadyExists | tonic::Code::InvalidArgument
            ),
            _ => false,
        }
    }
}

/// What the controller says.
#[derive(Debug)]
pub enum Word {
    /// Work to do.
    Order(Box<Order>),
    /// Events up to this one are stored.
    Ack {
        /// The run they belong to.
        run: RunId,
        /// The token of the attempt.
        fence: Fence,
        /// The number of the last stored event.
        seq: u64,
    },
    /// The attempt with this token is to be ended.
    Cancel(Fence),
    /// The silence that was asked for is granted.
    QuietGranted(Fence),
}

/// A session with the controller.
#[derive(Debug)]
pub struct Link {
    client: AgentServiceClient<Channel>,
    up: mpsc::Sender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
    heartbeat: AbortOnDropHandle<()>,
    sockets: Sockets,
    wants_config: bool,
}

impl Link {
    /// Dials out and says hello.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn open(address: &str, dial: Dial, hello: v1::Hello) -> Result<Self, LinkError> {
        let endpoint = endpoint(address)?;
        let (channel, sockets) = connect(&endpoint, dial).await.map_err(LinkError::Connect)?;
        let mut client = AgentServiceClient::new(channel);
        let (up, requests) = mpsc::channel(32);
        let hello = v1::SessionRequest {
            message: Some(Up::Hello(hello)),
        };
        up.send(hello).await.map_err(|_| LinkError::Closed)?;
        let response = client.session(ReceiverStream::new(requests)).await?;
        let mut down = response.into_inner();
        let welcome = match down.message().await?.and_then(|response| response.message) {
            Some(Down::Welcome(welcome)) => welcome,
            Some(_) => return Err(LinkError::BadMessage("expected a welcome".into())),
            None => return Err(LinkError::Closed),
        };
        let every = welcome
            .heartbeat_every
            .and_then(|every| Duration::try_from(every).ok())
            .unwrap_or_default()
            .clamp(Duration::from_secs(1), Duration::from_secs(60));
        let heartbeat = AbortOnDropHandle::new(tokio::spawn(beat(up.clone(), every)));
        Ok(Self {
            client,
            up,
            down,
            heartbeat,
            sockets,
            wants_config: welcome.wants_config,
        })
    }

    /// Whether the controller asked for the configuration file that the hello told of.
    pub fn wants_config(&self) -> bool {
        self.wants_config
    }

    /// Ends the session and waits until its connection is closed, at most for `patience`.
    pub async fn close(self, patience: Duration) {
        let Self {
            client,
            up,
            down,
            heartbeat,
            sockets,
            wants_config: _,
        } = self;
        drop((client, up, down, heartbeat));
        if tokio::time::timeout(patience, sockets.closed())
            .await
            .is_err()
        {
            tracing::warn!("the connection stays open: its peer takes no more bytes");
        }
    }

    /// The client for calls beside the session.
    pub fn client(&mut self) -> &mut AgentServiceClient<Channel> {
        &mut self.client
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`LinkError::Closed`].
    pub async fn send(&self, message: Up) -> Result<(), LinkError> {
        let request = v1::SessionRequest {
            message: Some(message),
        };
        self.up.send(request).await.map_err(|_| LinkError::Closed)
    }

    /// Waits for the next word. Cancel safe.
    ///
    /// # Errors
    /// [`LinkError`] if the session is over.
    pub async fn receive(&mut self) -> Result<Word, LinkError> {
        let response = self.down.message().await?.ok_or(LinkError::Closed)?;
        let message = response.message.ok_or_else(|| bad("an empty message"))?;
        word(message)
    }

    /// Asks for silence.
    ///
    /// # Errors
    /// [`LinkError::Closed`].
    pub async fn ask_quiet(&self, order: &Order, length: Duration) -> Result<(), LinkError> {
        let attempt = Some(attempt_ref(order.run, order.attempt, order.fence));
        let r#for = Some(klab_proto::duration(length));
        self.send(Up::Quiet(v1::Quiet { attempt, r#for })).await
    }
}

/// How the controller at `address` is reached.
pub(crate) fn endpoint(address: &str) -> Result<Endpoint, LinkError> {
    let endpoint =
        Endpoint::from_shared(address.to_owned()).map_err(|source| LinkError::Address {
            address: address.to_owned(),
            source,
        })?;
    Ok(endpoint
        .connect_timeout(Duration::from_secs(5))
        // A peer that vanished without a word is noticed after 15 to 30 s.
        .http2_keep_alive_interval(Duration::from_secs(15))
        .keep_alive_timeout(Duration::from_secs(15)))
}

async fn beat(up: mpsc::Sender<v1::SessionRequest>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let message = Some(Up::Heartbeat(v1::Heartbeat {}));
        if up.send(v1::SessionRequest { message }).await.is_err() {
            return;
        }
    }
}

fn bad(what: impl ToString) -> LinkError {
    LinkError::BadMessage(what.to_string())
}

fn word(message: Down) -> Result<Word, LinkError> {
    let parts = |attempt: Option<v1::AttemptRef>| {
        attempt
            .ok_or_else(|| bad("no attempt"))?
            .parts()
            .map_err(bad)
    };
    Ok(match message {
        Down::Order(order) => Word::Order(Box::new(Order::try_from(order).map_err(bad)?)),
        Down::Ack(ack) => {
            let (run, _, fence) = parts(ack.attempt)?;
            Word::Ack {
                run,
                fence,
                seq: ack.seq,
            }
        }
        Down::Cancel(cancel) => Word::Cancel(parts(cancel.attempt)?.2),
        Down::QuietGranted(granted) => Word::QuietGranted(parts(granted.attempt)?.2),
        Down::Welcome(_) => return Err(bad("a second welcome")),
    })
}
