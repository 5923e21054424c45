//! The plans that come with klab.

use thiserror::Error;

use crate::nearest::nearest;

macro_rules! plans {
    ($($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../configs/plans/", $name, ".yaml")),
        )),+]
    };
}

static PLANS: &[(&str, &str)] = plans!["rt-latency", "rt-latency-quick"];

/// A name that no built-in plan has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no built-in plan {name:?}: expected one of {}{}", all.join(", "), guess(*nearest))]
pub struct UnknownPlan {
    /// The name that was asked for.
    pub name: String,
    /// The name that was probably meant.
    pub nearest: Option<&'static str>,
    /// The names there are.
    pub all: Vec<&'static str>,
}

fn guess(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The plans that come with klab: name and text of the file.
pub fn builtin_plans() -> &'static [(&'static str, &'static str)] {
    PLANS
}

/// The text of a built-in plan.
///
/// # Errors
/// [`UnknownPlan`] with the names there are.
pub fn builtin_plan(name: &str) -> Result<&'static str, UnknownPlan> {
    let names = || PLANS.iter().map(|(name, _)| *name);
    PLANS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| UnknownPlan {
            name: name.to_owned(),
            nearest: nearest(name, names()),
            all: names().collect(),
        })
}
