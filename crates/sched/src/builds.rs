//! Builds and builders to decisions.

use std::collections::BTreeSet;

use klab_model::{Arch, BuildTaskId, BuilderName};

/// A builder that is connected and has nothing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeBuilder {
    /// Its name.
    pub name: BuilderName,
    /// What it can build.
    pub archs: Vec<Arch>,
}

/// Says which builds begin now and where. `waiting` are the queued builds with their
/// architectures, oldest first: that is the order in which they choose.
///
/// Builders come in the order of their names, whatever the order of the input; one that can
/// build less than others is taken before them, so that a rare cross compiler stays free
/// for what needs it.
pub fn assign_builds(
    waiting: &[(BuildTaskId, Arch)],
    builders: &[FreeBuilder],
) -> Vec<(BuildTaskId, BuilderName)> {
    let mut free: BTreeSet<(usize, &BuilderName)> = builders
        .iter()
        .map(|builder| (builder.archs.len(), &builder.name))
        .collect();
    let can = |name: &BuilderName, arch: Arch| {
        let builder = builders.iter().find(|builder| builder.name == *name);
        builder.is_some_and(|builder| builder.archs.contains(&arch))
    };
    let mut decisions = Vec::new();
    for (build, arch) in waiting {
        let chosen = free.iter().find(|(_, name)| can(name, *arch)).copied();
        if let Some(chosen) = chosen {
            free.remove(&chosen);
            decisions.push((*build, chosen.1.clone()));
        }
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(name: &str, archs: &[Arch]) -> FreeBuilder {
        FreeBuilder {
            name: name.parse().expect("a legal name"),
            archs: archs.to_vec(),
        }
    }

    fn build(number: u8) -> BuildTaskId {
        let text = format!("01936f4e-0000-7000-8000-0000000000{number:02x}");
        text.parse().expect("a legal id")
    }

    #[test]
    fn the_oldest_choose_first_and_leave_the_rare_builder_free() {
        let both = builder("a", &[Arch::X86_64, Arch::Riscv64]);
        let one = builder("b", &[Arch::X86_64]);
        let waiting = [
            (build(1), Arch::X86_64),
            (build(2), Arch::Riscv64),
            (build(3), Arch::X86_64),
        ];
        let expected = vec![(build(1), one.name.clone()), (build(2), both.name.clone())];
        for builders in [[both.clone(), one.clone()], [one, both]] {
            assert_eq!(assign_builds(&waiting, &builders), expected);
        }
    }

    #[test]
    fn a_build_that_nobody_can_do_holds_nobody_up() {
        let waiting = [(build(1), Arch::Riscv64), (build(2), Arch::X86_64)];
        let builders = [builder("a", &[Arch::X86_64])];
        let decided = assign_builds(&waiting, &builders);
        assert_eq!(decided, [(build(2), builders[0].name.clone())]);
        assert_eq!(assign_builds(&waiting, &[]), []);
    }
}
