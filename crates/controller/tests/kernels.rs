//! Kernels that are added: believed for their content only, and nothing of what is refused.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

mod support;

use std::io::Read as _;
use std::path::Path;

use klab_kernel::{CANONICAL_MANIFEST, Manifest, Release};
use klab_model::{Arch, BuildId, Digest};
use klab_proto::status::{reason_of, violations_of};
use klab_proto::v1;
use klab_proto::v1::kernel_service_client::KernelServiceClient;
use support::*;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// The same package with another manifest.
fn typed(package: &[u8], change: impl Fn(&mut Manifest)) -> Vec<u8> {
    let archive = zstd::decode_all(package).unwrap();
    let mut archive = tar::Archive::new(archive.as_slice());
    let mut out = tar::Builder::new(Vec::new());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        if path.as_os_str() == CANONICAL_MANIFEST {
            let mut manifest = Manifest::from_json(&content).unwrap();
            change(&mut manifest);
            content = manifest.to_json();
        }
        let mut header = entry.header().clone();
        header.set_size(content.len() as u64);
        out.append_data(&mut header, path, content.as_slice())
            .unwrap();
    }
    zstd::encode_all(out.into_inner().unwrap().as_slice(), 1).unwrap()
}

async fn refused(channel: &Channel, bytes: &[u8]) -> Status {
    let added = add_kernel(channel, "k1", bytes, Digest::of(bytes)).await;
    let status = added.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert_eq!(reason_of(&status).as_deref(), Some("BAD_REQUEST"));
    status
}

async fn nothing_is_kept(channel: &Channel, folder: &Path) {
    for name in ["uploads", "objects"] {
        assert_eq!(files_in(&folder.join(name)), 0, "{name}");
    }
    let mut client = KernelServiceClient::new(channel.clone());
    let list = client.list_kernels(v1::ListKernelsRequest::default());
    assert!(list.await.unwrap().into_inner().kernels.is_empty());
}

#[tokio::test]
async fn a_kernel_is_what_its_content_says() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    for (arch, number) in [("x86_64", v1::Arch::X8664), ("riscv64", v1::Arch::Riscv64)] {
        let bytes = package(arch, "6.1.0-rt");
        let digest = Digest::of(&bytes);
        let added = add_kernel(&lab.channel, arch, &bytes, digest).await;
        let added = added.unwrap();
        assert_eq!(added.arch(), number);
        assert_eq!(added.release, "6.1.0-rt");
        assert_eq!(added.build_id, vec![0xab; 20]);
        assert_eq!(added.digest, digest.as_bytes().to_vec());
    }
    lab.stop().await;
}

type Change = fn(&mut Manifest);

const CHANGES: [(&str, Change); 7] = [
    ("arch", |m| m.arch = Arch::Riscv64),
    ("release", |m| {
        m.release = Release::parse("6.2.0-b").unwrap()
    }),
    ("build_id", |m| {
        m.build_id = Some(BuildId::from_bytes(&[1; 20]).unwrap());
    }),
    ("image_format", |m| m.image_format = "Image".to_owned()),
    ("image_digest", |m| m.image_digest = Digest::of(b"x")),
    ("config_digest", |m| {
        m.config_digest = Some(Digest::of(b"x"));
    }),
    ("modules", |m| m.modules = 0),
];

#[tokio::test]
async fn a_manifest_that_was_typed_is_refused_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    let good = package("x86_64", "6.1.0-a");
    for (field, change) in CHANGES {
        let status = refused(&lab.channel, &typed(&good, change)).await;
        let violations = violations_of(&status);
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert_eq!(violations[0].0, format!("manifest.{field}"));
    }
    let all = typed(&good, |m| CHANGES.iter().for_each(|(_, change)| change(m)));
    let violations = violations_of(&refused(&lab.channel, &all).await);
    let fields: Vec<String> = violations.iter().map(|(field, _)| field.clone()).collect();
    assert_eq!(
        fields,
        CHANGES.map(|(field, _)| format!("manifest.{field}"))
    );
    assert_eq!(
        violations[1].1,
        "the manifest says 6.2.0-b, the content is 6.1.0-a; `klab kernel add NAME PATH` makes \
         packages as they are taken"
    );
    nothing_is_kept(&lab.channel, folder.path()).await;
    // Only the manifest was wrong.
    let same = typed(&good, |_| ());
    let added = add_kernel(&lab.channel, "k1", &same, Digest::of(&same)).await;
    assert_eq!(added.unwrap().release, "6.1.0-a");
    lab.stop().await;
}

#[tokio::test]
async fn what_is_no_package_or_only_a_part_of_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    let good = package("x86_64", "6.1.0-a");
    let foreign = zstd::encode_all(&b"text, many times, is no archive"[..], 1).unwrap();
    let cases: [(&[u8], &str); 5] = [
        (b"no tar", "kernel package is damaged or cut short"),
        (&foreign, "kernel package is damaged or cut short"),
        (&good[..good.len() / 2], "cut short: fetch it again"),
        (&good[..good.len() - 1], "cut short: fetch it again"),
        (&[&good[..], b"more"].concat(), "bytes after the end"),
    ];
    for (bytes, wanted) in cases {
        let violations = violations_of(&refused(&lab.channel, bytes).await);
        let [(field, text)] = violations.as_slice() else {
            panic!("expected one violation, got {violations:?}");
        };
        assert_eq!(field, "data");
        for part in [wanted, "`klab kernel add NAME PATH`"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
    nothing_is_kept(&lab.channel, folder.path()).await;
    lab.stop().await;
}

#[tokio::test]
async fn a_kernel_that_is_none_or_whose_name_is_taken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    let good = package("x86_64", "6.1.0-a");
    let digest = Digest::of(&good);
    let wrong = add_kernel(&lab.channel, "k1", &good, Digest::of(b"other")).await;
    let reason = reason_of(&wrong.unwrap_err());
    assert_eq!(reason.as_deref(), Some("DIGEST_MISMATCH"));
    let none = add_kernel(&lab.channel, "k1", b"no tar", Digest::of(b"no tar")).await;
    let reason = reason_of(&none.unwrap_err());
    assert_eq!(reason.as_deref(), Some("BAD_REQUEST"));
    let added = add_kernel(&lab.channel, "k1", &good, digest).await.unwrap();
    assert_eq!(added.release, "6.1.0-a");
    assert_eq!(
        add_kernel(&lab.channel, "k1", &good, digest).await.unwrap(),
        added
    );
    let other = package("x86_64", "6.1.0-b");
    let taken = add_kernel(&lab.channel, "k1", &other, Digest::of(&other)).await;
    let reason = reason_of(&taken.unwrap_err());
    assert_eq!(reason.as_deref(), Some("ALREADY_EXISTS"));
    assert_eq!(files_in(&folder.path().join("uploads")), 0);
    lab.stop().await;
}

#[tokio::test]
async fn a_kernel_whose_sender_goes_away_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    let uploads = folder.path().join("uploads");
    let sending = tokio::spawn(half_a_kernel(lab.channel.clone()));
    until(async || files_in(&uploads) == 1).await;
    sending.abort();
    until(async || files_in(&uploads) == 0).await;
    lab.stop().await;
}
