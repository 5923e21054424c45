//! New ids.

use std::fmt::Debug;

use uuid::Uuid;

/// A source of version-7 UUIDs: later ones sort behind earlier ones.
pub trait Ids: Debug + Send + Sync {
    /// A new id.
    fn next(&self) -> Uuid;
}

/// Ids from the system's clock and random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_ids_sort_behind_earlier_ones() {
        let ids: Vec<Uuid> = (0..1000).map(|_| SystemIds.next()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
