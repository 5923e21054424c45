//! Artifacts for users.

use std::sync::Arc;

use futures::StreamExt;
use klab_model::Artifact;
use klab_proto::v1;
use klab_proto::v1::artifact_service_server::ArtifactService;
use tonic::{Request, Response, Status};

use super::{Answers, job_id, object, page, slice, wrong};
use crate::engine::{Engine, store_status};

/// The service for artifacts.
#[derive(Debug, Clone)]
pub(crate) struct Artifacts(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl ArtifactService for Artifacts {
    async fn get_artifact(
        &self,
        request: Request<v1::GetArtifactRequest>,
    ) -> Result<Response<v1::GetArtifactResponse>, Status> {
        let artifact = self.find(&request.into_inner().id).await?;
        Ok(Response::new(v1::GetArtifactResponse {
            artifact: Some(artifact.into()),
        }))
    }

    async fn list_artifacts(
        &self,
        request: Request<v1::ListArtifactsRequest>,
    ) -> Result<Response<v1::ListArtifactsResponse>, Status> {
        let request = request.into_inner();
        let job = job_id("job", &request.job)?;
        // An unknown job is an error, not an empty list.
        self.0
            .store()
            .job(job)
            .await
            .map_err(|error| store_status(&error))?;
        let artifacts = self.0.store().artifacts_of_job(job).await;
        let artifacts = artifacts.map_err(|error| store_status(&error))?;
        let (artifacts, next_page_token) =
            slice(artifacts, &page(request.page_size, request.page_token))?;
        Ok(Response::new(v1::ListArtifactsResponse {
            artifacts: artifacts.into_iter().map(Into::into).collect(),
            next_page_token,
        }))
    }

    type ReadArtifactStream = Answers<v1::ReadArtifactResponse>;

    async fn read_artifact(
        &self,
        request: Request<v1::ReadArtifactRequest>,
    ) -> Result<Response<Self::ReadArtifactStream>, Status> {
        let request = request.into_inner();
        let artifact = self.find(&request.id).await?;
        let bytes = object(&self.0, &artifact.digest, request.offset).await?;
        let answers = bytes.map(|data| data.map(|data| v1::ReadArtifactResponse { data }));
        Ok(Response::new(Box::pin(answers)))
    }
}

impl Artifacts {
    async fn find(&self, id: &str) -> Result<Artifact, Status> {
        let id = id
            .parse()
            .map_err(|_| wrong("id", format!("{id:?} is no artifact id")))?;
        let artifact = self.0.store().artifact(id).await;
        artifact.map_err(|error| store_status(&error))
    }
}
