//! Kernels that are uploaded.

use std::fs;
use std::path::Path;

use klab_model::Digest;
use klab_proto::v1::create_kernel_request::Part;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use klab_proto::{CHUNK, v1};
use klab_testkit::SmallKernel;
use tonic::Status;
use tonic::transport::Channel;

/// The canonical package of a small kernel.
pub(crate) fn package(arch: &str, release: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let kernel = SmallKernel::new(release, 0xab);
    let path = match arch {
        "x86_64" => kernel.tar_package(folder.path(), 100),
        "riscv64" => riscv_image(&kernel, folder.path()),
        other => panic!("no kernel for {other}"),
    };
    let mut bytes = Vec::new();
    let package = klab_kernel::open(&path).unwrap();
    package.write_canonical(&mut bytes).unwrap();
    bytes
}

/// A flat image, as Documentation/arch/riscv/boot-image-header.rst lays it out.
fn riscv_image(kernel: &SmallKernel, folder: &Path) -> std::path::PathBuf {
    let mut image = vec![0; 64];
    image[0x30..0x35].copy_from_slice(b"RISCV");
    image[0x38..0x3c].copy_from_slice(b"RSC\x05");
    image.extend(format!("Linux version {} (a@b) (gcc) #1\n\0", kernel.release).as_bytes());
    image.resize(image.len().next_multiple_of(8), 0);
    image.extend(kernel.notes());
    let path = folder.join("Image");
    fs::write(&path, image).unwrap();
    path
}

/// The announcement of a package.
pub(crate) fn kernel_start(name: &str, size: u64, digest: Digest) -> v1::CreateKernelRequest {
    let start = v1::CreateKernelStart {
        name: name.to_owned(),
        digest: digest.as_bytes().to_vec().into(),
        size,
    };
    v1::CreateKernelRequest {
        part: Some(Part::Start(start)),
    }
}

/// A piece of a package.
pub(crate) fn kernel_data(bytes: &[u8]) -> v1::CreateKernelRequest {
    v1::CreateKernelRequest {
        part: Some(Part::Data(bytes.to_vec().into())),
    }
}

pub(crate) async fn add_kernel(
    channel: &Channel,
    name: &str,
    bytes: &[u8],
    digest: Digest,
) -> Result<v1::Kernel, Status> {
    // Several pieces, however short it is.
    let data = bytes.chunks((bytes.len() / 3).clamp(1, CHUNK));
    let start = kernel_start(name, bytes.len() as u64, digest);
    let parts: Vec<_> = std::iter::once(start)
        .chain(data.map(kernel_data))
        .collect();
    let answer = KernelServiceClient::new(channel.clone())
        .create_kernel(futures::stream::iter(parts))
        .await?;
    Ok(answer.into_inner().kernel.unwrap())
}

/// Adds kernel `name`.
pub(crate) async fn kernel(channel: &Channel, name: &str, arch: &str) {
    let bytes = package(arch, &format!("6.1.0-{name}"));
    add_kernel(channel, name, &bytes, Digest::of(&bytes))
        .await
        .unwrap();
}

/// Sends the start of a package and then nothing more; dropped, the sender goes away.
pub(crate) async fn half_a_kernel(channel: Channel) {
    use futures::StreamExt as _;
    let start = kernel_start("half", 1000, Digest::of(b"whole"));
    let parts = futures::stream::iter([start, kernel_data(b"half")]);
    let mut client = KernelServiceClient::new(channel);
    let _ = client
        .create_kernel(parts.chain(futures::stream::pending()))
        .await;
}
