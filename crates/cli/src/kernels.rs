//! `klab kernel`.

use std::io::Seek;
use std::path::{Path, PathBuf};

use klab_model::{Digest, KernelName};
use klab_proto::{chunks, v1};
use klab_report::Table;
use v1::create_kernel_request::Part;

use crate::args::{Global, KernelCommand};
use crate::client::{Client, every_page};
use crate::exit::{CliError, ExitCode};
use crate::{json, output};

pub(crate) async fn run(global: &Global, command: KernelCommand) -> Result<ExitCode, CliError> {
    match command {
        KernelCommand::Add {
            name,
            path,
            modules,
        } => {
            let client = Client::connect(global).await?;
            let kernel = add(&client, name, path, modules).await?;
            if global.json {
                output::json(&json::kernel(&kernel))?;
            } else {
                output::line(describe(&kernel))?;
            }
        }
        KernelCommand::List => list(global).await?,
    }
    Ok(ExitCode::Done)
}

/// One kernel in words.
pub(crate) fn describe(kernel: &v1::Kernel) -> String {
    let build_id = match json::hex(&kernel.build_id) {
        none if none.is_empty() => "not readable".to_owned(),
        id => id,
    };
    format!(
        "{}: {} {}, build-id {build_id}, digest {}",
        kernel.name,
        json::arch(kernel.arch),
        kernel.release,
        short(&kernel.digest),
    )
}

/// Enough of a digest to tell kernels apart.
fn short(digest: &[u8]) -> String {
    json::hex(&digest[..digest.len().min(6)])
}

/// A canonical package in a temporary file.
struct Canonical {
    file: std::fs::File,
    digest: Digest,
    size: u64,
}

fn canonical(path: &Path, modules: Option<&Path>) -> Result<Canonical, CliError> {
    let package = match modules {
        None => klab_kernel::open(path),
        Some(modules) => klab_kernel::open_pair(path, Some(modules)),
    };
    let package = package.map_err(|error| CliError::refused(&error))?;
    let mut file = tempfile::tempfile()?;
    let summary = package
        .write_canonical(std::io::BufWriter::new(&mut file))
        .map_err(|error| CliError::refused(&error))?;
    file.rewind()?;
    Ok(Canonical {
        file,
        digest: summary.digest,
        size: summary.size,
    })
}

/// Reads a package, sends it, and gives back what the controller read from it.
pub(crate) async fn add(
    client: &Client,
    name: KernelName,
    path: PathBuf,
    modules: Option<PathBuf>,
) -> Result<v1::Kernel, CliError> {
    let canonical = tokio::task::spawn_blocking(move || canonical(&path, modules.as_deref()))
        .await
        .map_err(CliError::infrastructure)??;
    let start = Part::Start(v1::CreateKernelStart {
        name: name.into(),
        digest: canonical.digest.as_bytes().to_vec().into(),
        size: canonical.size,
    });
    let parts = std::iter::once(start).chain(chunks(canonical.file).map(Part::Data));
    let requests = parts.map(|part| v1::CreateKernelRequest { part: Some(part) });
    let response = client
        .kernels()
        .create_kernel(tokio_stream::iter(requests))
        .await?;
    response
        .into_inner()
        .kernel
        .ok_or_else(|| CliError::infrastructure("the controller did not describe the kernel"))
}

/// Every kernel, by name.
pub(crate) async fn all(client: &Client) -> Result<Vec<v1::Kernel>, CliError> {
    every_page(async |page_token| {
        let request = v1::ListKernelsRequest {
            page_size: 200,
            page_token,
        };
        let page = client.kernels().list_kernels(request).await?.into_inner();
        Ok((page.kernels, page.next_page_token))
    })
    .await
}

async fn list(global: &Global) -> Result<(), CliError> {
    let kernels = all(&Client::connect(global).await?).await?;
    if global.json {
        return output::json(&kernels.iter().map(json::kernel).collect());
    }
    let mut table = Table::new(["NAME", "ARCH", "RELEASE", "BUILD-ID", "DIGEST"]);
    for kernel in &kernels {
        table.row([
            kernel.name.clone(),
            json::arch(kernel.arch).to_owned(),
            kernel.release.clone(),
            json::hex(&kernel.build_id),
            short(&kernel.digest),
        ]);
    }
    output::line(table.to_string())
}
