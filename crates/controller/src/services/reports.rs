//! Reports for users.

use std::sync::Arc;

use klab_proto::v1;
use klab_proto::v1::report_service_server::ReportService;
use tonic::{Request, Response, Status};

use super::{job_id, wrong};
use crate::engine::Engine;

/// The service for reports.
#[derive(Debug, Clone)]
pub(crate) struct Reports(pub(crate) Arc<Engine>);

#[tonic::async_trait]
impl ReportService for Reports {
    async fn get_report(
        &self,
        request: Request<v1::GetReportRequest>,
    ) -> Result<Response<v1::GetReportResponse>, Status> {
        let request = request.into_inner();
        let render = match request.format() {
            v1::ReportFormat::Text => klab_report::text,
            v1::ReportFormat::Markdown => klab_report::markdown,
            v1::ReportFormat::Json => klab_report::json,
            v1::ReportFormat::Unspecified => {
                return Err(wrong(
                    "format",
                    "is missing or unknown; expected text, markdown or JSON",
                ));
            }
        };
        let report = self.0.report(job_id("job", &request.job)?).await?;
        Ok(Response::new(v1::GetReportResponse {
            content: render(&report),
        }))
    }
}
