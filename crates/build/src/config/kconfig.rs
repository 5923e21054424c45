//! What a tree's Kconfig files say about a symbol: enough to explain why a setting did not
//! take. `make` alone decides about values.
//!
//! Files are read one by one. A condition that stands around a `source` line in another file
//! is not seen; the explanation is then less exact, never the result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{BuildError, files};

/// Folders without symbols of the kernel.
const LEFT_OUT: [&str; 4] = [".git", "Documentation", "tools", "scripts/kconfig"];
/// Longest Kconfig file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// One place that defines a symbol.
#[derive(Debug, Clone, Default)]
pub(super) struct Definition {
    /// All of these must be met.
    pub(super) conditions: Vec<String>,
    /// Whether a person may set it.
    pub(super) prompt: bool,
    /// The choice that it is a member of, by number.
    pub(super) choice: Option<usize>,
}

/// The definitions of a tree for one architecture.
#[derive(Debug, Default)]
pub(super) struct Kconfig {
    definitions: BTreeMap<String, Vec<Definition>>,
    /// For a symbol, those that select it.
    selected_by: BTreeMap<String, Vec<String>>,
    choices: usize,
}

impl Kconfig {
    /// Reads every Kconfig file of the tree but those of other architectures.
    pub(super) fn read(tree: &Path, arch_folder: &str) -> Result<Self, BuildError> {
        let mut paths = Vec::new();
        files::walk_some(
            tree,
            &|folder| belongs(tree, folder, arch_folder),
            &mut |entry| {
                let name = entry.file_name();
                if name.to_string_lossy().starts_with("Kconfig") && entry.file_type()?.is_file() {
                    paths.push(entry.path());
                }
                Ok(())
            },
        )?;
        paths.sort();
        let mut kconfig = Self::default();
        for path in paths {
            let small = fs::metadata(&path).is_ok_and(|meta| meta.len() <= LONGEST);
            if small && let Ok(bytes) = fs::read(&path) {
                kconfig.add(&String::from_utf8_lossy(&bytes));
            }
        }
        Ok(kconfig)
    }

    pub(super) fn definitions(&self, symbol: &str) -> &[Definition] {
        self.definitions.get(symbol).map_or(&[], Vec::as_slice)
    }

    pub(super) fn selected_by(&self, symbol: &str) -> &[String] {
        self.selected_by.get(symbol).map_or(&[], Vec::as_slice)
    }

    /// The other members of the choices that a symbol is a member of.
    pub(super) fn rivals(&self, symbol: &str) -> Vec<&str> {
        let own: Vec<usize> = self
            .definitions(symbol)
            .iter()
            .filter_map(|d| d.choice)
            .collect();
        let rival = |(name, places): &(&String, &Vec<Definition>)| {
            name.as_str() != symbol
                && places
                    .iter()
                    .any(|d| d.choice.is_some_and(|choice| own.contains(&choice)))
        };
        let all = self.definitions.iter().filter(rival);
        all.map(|(name, _)| name.as_str()).collect()
    }

    /// Adds the text of one file.
    pub(super) fn add(&mut self, text: &str) {
        let joined = text.replace("\\\n", " ");
        let mut reader = Reader {
            kconfig: self,
            around: Vec::new(),
            entry: Entry::None,
            help: None,
        };
        for line in joined.lines() {
            reader.line(line);
        }
    }
}

fn belongs(tree: &Path, folder: &Path, arch_folder: &str) -> bool {
    let Ok(relative) = folder.strip_prefix(tree) else {
        return false;
    };
    if LEFT_OUT.iter().any(|out| relative == Path::new(out)) {
        return false;
    }
    let mut names = relative.iter().filter_map(|name| name.to_str());
    match (names.next(), names.next()) {
        (Some("arch"), Some(arch)) => arch == arch_folder,
        _ => true,
    }
}

/// A block that is open around the lines that are read.
enum Block {
    If(String),
    /// A menu with its conditions.
    Menu(Vec<String>),
    /// A choice with its number and conditions.
    Choice(usize, Vec<String>),
}

/// What the lines that are read belong to.
enum Entry {
    None,
    /// The symbol whose last definition is being read.
    Symbol(String),
    /// The innermost menu or choice.
    Block,
}

struct Reader<'a> {
    kconfig: &'a mut Kconfig,
    around: Vec<Block>,
    entry: Entry,
    /// Inside a help text: the indentation of its first line, once that is known.
    help: Option<Option<usize>>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        if text.is_empty() || self.is_help(line) || text.starts_with('#') {
            return;
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = without_comment(rest).trim();
        match word {
            "config" | "menuconfig" => self.symbol(rest),
            "if" => self.open(Block::If(rest.to_owned()), Entry::None),
            "menu" => self.open(Block::Menu(Vec::new()), Entry::Block),
            "choice" => {
                self.kconfig.choices += 1;
                let number = self.kconfig.choices;
                self.open(Block::Choice(number, Vec::new()), Entry::Block);
            }
            "endif" | "endmenu" | "endchoice" => {
                self.around.pop();
                self.entry = Entry::None;
            }
            "source" | "comment" | "mainmenu" => self.entry = Entry::None,
            "help" | "---help---" => self.help = Some(None),
            _ => self.attribute(word, rest),
        }
    }

    /// Whether a line belongs to a help text, which ends where the indentation does.
    fn is_help(&mut self, line: &str) -> bool {
        let Some(start) = self.help else { return false };
        let columns = line
            .chars()
            .take_while(|c| c.is_whitespace())
            .fold(0, |n, c| if c == '\t' { n / 8 * 8 + 8 } else { n + 1 });
        let inside = columns > 0 && start.is_none_or(|start| columns >= start);
        self.help = inside.then_some(start.or(Some(columns)));
        inside
    }

    fn open(&mut self, block: Block, entry: Entry) {
        self.around.push(block);
        self.entry = entry;
    }

    fn symbol(&mut self, name: &str) {
        let mut definition = Definition::default();
        for block in &self.around {
            match block {
                Block::If(condition) => definition.conditions.push(condition.clone()),
                Block::Menu(conditions) => definition.conditions.extend(conditions.iter().cloned()),
                Block::Choice(number, conditions) => {
                    definition.choice = Some(*number);
                    definition.conditions.extend(conditions.iter().cloned());
                }
            }
        }
        let places = self.kconfig.definitions.entry(name.to_owned()).or_default();
        places.push(definition);
        self.entry = Entry::Symbol(name.to_owned());
    }

    fn attribute(&mut self, word: &str, rest: &str) {
        match &self.entry {
            Entry::Symbol(name) => {
                let name = name.clone();
                self.symbol_attribute(&name, word, rest);
            }
            Entry::Block => {
                let depends = (word == "depends" || word == "visible")
                    .then(|| rest.strip_prefix("on").or_else(|| rest.strip_prefix("if")))
                    .flatten();
                if let Some(condition) = depends
                    && let Some(Block::Menu(own) | Block::Choice(_, own)) = self.around.last_mut()
                {
                    own.push(condition.trim().to_owned());
                }
            }
            Entry::None => {}
        }
    }

    fn symbol_attribute(&mut self, name: &str, word: &str, rest: &str) {
        if word == "select" {
            let selected = rest.split_whitespace().next().unwrap_or_default();
            let by = self
                .kconfig
                .selected_by
                .entry(selected.to_owned())
                .or_default();
            by.push(name.to_owned());
            return;
        }
        let places = self.kconfig.definitions.get_mut(name);
        let Some(definition) = places.and_then(|places| places.last_mut()) else {
            return;
        };
        match word {
            "depends" => {
                if let Some(condition) = rest.strip_prefix("on") {
                    definition.conditions.push(condition.trim().to_owned());
                }
            }
            "bool" | "tristate" | "string" | "int" | "hex" | "prompt" if rest.starts_with('"') => {
                definition.prompt = true;
                let after = rest[1..].split_once('"').map_or("", |(_, after)| after);
                if let Some(condition) = after.trim().strip_prefix("if ") {
                    definition.conditions.push(condition.trim().to_owned());
                }
            }
            _ => {}
        }
    }
}

/// A line without a comment at its end. A `#` in quotes is none.
fn without_comment(text: &str) -> &str {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return &text[..at],
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
menu "Things"
	depends on NET

config PLAIN
	bool "plain" if EXPERT
	depends on A && \
		B # why
	select HELPER
	help
	  config NOT_A_SYMBOL

	  More.
	depends on C

config HELPER
	def_bool n

endmenu

if LAST
choice
	prompt "one"
	depends on ONE
config FIRST
	bool "first"
config SECOND
	bool "second"
endchoice
endif
config AFTER
	tristate
	prompt "after"
"#;

    fn conditions(kconfig: &Kconfig, symbol: &str) -> Vec<String> {
        kconfig.definitions(symbol)[0].conditions.clone()
    }

    #[test]
    fn conditions_prompts_choices_and_selects_are_read() {
        let mut kconfig = Kconfig::default();
        kconfig.add(TEXT);
        assert_eq!(
            conditions(&kconfig, "PLAIN"),
            ["NET", "EXPERT", "A &&  \t\tB", "C"]
        );
        assert!(kconfig.definitions("PLAIN")[0].prompt);
        assert!(!kconfig.definitions("HELPER")[0].prompt);
        assert_eq!(kconfig.selected_by("HELPER"), ["PLAIN"]);
        assert_eq!(conditions(&kconfig, "FIRST"), ["LAST", "ONE"]);
        assert_eq!(kconfig.rivals("FIRST"), ["SECOND"]);
        assert!(conditions(&kconfig, "AFTER").is_empty());
        assert!(kconfig.definitions("AFTER")[0].prompt);
        assert!(kconfig.rivals("AFTER").is_empty());
        assert!(kconfig.definitions("NOT_A_SYMBOL").is_empty());
    }

    #[test]
    fn other_architectures_are_left_out() {
        let tree = Path::new("/t");
        for (folder, belongs_to) in [
            ("/t/arch/x86/kvm", true),
            ("/t/arch/arm64", false),
            ("/t/arch", true),
            ("/t/mm", true),
            ("/t/tools", false),
            ("/t/drivers/tools", true),
        ] {
            assert_eq!(
                belongs(tree, Path::new(folder), "x86"),
                belongs_to,
                "{folder}"
            );
        }
    }
}
