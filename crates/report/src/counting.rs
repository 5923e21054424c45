//! Rounds and trials are counted from 1 wherever they are shown, also in JSON; inside they
//! are places in a list, from 0.

use klab_compare::{Comparison, Worst};
use klab_model::TrialIndex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number that people know a round or a trial by.
pub(crate) fn number(place: u32) -> u32 {
    place.saturating_add(1)
}

fn place<E: de::Error>(number: u32) -> Result<u32, E> {
    let from_one = || E::custom("found 0; rounds and trials are counted from 1");
    number.checked_sub(1).ok_or_else(from_one)
}

/// A round.
pub(crate) mod round {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(round: &u32, to: S) -> Result<S::Ok, S::Error> {
        number(*round).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        place(u32::deserialize(from)?)
    }
}

/// A trial.
pub(crate) mod trial {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(trial: &TrialIndex, to: S) -> Result<S::Ok, S::Error> {
        number(trial.0).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TrialIndex, D::Error> {
        place(u32::deserialize(from)?).map(TrialIndex)
    }
}

/// A comparison, which names rounds and trials by its worst samples.
pub(crate) mod comparison {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        comparison: &Comparison,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let mut shown = comparison.clone();
        for worst in worst(&mut shown) {
            worst.round = number(worst.round);
            worst.trial = TrialIndex(number(worst.trial.0));
        }
        shown.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Comparison, D::Error> {
        let mut read = Comparison::deserialize(from)?;
        for worst in worst(&mut read) {
            worst.round = place(worst.round)?;
            worst.trial = TrialIndex(place(worst.trial.0)?);
        }
        Ok(read)
    }

    fn worst(comparison: &mut Comparison) -> impl Iterator<Item = &mut Worst> {
        let metrics = comparison.boards.iter_mut().flat_map(|b| &mut b.metrics);
        metrics.flat_map(|metric| &mut metric.worst)
    }
}
