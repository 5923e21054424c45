//! Which file of a package is what: by place and name only. What the image says about
//! itself decides later.

use std::collections::BTreeSet;
use std::fmt;

use crate::item::Item;

/// Names of boot images, best first; what follows a dash is the release. `vmlinux-kbuild`
/// is what `make tar-pkg` calls an image of an arch it does not know better; Debian calls
/// the flat RISC-V image `vmlinux`.
const IMAGES: [&str; 13] = [
    "vmlinuz",
    "vmlinuz.efi",
    "bzImage",
    "vmlinux-kbuild",
    "Image.gz",
    "Image.zst",
    "Image.xz",
    "Image.lz4",
    "Image.lzma",
    "Image.bz2",
    "Image.lzo",
    "Image",
    "vmlinux",
];
const MODULE_ROOTS: [&str; 3] = ["lib/modules/", "usr/lib/modules/", "modules/"];
/// Where device trees are: Debian's place, then that of `make tar-pkg`.
const DTB_ROOTS: [&str; 3] = ["usr/lib/linux-image-", "boot/dtbs/", "dtbs/"];

/// A real System.map has a million bytes, Debian's stub fewer than a hundred.
const STUB_BYTES: u64 = 1024;

/// A file that may be the boot image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Position in the list of items.
    pub(crate) item: usize,
    /// Position in [`IMAGES`].
    rank: usize,
    /// What follows the name: the release, or nothing.
    pub(crate) suffix: Option<String>,
}

/// The files of a package by their role.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Possible boot images, best first.
    pub(crate) images: Vec<Candidate>,
    /// Names of the modules folders.
    pub(crate) releases: BTreeSet<String>,
    /// Files below a modules folder: item, path inside the folder.
    pub(crate) modules: Vec<(usize, String)>,
    /// Device trees: item, path inside their folder.
    pub(crate) dtbs: Vec<(usize, String)>,
    system_maps: Vec<(usize, Option<String>)>,
    configs: Vec<(usize, Option<String>)>,
}

/// What a package without an image seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoImageHint {
    /// A headers package.
    Headers,
    /// A package of debug symbols.
    Debug,
    /// A Debian package that only depends on others.
    Meta {
        /// The image package among them.
        image: Option<String>,
    },
    /// A Debian package whose parts are packages of their own.
    Parts {
        /// The packages with the image and with the modules.
        packages: Vec<String>,
    },
    /// Kernel sources or a build tree.
    Tree,
    /// Nothing known.
    Unknown,
}

impl fmt::Display for NoImageHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Headers => "this is a headers package: give the linux-image package beside it",
            Self::Debug => {
                "these are debug symbols: give the linux-image package without -dbg in its name"
            }
            Self::Meta { image: Some(name) } => {
                return write!(f, "this package only depends on others: give {name}");
            }
            Self::Meta { image: None } => {
                "this package only depends on others: give linux-image-RELEASE"
            }
            Self::Parts { packages } => {
                return write!(
                    f,
                    "its parts are packages of their own: unpack {} into one folder with \
                     `dpkg-deb -x` and give that",
                    packages.join(" and ")
                );
            }
            Self::Tree => {
                "this is a kernel tree: run `make tar-pkg` or `make bindeb-pkg` there and give \
                 the result"
            }
            Self::Unknown => "give the image package of a kernel",
        };
        f.write_str(words)
    }
}

impl Layout {
    /// Sorts the files of a package into roles.
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut layout = Self::default();
        let top = common_folder(items);
        for (n, item) in items.iter().enumerate() {
            layout.take(n, &item.path[top..], item.name());
        }
        layout.images.sort_by_key(|c| c.rank);
        // What lies in boot/ comes before its copy beside the modules.
        for list in [&mut layout.system_maps, &mut layout.configs] {
            list.sort_by_key(|(n, _)| items[*n].path.matches('/').count());
        }
        layout
    }

    fn take(&mut self, n: usize, path: &str, name: &str) {
        let folder = &path[..path.len() - name.len()];
        if folder.is_empty() || folder == "boot/" {
            self.top_file(n, name);
        }
        if let Some(rest) = MODULE_ROOTS.iter().find_map(|root| path.strip_prefix(root))
            && let Some((release, rest)) = rest.split_once('/')
        {
            self.releases.insert(release.to_owned());
            if let Some(tree) = rest.strip_prefix("dtb/") {
                self.dtbs.push((n, tree.to_owned()));
                return;
            }
            self.modules.push((n, rest.to_owned()));
            if rest == name {
                self.beside_modules(n, name, release);
            }
        }
        if let Some(rest) = DTB_ROOTS.iter().find_map(|root| path.strip_prefix(root))
            && name.ends_with(".dtb")
        {
            self.dtbs.push((n, rest.to_owned()));
        }
    }

    fn top_file(&mut self, n: usize, name: &str) {
        if let Some((rank, suffix)) = image_name(name) {
            self.images.push(Candidate {
                item: n,
                rank,
                suffix,
            });
        } else if let Some(suffix) = named(name, "System.map") {
            self.system_maps.push((n, suffix));
        } else if let Some(suffix) = named(name, "config").or_else(|| named(name, ".config")) {
            self.configs.push((n, suffix));
        }
    }

    /// Some distributions have everything in the modules folder, others a copy of it. What
    /// lies in boot/ comes first.
    fn beside_modules(&mut self, n: usize, name: &str, release: &str) {
        let suffix = Some(release.to_owned());
        match (image_name(name), name) {
            (Some((rank, None)), _) => self.images.push(Candidate {
                item: n,
                rank: IMAGES.len() + rank,
                suffix,
            }),
            (_, "System.map") => self.system_maps.push((n, suffix)),
            (_, "config") => self.configs.push((n, suffix)),
            _ => {}
        }
    }

    /// Releases that the image names carry; more than one is more than one kernel.
    pub(crate) fn image_suffixes(&self) -> BTreeSet<&str> {
        self.images
            .iter()
            .filter_map(|c| c.suffix.as_deref())
            .collect()
    }

    /// The symbol table that belongs to `release`. Debian ships a one-line stub in its
    /// place, which would only mislead.
    pub(crate) fn system_map(&self, release: &str, items: &[Item]) -> Option<usize> {
        belonging(&self.system_maps, release).filter(|&n| items[n].size > STUB_BYTES)
    }

    /// The configuration that belongs to `release`.
    pub(crate) fn config(&self, release: &str) -> Option<usize> {
        belonging(&self.configs, release)
    }
}

fn belonging(files: &[(usize, Option<String>)], release: &str) -> Option<usize> {
    let exact = files
        .iter()
        .find(|(_, suffix)| suffix.as_deref() == Some(release));
    let plain = || files.iter().find(|(_, suffix)| suffix.is_none());
    exact.or_else(plain).map(|&(n, _)| n)
}

/// `base` or `base-SUFFIX`.
fn named(name: &str, base: &str) -> Option<Option<String>> {
    match name.strip_prefix(base)? {
        "" => Some(None),
        rest => rest
            .strip_prefix('-')
            .filter(|r| !r.is_empty())
            .map(|r| Some(r.to_owned())),
    }
}

fn image_name(name: &str) -> Option<(usize, Option<String>)> {
    // The longest name wins: `vmlinux-kbuild-6.1` is not a `vmlinux` of release kbuild-6.1.
    IMAGES
        .iter()
        .enumerate()
        .filter_map(|(rank, base)| named(name, base).map(|suffix| (base.len(), rank, suffix)))
        .max_by_key(|&(len, ..)| len)
        .map(|(_, rank, suffix)| (rank, suffix))
}

/// Length of the one folder that everything lies in, if that is not a folder we know.
fn common_folder(items: &[Item]) -> usize {
    let Some((first, _)) = items.first().and_then(|item| item.path.split_once('/')) else {
        return 0;
    };
    let known = ["boot", "lib", "usr", "modules", "dtbs", "etc"].contains(&first);
    let all = || {
        items.iter().all(|i| {
            i.path
                .strip_prefix(first)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    if known || !all() { 0 } else { first.len() + 1 }
}

/// What a Debian package without content of its own is, if it depends on others.
pub(crate) fn meta_hint(items: &[Item], depends: &[String]) -> Option<NoImageHint> {
    let empty = items.iter().all(|item| item.path.starts_with("usr/share/"));
    let named = |start: &str| depends.iter().find(|name| name.starts_with(start)).cloned();
    let part = |start| named(start).into_iter();
    let parts: Vec<String> = part("linux-binary-")
        .chain(part("linux-modules-"))
        .collect();
    let hint = match named("linux-image-") {
        None if !parts.is_empty() => NoImageHint::Parts { packages: parts },
        image => NoImageHint::Meta { image },
    };
    (empty && !depends.is_empty()).then_some(hint)
}

/// Guesses what a package without an image is.
pub(crate) fn no_image_hint(items: &[Item]) -> NoImageHint {
    let any = |part: &str| items.iter().any(|item| item.path.contains(part));
    let tree = |file: &str| {
        items
            .iter()
            .any(|item| item.path == file || item.path.ends_with(file))
    };
    if any("usr/src/linux-headers-") || any("usr/src/linux-kbuild-") {
        NoImageHint::Headers
    } else if any("usr/lib/debug/") {
        NoImageHint::Debug
    } else if tree("Kbuild") && tree("Kconfig") {
        NoImageHint::Tree
    } else {
        NoImageHint::Unknown
    }
}
