//! Opening and serving.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use klab_proto::DESCRIPTORS;
use klab_proto::v1::agent_service_server::AgentServiceServer;
use klab_proto::v1::artifact_service_server::ArtifactServiceServer;
use klab_proto::v1::board_service_server::BoardServiceServer;
use klab_proto::v1::build_service_server::BuildServiceServer;
use klab_proto::v1::builder_service_server::BuilderServiceServer;
use klab_proto::v1::job_service_server::JobServiceServer;
use klab_proto::v1::kernel_service_server::KernelServiceServer;
use klab_proto::v1::report_service_server::ReportServiceServer;
use klab_proto::v1::tree_service_server::TreeServiceServer;
use klab_store::{Database, Store, StoreLocation};
use klab_task::{CancellationToken, Clock, Ids, Shutdown, SystemClock, SystemIds};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};
use tracing::{info, warn};

use crate::ControllerError;
use crate::engine::{Engine, EngineError};
use crate::services::{Agents, Artifacts, Boards, Builders, Builds, Jobs, Kernels, Reports, Trees};

/// What a controller is told at its start.
#[derive(Debug, Clone)]
pub struct ControllerConfig {
    /// The folder for rows, objects and consoles; made if it is not there.
    pub folder: PathBuf,
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// URL of a PostgreSQL database, of which this is the only controller; without it rows
    /// are kept in the folder.
    pub database: Option<String>,
}

/// What a controller takes from its surroundings.
#[derive(Debug, Clone)]
pub struct Seams {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New ids.
    pub ids: Arc<dyn Ids>,
}

impl Seams {
    /// The clock and the random numbers of the system.
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        }
    }
}

/// A controller that has opened its store.
#[derive(Debug)]
pub struct Controller {
    engine: Arc<Engine>,
    store: Store,
    listen: SocketAddr,
    shutdown: Shutdown,
}

/// A connection without a sign of life is asked for one after so long, and closed after as
/// long again. Agents that agreed on silence have no connection.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long open calls may take to end after a stop was asked for.
const STOP_LIMIT: Duration = Duration::from_millis(1500);

impl Controller {
    /// Opens the store and takes its runs over.
    ///
    /// # Errors
    /// [`ControllerError::NotLoopback`], [`ControllerError::Store`].
    pub async fn open(config: &ControllerConfig, seams: Seams) -> Result<Self, ControllerError> {
        check_loopback(config.listen)?;
        let mut location = StoreLocation::in_folder(&config.folder);
        if let Some(url) = &config.database {
            location.database = Database::Postgres(url.clone());
        }
        let store = Store::open(&location).await?;
        let shutdown = Shutdown::new();
        let engine = Engine::open(
            store.clone(),
            &config.folder,
            (seams.clock, seams.ids),
            shutdown.clone(),
        )
        .await
        .map_err(store_error)?;
        Ok(Self {
            engine,
            store,
            listen: config.listen,
            shutdown,
        })
    }

    /// Binds the address.
    ///
    /// # Errors
    /// [`ControllerError::Listen`].
    pub async fn bind(&self) -> Result<TcpListener, ControllerError> {
        let address = self.listen;
        TcpListener::bind(address)
            .await
            .map_err(|source| ControllerError::Listen { address, source })
    }

    /// Serves until `stop` is cancelled, then ends what is open within two seconds.
    ///
    /// # Errors
    /// [`ControllerError::NotLoopback`], [`ControllerError::Serve`].
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> Result<(), ControllerError> {
        let address = listener
            .local_addr()
            .map_err(|source| ControllerError::Listen {
                address: self.listen,
                source,
            })?;
        check_loopback(address)?;
        let router = self.router().await?;
        self.engine.start();
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let requested = self.shutdown.token().clone();
        let serving = router.serve_with_incoming_shutdown(incoming, requested.cancelled_owned());
        tokio::pin!(serving);
        info!(%address, "serving");
        let result = tokio::select! {
            result = &mut serving => result,
            () = stop.cancelled() => {
                info!("stopping");
                self.shutdown.request();
                // A client that holds its call open must not hold the controller up.
                match tokio::time::timeout(STOP_LIMIT, &mut serving).await {
                    Ok(result) => result,
                    Err(_) => {
                        warn!("calls were still open");
                        Ok(())
                    }
                }
            }
        };
        self.shutdown.finish(STOP_LIMIT / 4).await;
        // Not waited for long: every transaction that was committed is on the disk.
        let _ = tokio::time::timeout(STOP_LIMIT / 4, self.store.close()).await;
        result.map_err(ControllerError::from)
    }

    async fn router(&self) -> Result<Router, ControllerError> {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<AgentServiceServer<Agents>>().await;
        health.set_serving::<JobServiceServer<Jobs>>().await;
        health.set_serving::<BoardServiceServer<Boards>>().await;
        health.set_serving::<KernelServiceServer<Kernels>>().await;
        health
            .set_serving::<ArtifactServiceServer<Artifacts>>()
            .await;
        health.set_serving::<ReportServiceServer<Reports>>().await;
        health.set_serving::<TreeServiceServer<Trees>>().await;
        health.set_serving::<BuildServiceServer<Builds>>().await;
        health.set_serving::<BuilderServiceServer<Builders>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let engine = || Arc::clone(&self.engine);
        Ok(Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .http2_keepalive_timeout(Some(KEEP_ALIVE))
            .add_service(health_service)
            .add_service(reflection)
            .add_service(AgentServiceServer::new(Agents(engine())))
            .add_service(JobServiceServer::new(Jobs(engine())))
            .add_service(BoardServiceServer::new(Boards(engine())))
            .add_service(KernelServiceServer::new(Kernels(engine())))
            .add_service(ArtifactServiceServer::new(Artifacts(engine())))
            .add_service(ReportServiceServer::new(Reports(engine())))
            .add_service(TreeServiceServer::new(Trees(engine())))
            .add_service(BuildServiceServer::new(Builds(engine())))
            .add_service(BuilderServiceServer::new(Builders(engine()))))
    }
}

fn check_loopback(address: SocketAddr) -> Result<(), ControllerError> {
    if address.ip().is_loopback() {
        Ok(())
    } else {
        Err(ControllerError::NotLoopback { address })
    }
}

/// Opening only reads and writes rows.
fn store_error(error: EngineError) -> ControllerError {
    match error {
        EngineError::Store(error) => ControllerError::Store(error),
        other => ControllerError::Start(other.to_string()),
    }
}
