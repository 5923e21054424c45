//! Opening whatever a developer hands in.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::compression::Compression;
use crate::deb::{self, AR_MAGIC};
use crate::decode::archive_reader;
use crate::error::{ArchiveError, KernelError};
use crate::header::hex;
use crate::item::{Item, Place};
use crate::layout::meta_hint;
use crate::understand::understand;
use crate::{HeaderError, ImageFormat, ImageHeader, KernelPackage, Limits, PackageKind};
use crate::{folder, tarball};

/// Where a tar archive has its magic, and the magic.
const USTAR: (usize, &[u8]) = (257, b"ustar");
const RPM_MAGIC: &[u8] = &[0xed, 0xab, 0xee, 0xdb];

/// Opens a Debian package, a tar archive (plain, gzip, bzip2, xz, zstd), a folder, or a boot
/// image alone.
///
/// A folder may hold a file system (`boot/`, `lib/modules/`), an image with `modules/`
/// beside it, or the packages of `make bindeb-pkg`, of which the image package is taken.
///
/// # Errors
/// [`KernelError`], naming the file and what to give instead.
pub fn open(path: &Path) -> Result<KernelPackage, KernelError> {
    let limits = Limits::default();
    let meta = fs::metadata(path).map_err(|source| open_error(path, source))?;
    if meta.is_dir() {
        return open_folder(path, &limits);
    }
    let mut file = File::open(path).map_err(|source| open_error(path, source))?;
    let mut head = Vec::new();
    file.by_ref()
        .take(ImageHeader::HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|source| open_error(path, source))?;
    file.rewind().map_err(|source| open_error(path, source))?;
    if head.starts_with(AR_MAGIC) {
        return open_deb(path, file, meta.len(), &limits);
    }
    if is_tar(&head) || Compression::detect(&head).is_some() {
        return open_tar(path, file, &head, &limits);
    }
    if head.starts_with(RPM_MAGIC) {
        return Err(unknown(
            path,
            "an RPM package, which is not read".to_owned(),
        ));
    }
    match ImageHeader::parse(&head, meta.len()) {
        Err(HeaderError::Unknown { .. }) => Err(unknown(
            path,
            format!("neither package nor image, it starts with {}", hex(&head)),
        )),
        // Every other complaint names the image's own trouble, and comes again in there.
        _ => open_pair(path, None),
    }
}

/// Opens a boot image and, if there are any, the modules that belong to it.
///
/// `modules` is the folder RELEASE itself, one above it, or the `INSTALL_MOD_PATH` of
/// `make modules_install`.
///
/// # Errors
/// [`KernelError`], naming the file and what to give instead.
pub fn open_pair(image: &Path, modules: Option<&Path>) -> Result<KernelPackage, KernelError> {
    let limits = Limits::default();
    let meta = fs::metadata(image).map_err(|source| open_error(image, source))?;
    let place = Place::Path(image.to_owned());
    // The name inside the package only has to be one of a boot image.
    let mut items = vec![Item {
        path: "boot/vmlinuz".to_owned(),
        size: meta.len(),
        place,
    }];
    if let Some(modules) = modules {
        let (top, prefix) = modules_folder(modules)?;
        items.extend(folder::items(&top, &prefix, &limits)?);
    }
    understand(image, PackageKind::Image, &items)
}

/// The folder to list, and the place of its files in the package.
fn modules_folder(given: &Path) -> Result<(PathBuf, String), KernelError> {
    let real = fs::canonicalize(given).map_err(|source| open_error(given, source))?;
    for below in ["lib/modules", "usr/lib/modules"] {
        if real.join(below).is_dir() {
            return Ok((real.join(below), "lib/modules/".to_owned()));
        }
    }
    if is_modules(&real) {
        let name = real
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        return Ok((real.clone(), format!("lib/modules/{name}/")));
    }
    let open = |source| open_error(&real, source);
    let mut above = false;
    for entry in fs::read_dir(&real).map_err(open)? {
        above |= is_modules(&entry.map_err(open)?.path());
    }
    if above {
        Ok((real, "lib/modules/".to_owned()))
    } else {
        Err(KernelError::NoModules {
            path: given.to_owned(),
        })
    }
}

fn is_modules(folder: &Path) -> bool {
    folder.join("modules.order").is_file() || folder.join("kernel").is_dir()
}

fn open_deb(
    path: &Path,
    mut file: File,
    len: u64,
    limits: &Limits,
) -> Result<KernelPackage, KernelError> {
    let archive = |source| KernelError::Archive {
        path: path.to_owned(),
        source,
    };
    let deb::Members { control, data } = deb::members(&mut file, len).map_err(archive)?;
    let io = |source| archive(ArchiveError::Read(source));
    file.seek(SeekFrom::Start(data.offset)).map_err(io)?;
    let mut head = [0; 8];
    file.read_exact(&mut head).map_err(io)?;
    file.seek(SeekFrom::Start(data.offset)).map_err(io)?;
    let items = unpack(path, (&file).take(data.size), &head, limits)?;
    let depends = control.map_or_else(Vec::new, |control| deb::depends(&mut file, control));
    if let Some(hint) = meta_hint(&items, &depends) {
        return Err(KernelError::NoImage {
            path: path.to_owned(),
            files: items.len(),
            hint,
        });
    }
    understand(path, PackageKind::Deb, &items)
}

fn open_tar(
    path: &Path,
    file: File,
    head: &[u8],
    limits: &Limits,
) -> Result<KernelPackage, KernelError> {
    if let Some(compression) = Compression::detect(head) {
        // Image.gz and tar.gz look alike from outside.
        let mut inner = Vec::new();
        let peek = File::open(path).map_err(|source| open_error(path, source))?;
        let reader = archive_reader(compression, BufReader::new(peek));
        let read = reader.and_then(|r| r.take(1024).read_to_end(&mut inner));
        if !is_tar(&inner) && (read.is_err() || !inner.is_empty()) {
            return compressed_image(path, head, &inner);
        }
    }
    let items = unpack(path, file, head, limits)?;
    understand(path, PackageKind::Tar, &items)
}

/// A compressed file that holds no tar archive: an image, or something else.
fn compressed_image(path: &Path, head: &[u8], inner: &[u8]) -> Result<KernelPackage, KernelError> {
    let len = fs::metadata(path)
        .map_err(|source| open_error(path, source))?
        .len();
    let image = ImageHeader::parse(head, len)
        .is_ok_and(|header| matches!(header.format, ImageFormat::CompressedImage(_)));
    match ImageHeader::parse(inner, u64::MAX) {
        Err(HeaderError::Unknown { found }) if image && !inner.is_empty() => Err(unknown(
            path,
            format!("compressed, but inside is neither tar nor image: {found}"),
        )),
        _ => open_pair(path, None),
    }
}

fn unpack(
    path: &Path,
    input: impl Read,
    head: &[u8],
    limits: &Limits,
) -> Result<Vec<Item>, KernelError> {
    let archive = |source| KernelError::Archive {
        path: path.to_owned(),
        source,
    };
    let input = BufReader::with_capacity(128 << 10, input);
    let items = match Compression::detect(head) {
        Some(compression) => {
            let reader = archive_reader(compression, input).map_err(|e| archive(e.into()))?;
            tarball::items(reader, limits)
        }
        None => tarball::items(input, limits),
    };
    items.map_err(|error| error.of(path))
}

fn open_folder(path: &Path, limits: &Limits) -> Result<KernelPackage, KernelError> {
    if path.join("Kconfig").is_file() && path.join("Makefile").is_file() {
        let what = "a kernel tree: run `make tar-pkg` or `make bindeb-pkg` and give the result";
        return Err(unknown(path, what.to_owned()));
    }
    if let Some(package) = image_package(path)? {
        return open(&package);
    }
    let items = folder::items(path, "", limits)?;
    understand(path, PackageKind::Folder, &items)
}

/// The one linux-image package in a folder, debug symbols left out.
fn image_package(folder: &Path) -> Result<Option<PathBuf>, KernelError> {
    let mut found = Vec::new();
    let open = |source| open_error(folder, source);
    for entry in fs::read_dir(folder).map_err(open)? {
        let name = entry.map_err(open)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let package = name.split('_').next().unwrap_or_default();
        if name.ends_with(".deb")
            && package.starts_with("linux-image-")
            && !package.ends_with("-dbg")
        {
            found.push(name.to_owned());
        }
    }
    found.sort();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(folder.join(one))),
        _ => Err(KernelError::SeveralKernels {
            path: folder.to_owned(),
            found,
        }),
    }
}

fn is_tar(head: &[u8]) -> bool {
    head.get(USTAR.0..USTAR.0 + USTAR.1.len()) == Some(USTAR.1)
}

fn open_error(path: &Path, source: std::io::Error) -> KernelError {
    KernelError::Open {
        path: path.to_owned(),
        source,
    }
}

fn unknown(path: &Path, what: String) -> KernelError {
    KernelError::UnknownKind {
        path: path.to_owned(),
        what,
    }
}
