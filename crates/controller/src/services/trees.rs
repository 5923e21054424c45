//! Trees for users.

use std::sync::Arc;

use klab_model::{InvalidText, TreeName, TreeSource};
use klab_proto::v1;
use klab_proto::v1::tree_service_server::TreeService;
use tonic::{Request, Response, Status};

use super::{page, slice, wrong};
use crate::engine::{Engine, store_status};

/// The service for trees.
#[derive(Debug, Clone)]
pub(crate) struct Trees(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl TreeService for Trees {
    async fn create_tree(
        &self,
        request: Request<v1::CreateTreeRequest>,
    ) -> Result<Response<v1::CreateTreeResponse>, Status> {
        let request = request.into_inner();
        let name = tree_name(&request.name)?;
        let source = TreeSource::parse(&request.source).map_err(named("source"))?;
        let tree = self.0.add_tree(name, source).await?;
        Ok(Response::new(v1::CreateTreeResponse {
            tree: Some(tree.into()),
        }))
    }

    async fn list_trees(
        &self,
        request: Request<v1::ListTreesRequest>,
    ) -> Result<Response<v1::ListTreesResponse>, Status> {
        let request = request.into_inner();
        let trees = self.0.store().list_trees().await;
        let trees = trees.map_err(|error| store_status(&error))?;
        let (trees, next_page_token) = slice(trees, &page(request.page_size, request.page_token))?;
        Ok(Response::new(v1::ListTreesResponse {
            trees: trees.into_iter().map(Into::into).collect(),
            next_page_token,
        }))
    }

    async fn delete_tree(
        &self,
        request: Request<v1::DeleteTreeRequest>,
    ) -> Result<Response<v1::DeleteTreeResponse>, Status> {
        let name = tree_name(&request.into_inner().name)?;
        self.0.remove_tree(&name).await?;
        Ok(Response::new(v1::DeleteTreeResponse {}))
    }
}

fn tree_name(text: &str) -> Result<TreeName, Status> {
    TreeName::parse(text).map_err(named("name"))
}

fn named(field: &'static str) -> impl Fn(InvalidText) -> Status {
    move |error| wrong(field, error)
}
