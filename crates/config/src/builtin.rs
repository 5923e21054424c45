//! The plans and the parts of kernel configurations that come with klab.

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

macro_rules! fragments {
    ($($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../../configs/kernel/", $name, ".config")),
        )),+]
    };
}

static FRAGMENTS: &[(&str, &str)] = fragments![
    "debug-off",
    "ftrace",
    "preempt-rt",
    "virtual-riscv64",
    "virtual-x86_64",
];

/// A name that no built-in plan or fragment has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no built-in {what} {name:?}: expected one of {}{}", all.join(", "), guess(*nearest))]
pub struct UnknownName {
    /// `plan` or `fragment`.
    pub what: &'static str,
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
/// [`UnknownName`] with the names there are.
pub fn builtin_plan(name: &str) -> Result<&'static str, UnknownName> {
    find("plan", PLANS, name)
}

/// The parts of kernel configurations that come with klab: name and text of the file.
pub fn builtin_fragments() -> &'static [(&'static str, &'static str)] {
    FRAGMENTS
}

/// The text of a built-in part of a kernel configuration.
///
/// # Errors
/// [`UnknownName`] with the names there are.
pub fn builtin_fragment(name: &str) -> Result<&'static str, UnknownName> {
    find("fragment", FRAGMENTS, name)
}

fn find(
    what: &'static str,
    known: &'static [(&'static str, &'static str)],
    name: &str,
) -> Result<&'static str, UnknownName> {
    let names = || known.iter().map(|(name, _)| *name);
    known
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| UnknownName {
            what,
            name: name.to_owned(),
            nearest: nearest(name, names()),
            all: names().collect(),
        })
}
