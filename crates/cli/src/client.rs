//! The way to the controller.

use std::time::Duration;

use klab_proto::v1;
use klab_proto::v1::artifact_service_client::ArtifactServiceClient;
use klab_proto::v1::board_service_client::BoardServiceClient;
use klab_proto::v1::build_service_client::BuildServiceClient;
use klab_proto::v1::job_service_client::JobServiceClient;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use klab_proto::v1::report_service_client::ReportServiceClient;
use klab_proto::v1::tree_service_client::TreeServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::args::Global;
use crate::exit::CliError;

/// The longest answer that is taken, in bytes.
const ANSWER: usize = 64 << 20;

/// Every service of one controller.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    channel: Channel,
}

impl Client {
    /// Connects, or says how to mend it.
    pub(crate) async fn connect(global: &Global) -> Result<Self, CliError> {
        Self::to(&global.controller).await
    }

    pub(crate) async fn to(address: &str) -> Result<Self, CliError> {
        let channel = endpoint(address)?
            .connect_timeout(Duration::from_secs(5))
            .tcp_nodelay(true)
            // A machine that is gone sends nothing, not even the end of a connection.
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(10))
            .connect()
            .await
            .map_err(|_| {
                CliError::infrastructure(format!(
                    "cannot reach the controller at {address}: start it with `klab-controller`, \
                     or say where it is with --controller or KLAB_CONTROLLER"
                ))
            })?;
        Ok(Self { channel })
    }

    pub(crate) fn jobs(&self) -> JobServiceClient<Channel> {
        // A job with many runs may exceed the default limit of 4 MiB.
        JobServiceClient::new(self.channel.clone()).max_decoding_message_size(ANSWER)
    }

    pub(crate) fn boards(&self) -> BoardServiceClient<Channel> {
        BoardServiceClient::new(self.channel.clone())
    }

    pub(crate) fn kernels(&self) -> KernelServiceClient<Channel> {
        KernelServiceClient::new(self.channel.clone())
    }

    pub(crate) fn trees(&self) -> TreeServiceClient<Channel> {
        TreeServiceClient::new(self.channel.clone())
    }

    pub(crate) fn builds(&self) -> BuildServiceClient<Channel> {
        // Builds carry their configurations.
        BuildServiceClient::new(self.channel.clone()).max_decoding_message_size(ANSWER)
    }

    pub(crate) fn artifacts(&self) -> ArtifactServiceClient<Channel> {
        ArtifactServiceClient::new(self.channel.clone())
    }

    pub(crate) fn reports(&self) -> ReportServiceClient<Channel> {
        // A report with many variants may exceed the default limit of 4 MiB.
        ReportServiceClient::new(self.channel.clone()).max_decoding_message_size(ANSWER)
    }

    /// Every job, newest first.
    pub(crate) async fn all_jobs(&self) -> Result<Vec<v1::Job>, CliError> {
        every_page(async |page_token| {
            let request = v1::ListJobsRequest {
                page_size: 200,
                page_token,
            };
            let page = self.jobs().list_jobs(request).await?.into_inner();
            Ok((page.jobs, page.next_page_token))
        })
        .await
    }

    /// The id of the job that `text` means.
    pub(crate) async fn job_id(&self, text: &str) -> Result<String, CliError> {
        if text.parse::<klab_model::JobId>().is_ok() {
            return Ok(text.to_owned());
        }
        let jobs = self.all_jobs().await?;
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        pick("job", text, &ids)
            .map(str::to_owned)
            .map_err(CliError::usage)
    }
}

/// What a refusal means where a job was named.
pub(crate) fn of_job(id: &str) -> impl Fn(Status) -> CliError {
    move |status| match status.code() {
        Code::NotFound => CliError::usage(no_job(id)),
        _ => status.into(),
    }
}

fn no_job(id: &str) -> String {
    nothing("job", id)
}

fn nothing(what: &str, id: &str) -> String {
    let list = if what == "job" {
        "klab jobs"
    } else {
        "klab build list"
    };
    format!("there is no {what} {id:?}; `{list}` lists them")
}

/// The place that `--controller` names.
fn endpoint(address: &str) -> Result<Endpoint, CliError> {
    // What `klab-controller` prints when it starts has no scheme.
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    Endpoint::from_shared(url)
        .ok()
        .filter(|endpoint| {
            let uri = endpoint.uri();
            uri.scheme_str() == Some("http") && uri.port().is_some()
        })
        .ok_or_else(|| {
            CliError::usage(format!(
                "--controller {address:?}: expected http://HOST:PORT"
            ))
        })
}

/// Everything that a paged call lists. `fetch` gives the items of one page and the token of
/// the next, empty after the last.
pub(crate) async fn every_page<T>(
    mut fetch: impl AsyncFnMut(String) -> Result<(Vec<T>, String), CliError>,
) -> Result<Vec<T>, CliError> {
    let mut items = Vec::new();
    let mut page_token = String::new();
    loop {
        let (page, next) = fetch(page_token).await?;
        items.extend(page);
        if next.is_empty() {
            return Ok(items);
        }
        page_token = next;
    }
}

/// The id that `text` means: `last`, or the only one that starts or ends with it. `what` is
/// `job` or `build`.
pub(crate) fn pick<'a>(what: &str, text: &str, ids: &[&'a str]) -> Result<&'a str, String> {
    if text == "last" {
        return ids
            .first()
            .copied()
            .ok_or_else(|| format!("there is no {what} yet"));
    }
    if text.len() < 4 {
        return Err(format!(
            "{what} {text:?}: give at least 4 characters of its id, or `last`"
        ));
    }
    let fits = |id: &&&str| id.starts_with(text) || id.ends_with(text);
    let found: Vec<&&str> = ids.iter().filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(nothing(what, text)),
        many => Err(format!(
            "{what} {text:?} fits {} {what}s; give more of its id",
            many.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{endpoint, pick};

    #[test]
    fn a_job_is_meant_by_last_start_or_end() {
        let ids = ["0193aaaa-1111", "0193bbbb-2222"];
        assert_eq!(pick("job", "last", &ids), Ok("0193aaaa-1111"));
        assert_eq!(pick("job", "2222", &ids), Ok("0193bbbb-2222"));
        assert_eq!(pick("job", "0193bb", &ids), Ok("0193bbbb-2222"));
        assert!(
            pick("job", "0193", &ids)
                .expect_err("both")
                .contains("fits 2 jobs")
        );
        assert!(pick("job", "zzzz", &ids).is_err());
        assert!(pick("job", "22", &ids).is_err());
        assert!(pick("job", "last", &[]).is_err());
    }

    #[test]
    fn an_address_has_a_port_and_no_other_scheme() {
        for good in ["http://lab:7700", "http://[::1]:7700/", "127.0.0.1:7700"] {
            assert!(endpoint(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "lab",
            "http://lab",
            "http://",
            "https://lab:7700",
            "a b:1",
        ] {
            let error = endpoint(bad).expect_err(bad);
            assert!(error.message.contains("expected http://HOST:PORT"));
        }
    }
}
