//! Boot methods: how a board boots a candidate kernel once and comes back.
//!
//! ```text
//! preflight -> install -> arm_once -> reboot -> (candidate runs) -> restore
//!                                        \-> panic, hang, bad image: known-good kernel again
//! ```
//!
//! A [`BootMethod`] never changes what a board boots by default. [`GrubOneShot`] names the
//! candidate in GRUB's environment block, which GRUB clears before it starts it;
//! [`UbootOneShot`] in a file that U-Boot deletes before; [`Kexec`] keeps the candidate in
//! memory only; [`Hooks`] are commands for boards with their own ways.
//! Each one is honest about what it survives: [`Capabilities`]. [`BootConfig`] is the part of
//! the agent's configuration that chooses one.
//!
//! After a boot [`running`] looks at the kernel that runs and [`prove`] decides whether it is
//! the one that was asked for: by boot id, release, GNU build-id and the mark on the command
//! line. Without that proof nothing may be measured; [`came_back`] tells what happened instead.
//!
//! Blocking code, no network, no clock. Paths are below a `sysroot`, so that tests work in a
//! temporary folder; only the sysroot `/` is ever rebooted.

mod command;
mod config;
mod error;
mod files;
mod grub;
mod grubenv;
mod hooks;
mod identity;
mod kexec;
mod machine;
mod method;
mod modules;
mod store;
mod uboot;

pub use config::BootConfig;
pub use error::BootError;
pub use grub::{GrubOneShot, GrubOptions};
pub use grubenv::{Grubenv, GrubenvError};
pub use hooks::{HookOptions, Hooks};
pub use identity::{
    CameBack, Expected, IdentityError, ProveError, Running, came_back, prove, running,
};
pub use kexec::{Kexec, KexecOptions};
pub use method::{BootMethod, Capabilities, Installed};
pub use store::KernelStore;
pub use uboot::{UbootOneShot, UbootOptions};
