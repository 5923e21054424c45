//! What the agent takes from the world, passed in so that a test or a simulation can own it.

use klab_model::{InstanceId, Timestamp};
use newtype_uuid::GenericUuid;

/// Clock, ids and chance.
pub trait Outside: Send {
    /// The board's own clock; it may be years off.
    fn now(&self) -> Timestamp;
    /// A fresh installation id.
    fn instance(&self) -> InstanceId;
    /// A number in 0..1, for spreading reconnects.
    fn chance(&self) -> f64;
}

/// The real world.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealWorld;

impl Outside for RealWorld {
    fn now(&self) -> Timestamp {
        Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn instance(&self) -> InstanceId {
        InstanceId::from_untyped_uuid(uuid::Uuid::now_v7())
    }

    fn chance(&self) -> f64 {
        // The low half of a version-7 id is random.
        f64::from(uuid::Uuid::now_v7().as_fields().3[7]) / 256.0
    }
}
