//! What the agent says first: who it is, what the board is, where it stands.

use std::path::Path;

use klab_boot::BootMethod;
use klab_model::{Capability, Digest, InstanceId, Order};
use klab_proto::{attempt_ref, v1};
use newtype_uuid::GenericUuid;

use crate::config::Config;
use crate::link::LinkError;
use crate::outside::Outside;

/// The id of this installation, made at the first start.
///
/// # Errors
/// If the state folder cannot be read or written.
pub fn instance(state: &Path, outside: &Outside) -> std::io::Result<InstanceId> {
    let path = state.join("instance");
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            if let Ok(instance) = text.trim().parse() {
                return Ok(instance);
            }
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let instance = InstanceId::from_untyped_uuid(outside.ids.next());
    let draft = state.join("instance.new");
    std::fs::write(&draft, instance.to_string())?;
    std::fs::File::open(&draft)?.sync_all()?;
    std::fs::rename(&draft, &path)?;
    crate::journal::sync_folder(state)?;
    Ok(instance)
}

/// The greeting.
///
/// # Errors
/// [`LinkError::BadMessage`] without an architecture.
pub fn hello(
    config: &Config,
    instance: InstanceId,
    boot: &dyn BootMethod,
    order: Option<&Order>,
) -> Result<v1::Hello, LinkError> {
    let mut capabilities = vec![Capability(format!("boot-{}", boot.name()))];
    let words = boot.capabilities().words();
    capabilities.extend(words.into_iter().map(|word| Capability(word.to_owned())));
    let version = env!("CARGO_PKG_VERSION");
    let facts = klab_measure::board_facts(&config.sysroot, version, capabilities);
    let arch = config
        .arch
        .ok_or_else(|| LinkError::BadMessage("no architecture".into()))?;
    let tags = config.tags.iter();
    Ok(v1::Hello {
        board: config.board.to_string(),
        instance: instance.to_string(),
        arch: v1::Arch::from(arch).into(),
        tags: tags
            .map(|(key, value)| v1::Tag {
                key: key.clone(),
                value: value.clone(),
            })
            .collect(),
        facts: Some(facts.into()),
        current: order.map(|order| attempt_ref(order.run, order.attempt, order.fence)),
        config_digest: known_good_config(config, order)
            .map(|content| Digest::of(&content).as_bytes().to_vec().into())
            .unwrap_or_default(),
    })
}

/// The configuration file of the known-good kernel, which runs unless an attempt is at work.
pub(crate) fn known_good_config(config: &Config, order: Option<&Order>) -> Option<Vec<u8>> {
    match order {
        None => klab_measure::kernel_config(&config.sysroot),
        Some(_) => None,
    }
}
