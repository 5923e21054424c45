//! The other role of the agent: it builds kernels.
//!
//! ```text
//! link  one stream to the controller: orders and verdicts down, reports up
//! work  one build at a time, on a thread of its own: tree, base, patches, make, package
//! tail  the log of make, sent as it grows
//! ```
//!
//! A builder keeps no state that counts. When its stream ends, it stops its work; whoever
//! gets the build next, maybe itself, finds what is in its folder and goes on from there.

mod config;
mod link;
mod tail;
mod work;

use std::path::Path;
use std::time::Duration;

use klab_build::{Cancel, Toolchain};
use klab_model::Arch;
use klab_task::Backoff;
use tracing::{info, warn};

pub use config::BuilderConfig;

use crate::error::AgentError;
use crate::link::LinkError;
use crate::outside::Outside;
use link::BuilderLink;

/// The architectures that kernels can be built for.
const ARCHS: [Arch; 2] = [Arch::X86_64, Arch::Riscv64];
/// What a toolchain is called, for people.
type Toolchains = Vec<(Arch, String)>;

/// A builder.
#[derive(Debug)]
pub struct Builder {
    config: BuilderConfig,
    toolchains: Toolchains,
    outside: Outside,
}

impl Builder {
    /// Looks for toolchains and opens the folder.
    ///
    /// # Errors
    /// [`AgentError::Builder`] if nothing can be built here; it names what is missing.
    pub fn open(config: BuilderConfig, outside: Outside) -> Result<Self, AgentError> {
        let toolchains = toolchains(&config)?;
        work::open(&config)?;
        Ok(Self {
            config,
            toolchains,
            outside,
        })
    }

    /// Works until the future is dropped; then the build at work is stopped.
    ///
    /// # Errors
    /// [`AgentError::Link`] when the controller refuses this builder for good.
    pub async fn run(&mut self) -> Result<(), AgentError> {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            match BuilderLink::open(&self.config, &self.outside, &self.toolchains).await {
                Ok(link) => {
                    info!(builder = %self.config.builder, "connected");
                    backoff.reset();
                    if let Err(error) = link.serve(&self.config).await {
                        warn!("{error}");
                    }
                }
                Err(error) if error.is_refusal() => return Err(error.into()),
                Err(error) => warn!("{error}"),
            }
            let pause = backoff.next((self.outside.random)());
            tokio::time::sleep(pause).await;
        }
    }
}

/// The toolchains that are here, or why there are none.
fn toolchains(config: &BuilderConfig) -> Result<Toolchains, AgentError> {
    let wanted = config.archs.clone();
    let cancel = Cancel::new().map_err(|error| failed(&config.folder, error))?;
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for arch in ARCHS {
        if wanted
            .as_ref()
            .is_some_and(|wanted| !wanted.contains(&arch))
        {
            continue;
        }
        match Toolchain::detect(arch, &cancel) {
            Ok(toolchain) => {
                let words = format!("{arch}: {}, {}", toolchain.compiler(), toolchain.linker());
                found.push((arch, words));
            }
            // A cross compiler that nobody asked for may be missing.
            Err(error) if wanted.is_some() || arch == ARCHS[0] => problems.push(error.chain()),
            Err(_) => {}
        }
    }
    let all_wanted = wanted.is_none_or(|wanted| wanted.len() == found.len());
    if found.is_empty() || !all_wanted {
        return Err(AgentError::Builder(problems.join("; ")));
    }
    Ok(found)
}

fn failed(folder: &Path, error: impl std::fmt::Display) -> AgentError {
    AgentError::Builder(format!("{}: {error}", folder.display()))
}

impl From<LinkError> for AgentError {
    fn from(error: LinkError) -> Self {
        AgentError::Link(error)
    }
}
