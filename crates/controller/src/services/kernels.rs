//! Kernels for users.

use std::sync::Arc;

use klab_model::{Digest, Kernel, KernelName};
use klab_proto::v1::create_kernel_request::Part;
use klab_proto::v1::kernel_service_server::KernelService;
use klab_proto::{kernel_message, v1};
use tonic::{Request, Response, Status, Streaming};

use super::{drain, page, wrong};
use crate::engine::{Engine, KernelUpload, store_status};

/// The service for kernels.
#[derive(Debug, Clone)]
pub(crate) struct Kernels(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl KernelService for Kernels {
    async fn create_kernel(
        &self,
        request: Request<Streaming<v1::CreateKernelRequest>>,
    ) -> Result<Response<v1::CreateKernelResponse>, Status> {
        let mut parts = request.into_inner();
        match self.receive(&mut parts).await {
            Ok(kernel) => Ok(Response::new(v1::CreateKernelResponse {
                kernel: Some(kernel_message(kernel)),
            })),
            Err(refusal) => {
                drain(&mut parts).await;
                Err(refusal)
            }
        }
    }

    async fn get_kernel(
        &self,
        request: Request<v1::GetKernelRequest>,
    ) -> Result<Response<v1::GetKernelResponse>, Status> {
        let name = kernel_name("name", &request.into_inner().name)?;
        let kernel = self.0.store().kernel(&name).await;
        let kernel = kernel.map_err(|error| store_status(&error))?;
        Ok(Response::new(v1::GetKernelResponse {
            kernel: Some(kernel_message(kernel)),
        }))
    }

    async fn list_kernels(
        &self,
        request: Request<v1::ListKernelsRequest>,
    ) -> Result<Response<v1::ListKernelsResponse>, Status> {
        let request = request.into_inner();
        let page = page(request.page_size, request.page_token);
        let kernels = self.0.store().list_kernels(&page).await;
        let kernels = kernels.map_err(|error| store_status(&error))?;
        Ok(Response::new(v1::ListKernelsResponse {
            kernels: kernels.items.into_iter().map(kernel_message).collect(),
            next_page_token: kernels.next.unwrap_or_default(),
        }))
    }
}

impl Kernels {
    async fn receive(
        &self,
        parts: &mut Streaming<v1::CreateKernelRequest>,
    ) -> Result<Kernel, Status> {
        let Some(Part::Start(start)) = parts.message().await?.and_then(|first| first.part) else {
            return Err(wrong("start", "must be the first part"));
        };
        let name = kernel_name("start.name", &start.name)?;
        let digest =
            Digest::from_bytes(&start.digest).map_err(|error| wrong("start.digest", error))?;
        let mut upload = self.0.begin_kernel(name, digest, start.size).await?;
        let result = self.rest(parts, &mut upload).await;
        // After a success nothing is staged any more.
        upload.discard().await;
        result
    }

    async fn rest(
        &self,
        parts: &mut Streaming<v1::CreateKernelRequest>,
        upload: &mut KernelUpload,
    ) -> Result<Kernel, Status> {
        while let Some(part) = parts.message().await? {
            match part.part {
                Some(Part::Data(data)) => self.0.append_kernel(upload, data).await?,
                Some(Part::Start(_)) => return Err(wrong("start", "was sent before")),
                None => {}
            }
        }
        Ok(self.0.finish_kernel(upload).await?)
    }
}

fn kernel_name(field: &str, text: &str) -> Result<KernelName, Status> {
    KernelName::parse(text).map_err(|error| wrong(field, error))
}
