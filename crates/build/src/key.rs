//! The key of a kernel: everything that decides what comes out of a build.

use std::fmt;

use klab_model::{Arch, Digest};

use crate::{BuildError, ObjectId, ToolVersions};

/// The first line of the canonical text; a change of the text's meaning changes the number.
const HEAD: &str = "klab-build 1";

/// What decides what comes out of a build: two builds of one key give the same kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildKey {
    /// The files after all patches, as git names their tree.
    pub tree: ObjectId,
    /// Digest of the final configuration.
    pub config: Digest,
    /// For which machines.
    pub arch: Arch,
    /// Versions of the tools that show in the result.
    pub tools: ToolVersions,
    /// Arguments and environment that show in the result.
    pub flags: Vec<String>,
}

impl BuildKey {
    /// The canonical text: one line per part, tools sorted by name.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{HEAD}\ntree {}\nconfig {}\narch {}\n",
            self.tree, self.config, self.arch
        );
        for (name, version) in &self.tools.0 {
            text += &format!("tool {} {}\n", quote(name), quote(version));
        }
        for flag in &self.flags {
            text += &format!("flag {}\n", quote(flag));
        }
        text
    }

    /// Reads the canonical text.
    ///
    /// # Errors
    /// [`BuildError::Key`] with the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, BuildError> {
        let mut lines = text.lines().enumerate();
        let mut field = |name: &str| {
            let (n, line) = lines.next().unwrap_or((0, ""));
            let value = line
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(' '));
            value.map(|value| (n, value)).ok_or_else(|| wrong(n, line))
        };
        field("klab-build").and_then(|(n, v)| if v == "1" { Ok(()) } else { Err(wrong(n, v)) })?;
        let (_, tree) = field("tree")?;
        let (n, config) = field("config")?;
        let config = Digest::parse(config).map_err(|_| wrong(n, config))?;
        let (n, arch) = field("arch")?;
        let mut key = Self {
            tree: ObjectId::parse(tree)?,
            config,
            arch: Arch::parse(arch).map_err(|_| wrong(n, arch))?,
            tools: ToolVersions::default(),
            flags: Vec::new(),
        };
        for (n, line) in lines {
            key.list_line(line).ok_or_else(|| wrong(n, line))?;
        }
        // One key has one text.
        if key.to_text() == text {
            Ok(key)
        } else {
            Err(wrong(0, HEAD))
        }
    }

    fn list_line(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("tool ") {
            let (name, version) = rest.split_once(' ')?;
            self.tools.0.insert(unquote(name)?, unquote(version)?);
        } else {
            self.flags.push(unquote(line.strip_prefix("flag ")?)?);
        }
        Some(())
    }

    /// The digest of the canonical text: the name of the key.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.to_text().as_bytes())
    }
}

impl fmt::Display for BuildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digest().fmt(f)
    }
}

fn wrong(line: usize, found: &str) -> BuildError {
    BuildError::Key {
        line: line + 1,
        found: found.chars().take(80).collect(),
    }
}

/// A text as a JSON string with blanks escaped: no line breaks, no blanks, one way to write it.
fn quote(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a text is always JSON");
    json.replace(' ', "\\u0020")
}

fn unquote(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = BuildKey> {
        let tree = "[0-9a-f]{40}|[0-9a-f]{64}";
        let arch = prop::sample::select(Arch::ALL.to_vec());
        let tools = prop::collection::btree_map(".{0,12}", ".{0,20}", 0..4);
        let flags = prop::collection::vec(".{0,20}", 0..4);
        (tree, any::<[u8; 4]>(), arch, tools, flags).prop_map(
            |(tree, config, arch, tools, flags): (_, _, _, BTreeMap<String, String>, _)| BuildKey {
                tree: ObjectId::parse(&tree).expect("an id"),
                config: Digest::of(&config),
                arch,
                tools: ToolVersions(tools),
                flags,
            },
        )
    }

    proptest! {
        #[test]
        fn text_and_key_are_the_same(key in keys()) {
            let text = key.to_text();
            prop_assert_eq!(BuildKey::parse(&text).expect("parses"), key.clone());
            prop_assert!(text.ends_with('\n'));
        }

        #[test]
        fn different_keys_have_different_names(one in keys(), two in keys()) {
            prop_assert_eq!(one.digest() == two.digest(), one == two);
        }

        #[test]
        fn every_part_changes_the_name(key in keys(), flag in ".{0,20}") {
            let name = key.digest();
            let with = |change: &dyn Fn(&mut BuildKey)| {
                let mut other = key.clone();
                change(&mut other);
                other.digest()
            };
            prop_assert_ne!(with(&|k| k.flags.push(flag.clone())), name);
            prop_assert_ne!(with(&|k| k.config = Digest::of(b"another")), name);
            prop_assert_ne!(
                with(&|k| { k.tools.0.insert("another tool of that name".into(), String::new()); }),
                name
            );
            let other = if key.arch == Arch::X86_64 { Arch::Riscv64 } else { Arch::X86_64 };
            prop_assert_ne!(with(&|k| k.arch = other), name);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", key in keys(), cut in 0_usize..400) {
            let _ = BuildKey::parse(&text);
            let whole = key.to_text();
            let part: String = whole.chars().take(cut).collect();
            if part != whole {
                // A cut text is either no key or a shorter one that says so.
                if let Ok(other) = BuildKey::parse(&part) {
                    prop_assert_ne!(other, key);
                }
            }
        }
    }
}
