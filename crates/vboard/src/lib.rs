//! Virtual boards: x86-64 and riscv64 machines in QEMU that really boot kernels.
//!
//! A board is made in three steps. [`Workdir::image`] builds a base disk from Debian packages
//! (once per [`Recipe`]); [`Workdir::create`] gives a board its own disk on top of it and a seed
//! with the agent ([`AgentFiles`]); [`BoardDir::start`] switches it on as a [`VirtualBoard`] that
//! can be reset, killed and watched on its console.
//!
//! ```no_run
//! use klab_vboard::{AgentFiles, BoardSpec, Machine, Recipe, Workdir};
//! # fn main() -> Result<(), klab_vboard::Error> {
//! klab_vboard::tools::check(Machine::X86_64)?;
//! let work = Workdir::new("boards")?;
//! let image = work.image(&Recipe::of(Machine::X86_64))?;
//! let agent = AgentFiles::new("target/klab-agent", "controller: http://10.0.2.2:7070\n");
//! let board = work.create(&BoardSpec::new("vb1")?, &image, &agent)?;
//! let running = board.start(&work.accel(&image)?)?;
//! # drop(running); Ok(()) }
//! ```
//!
//! # What a board looks like from inside
//!
//! | path | what it is |
//! |---|---|
//! | `/usr/sbin/klab-agent` | the agent, started as `klab-agent --config /etc/klab/agent.yaml` by busybox init (`respawn`), output on the serial console |
//! | `/var/lib/klab` | the agent's state; on the root disk, so it outlives reboots |
//! | `/boot` | FAT partition that the boot loader reads, mounted read-write |
//! | `/boot/klab/<slot>/vmlinuz`, `initrd` | the candidate; the boot loader sees them as `/klab/<slot>/...` |
//! | `/boot/grub/grubenv` | x86-64: 1024 bytes; `next_entry=ID` selects one boot, GRUB clears it before the kernel starts |
//! | `/boot/klab/candidate.cfg` | x86-64: GRUB snippet with the candidate's `menuentry`, see [`grub::candidate_snippet`] |
//! | `/boot/klab/next` | riscv64: selects one boot, U-Boot deletes it before the kernel starts |
//! | `/boot/klab/candidate.conf` | riscv64: extlinux file with the candidate's entry |
//! | `/usr/lib/klab/mkinitrd RELEASE MODULES_DIR OUT` | makes the candidate's initrd on the board |
//! | `/lib/modules/RELEASE` | modules, on the root disk |
//!
//! A candidate's command line is [`CMDLINE`]. The default entry is
//! never changed: a kernel that panics, hangs under its watchdog or is no kernel at all leads back
//! to it. The network is QEMU's user network: the board is 10.0.2.15, the host is 10.0.2.2.

mod accel;
pub mod apt;
mod board;
mod command;
mod console;
mod disk;
mod error;
pub mod grub;
mod image;
mod machine;
mod qemu;
mod qmp;
mod recipe;
mod rootfs;
mod seed;
pub mod tools;
mod uboot;
mod workdir;

pub use accel::{Accel, AccelKind};
pub use board::{BoardDir, BoardName, BoardSpec};
pub use console::ConsoleFollower;
pub use error::Error;
pub use image::BaseImage;
pub use machine::Machine;
pub use qemu::{Exit, VirtualBoard};
pub use recipe::{CMDLINE, Recipe};
pub use seed::{AgentFiles, SeedFile};
pub use workdir::Workdir;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;
