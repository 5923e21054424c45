//! Which kernels of a series are compared: `base,all`, `each`, `base,+3,v6.1`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use klab_model::VariantName;

use crate::display::{acts, defuse};
use crate::series::Series;

/// Items of one comparison; a table of more columns is read by nobody.
const MAX_ITEMS: usize = 64;

/// One item of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// `base`: no patch.
    Base,
    /// `all`: every patch.
    All,
    /// `each`: the base and every step to the whole series.
    Each,
    /// `+3`: patches 1 to 3.
    First(u32),
    /// A git ref or an added kernel, maybe with the name of its column.
    Reference {
        name: Option<VariantName>,
        reference: String,
    },
}

/// A list of variants as people write it, separated by commas.
///
/// `base` is the series' base, `+3` the base with patches 1 to 3, `all` the base with all
/// of them, `each` every step of it. Anything else is a git ref or the name of an added
/// kernel, which others resolve; `NAME=REF` also names its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantsSpec {
    items: Vec<Item>,
}

/// Why a specification was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariantsError {
    /// Nothing between two commas, or nothing at all.
    #[error("variants \"{}\": expected a list such as base,all or each or base,+3,v6.1", defuse(.text))]
    Empty {
        /// The whole text.
        text: String,
    },
    /// Too many.
    #[error("{count} variants: expected at most {MAX_ITEMS}")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// `+0`, `+x`.
    #[error("variant \"{}\": expected + and a number from 1, such as +3, or base for no patch", defuse(.text))]
    Number {
        /// The item.
        text: String,
    },
    /// More patches than there are.
    #[error("variant +{number}: the series has {}", patches(*.total))]
    Beyond {
        /// The number.
        number: u32,
        /// Patches of the series.
        total: u32,
    },
    /// What no git ref can be.
    #[error(
        "variant \"{}\": expected base, all, each, +NUMBER, a git ref or the name of a kernel",
        defuse(.text)
    )]
    Reference {
        /// The item.
        text: String,
    },
    /// A name that no column can have.
    #[error("variant \"{}\": expected a name of letters, digits, '+', '.', '_' and '-' before the '='", defuse(.text))]
    Name {
        /// The item.
        text: String,
    },
    /// A reference that cannot be the head of a column.
    #[error(
        "variant \"{}\" makes no name for a table (at most 63 characters, none of them '-' at the \
         front): give it one, as in NAME=REF", defuse(.text)
    )]
    NoName {
        /// The item.
        text: String,
    },
    /// The same kernel twice.
    #[error("variants {first} and {second} are the same kernel: leave one out")]
    Same {
        /// The first one.
        first: String,
        /// The second one.
        second: String,
    },
    /// Two kernels of one name.
    #[error(
        "variants \"{}\" and \"{}\" would both be named {name}: give one another name, as in \
         NAME=REF", defuse(.first), defuse(.second)
    )]
    Clash {
        /// The name.
        name: VariantName,
        /// The first one.
        first: String,
        /// The second one.
        second: String,
    },
}

fn patches(total: u32) -> String {
    match total {
        1 => "1 patch".to_owned(),
        total => format!("{total} patches"),
    }
}

/// Whose patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The series.
    Own,
    /// The series that it is compared against.
    Other,
}

/// What a variant is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariantKernel {
    /// The base of the series, nothing else.
    Base,
    /// The base of the series with the first patches of a series; at least one.
    Patches {
        /// Of which series.
        side: Side,
        /// How many patches.
        count: u32,
    },
    /// A git ref or an added kernel.
    Reference(String),
}

/// One kernel of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The head of its column; no two variants of a comparison have the same.
    pub name: VariantName,
    /// What it is made of.
    pub kernel: VariantKernel,
}

impl Default for VariantsSpec {
    /// `base,all`.
    fn default() -> Self {
        Self {
            items: vec![Item::Base, Item::All],
        }
    }
}

impl FromStr for VariantsSpec {
    type Err = VariantsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let items: Vec<&str> = text.split(',').map(str::trim).collect();
        if items.iter().any(|item| item.is_empty()) {
            let text = text.to_owned();
            return Err(VariantsError::Empty { text });
        }
        if items.len() > MAX_ITEMS {
            return Err(VariantsError::TooMany { count: items.len() });
        }
        let items = items
            .into_iter()
            .map(Item::parse)
            .collect::<Result<_, _>>()?;
        Ok(Self { items })
    }
}

impl fmt::Display for VariantsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

impl Item {
    fn parse(text: &str) -> Result<Self, VariantsError> {
        let own = || text.to_owned();
        match text {
            "base" => return Ok(Self::Base),
            "all" => return Ok(Self::All),
            "each" => return Ok(Self::Each),
            _ => {}
        }
        if let Some(number) = text.strip_prefix('+') {
            let number = number.strip_prefix("1..").unwrap_or(number);
            let digits = number.bytes().all(|byte| byte.is_ascii_digit());
            let number = number.parse().ok().filter(|number| digits && *number > 0);
            return number
                .map(Self::First)
                .ok_or(VariantsError::Number { text: own() });
        }
        let (name, reference) = match text.split_once('=') {
            Some((name, reference)) => {
                let parsed = VariantName::parse(name);
                (
                    Some(parsed.map_err(|_| VariantsError::Name { text: own() })?),
                    reference,
                )
            }
            None => (None, text),
        };
        let wrong = |c: char| c.is_whitespace() || acts(c) || ":?*[\\".contains(c);
        let starts = reference.starts_with(['-', '.', '/', '+']);
        if reference.is_empty() || starts || reference.contains("..") || reference.contains(wrong) {
            return Err(VariantsError::Reference { text: own() });
        }
        let reference = reference.to_owned();
        Ok(Self::Reference { name, reference })
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::All => f.write_str("all"),
            Self::Each => f.write_str("each"),
            Self::First(number) => write!(f, "+{number}"),
            Self::Reference {
                name: Some(name),
                reference,
            } => write!(f, "{name}={reference}"),
            Self::Reference {
                name: None,
                reference,
            } => f.write_str(reference),
        }
    }
}

impl VariantsSpec {
    /// The variants for a series, in the order of the specification. The whole of `against`,
    /// another series on the same base, comes before the first patches of the series.
    ///
    /// # Errors
    /// [`VariantsError`] if an item does not fit the series, or two have one kernel or one
    /// name.
    pub fn expand(
        &self,
        series: &Series,
        against: Option<&Series>,
    ) -> Result<Vec<Variant>, VariantsError> {
        let mut list = List {
            against,
            ..List::default()
        };
        for item in &self.items {
            list.item(item, series)?;
        }
        list.other(series)?;
        Ok(list.variants)
    }
}

/// The variants so far, and the items they came from.
#[derive(Default)]
struct List<'a> {
    /// Until it was added.
    against: Option<&'a Series>,
    variants: Vec<Variant>,
    kernels: BTreeMap<VariantKernel, String>,
    names: BTreeMap<VariantName, String>,
}

impl List<'_> {
    fn item(&mut self, item: &Item, series: &Series) -> Result<(), VariantsError> {
        if matches!(item, Item::All | Item::First(_)) {
            self.other(series)?;
        }
        let total = u32::try_from(series.patches.len()).unwrap_or(u32::MAX);
        let own = |count| VariantKernel::Patches {
            side: Side::Own,
            count,
        };
        let told = item.to_string();
        match item {
            Item::Base => self.add("base", VariantKernel::Base, &told),
            Item::All => self.add(&format!("v{}", series.revision), own(total), &told),
            Item::First(number) if *number > total => Err(VariantsError::Beyond {
                number: *number,
                total,
            }),
            Item::First(number) => self.add(&steps(*number), own(*number), &told),
            Item::Each => {
                self.add("base", VariantKernel::Base, &told)?;
                if total as usize >= MAX_ITEMS {
                    let count = total as usize + 1;
                    return Err(VariantsError::TooMany { count });
                }
                self.other(series)?;
                (1..=total).try_for_each(|number| self.add(&steps(number), own(number), &told))
            }
            Item::Reference { name, reference } => {
                let name = name
                    .as_ref()
                    .map_or_else(|| column(reference), ToString::to_string);
                self.add(&name, VariantKernel::Reference(reference.clone()), &told)
            }
        }
    }

    /// The whole of the series that is compared against, once.
    fn other(&mut self, series: &Series) -> Result<(), VariantsError> {
        let Some(other) = self.against.take() else {
            return Ok(());
        };
        let kernel = VariantKernel::Patches {
            side: Side::Other,
            count: u32::try_from(other.patches.len()).unwrap_or(u32::MAX),
        };
        let name = match other.revision == series.revision {
            // Two ways to do the same, both v1.
            true => format!("other-v{}", other.revision),
            false => format!("v{}", other.revision),
        };
        self.add(&name, kernel, "the other series")
    }

    fn add(&mut self, name: &str, kernel: VariantKernel, told: &str) -> Result<(), VariantsError> {
        let second = told.to_owned();
        if let Some(first) = self.kernels.get(&kernel) {
            let first = first.clone();
            return Err(VariantsError::Same { first, second });
        }
        let Ok(name) = VariantName::parse(name) else {
            return Err(VariantsError::NoName { text: second });
        };
        if let Some(first) = self.names.get(&name) {
            let first = first.clone();
            return Err(VariantsError::Clash {
                name,
                first,
                second,
            });
        }
        self.kernels.insert(kernel.clone(), second.clone());
        self.names.insert(name.clone(), second);
        self.variants.push(Variant { name, kernel });
        Ok(())
    }
}

/// `+1`, `+1..2`.
fn steps(number: u32) -> String {
    match number {
        1 => "+1".to_owned(),
        number => format!("+1..{number}"),
    }
}

/// A git ref as the head of a column: `origin/master` is `origin-master`.
fn column(reference: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+._-".contains(c);
    reference
        .chars()
        .map(|c| if legal(c) { c } else { '-' })
        .collect()
}
