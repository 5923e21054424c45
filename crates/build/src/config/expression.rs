//! Kconfig's conditions: `A && (B || !C) && D = "x"`, with the values y, m and n.
//!
//! The rules are those of Documentation/kbuild/kconfig-language.rst: `&&` is the smaller, `||`
//! the larger, `!` turns n into y, and a comparison is y or n.

use super::dotconfig::{DotConfig, Value};

/// How deep parentheses may be nested: input is not trusted.
const DEEPEST: usize = 50;

/// Whether a condition is met, at least as a module. `None` if it is not understood.
pub(super) fn is_met(text: &str, config: &DotConfig) -> Option<bool> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        config,
        depth: 0,
    };
    let value = parser.or()?;
    parser.tokens.is_empty().then_some(value > 0)
}

/// The symbols of a condition, each once.
pub(super) fn symbols(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for token in tokens(text).unwrap_or_default() {
        if let Token::Word(word) = token
            && !matches!(word.as_str(), "y" | "m" | "n")
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && !names.contains(&word)
        {
            names.push(word);
        }
    }
    names
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    And,
    Or,
    Not,
    Equal,
    Unequal,
    Open,
    Close,
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '&' if rest.starts_with("&&") => (Token::And, 2),
            '|' if rest.starts_with("||") => (Token::Or, 2),
            '!' if rest.starts_with("!=") => (Token::Unequal, 2),
            '!' => (Token::Not, 1),
            '=' => (Token::Equal, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '"' => {
                let end = rest[1..].find('"')?;
                (Token::Quoted(rest[1..=end].to_owned()), end + 2)
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len());
                (Token::Word(rest[..end].to_owned()), end)
            }
            // `$(cc-option,...)` and comparisons of sizes: nothing that explains a setting.
            _ => return None,
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Some(tokens)
}

struct Parser<'a> {
    tokens: &'a [Token],
    config: &'a DotConfig,
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, token: &Token) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    fn or(&mut self) -> Option<u8> {
        let mut value = self.and()?;
        while self.take(&Token::Or) {
            value = value.max(self.and()?);
        }
        Some(value)
    }

    fn and(&mut self) -> Option<u8> {
        let mut value = self.not()?;
        while self.take(&Token::And) {
            value = value.min(self.not()?);
        }
        Some(value)
    }

    fn not(&mut self) -> Option<u8> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = if self.take(&Token::Not) {
            2 - self.not()?
        } else if self.take(&Token::Open) {
            let value = self.or()?;
            self.take(&Token::Close).then_some(value)?
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Some(value)
    }

    fn comparison(&mut self) -> Option<u8> {
        let left = self.text()?;
        let bool = |yes: bool| if yes { 2 } else { 0 };
        if self.take(&Token::Equal) {
            return Some(bool(left == self.text()?));
        }
        if self.take(&Token::Unequal) {
            return Some(bool(left != self.text()?));
        }
        Some(match left.as_str() {
            "y" => 2,
            "m" => 1,
            _ => 0,
        })
    }

    /// The value of one symbol or literal, as text.
    fn text(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        match first {
            Token::Quoted(text) => Some(text.clone()),
            Token::Word(word) if matches!(word.as_str(), "y" | "m" | "n") => Some(word.clone()),
            Token::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                Some(word.clone())
            }
            Token::Word(word) => Some(match self.config.get(word) {
                Value::Text(text) => text.trim_matches('"').to_owned(),
                other => other.to_string(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn conditions_are_met_as_kconfig_has_it() {
        let config = DotConfig::parse("CONFIG_A=y\nCONFIG_M=m\nCONFIG_N=5\nCONFIG_S=\"x y\"\n");
        for (text, met) in [
            ("A", true),
            ("M", true),
            ("B", false),
            ("!B && A", true),
            ("A && B || M", true),
            ("A && (B || !M)", true),
            ("!(A && B) && A", true),
            ("A=y && M!=y", true),
            ("A = n", false),
            ("N=5", true),
            ("S=\"x y\"", true),
            ("B=\"\" || n", false),
            ("y", true),
        ] {
            assert_eq!(is_met(text, &config), Some(met), "{text}");
        }
        for strange in ["", "A &&", "(A", "A B", "$(cc-option,-x)", "N > 4", "\"x"] {
            assert_eq!(is_met(strange, &config), None, "{strange}");
        }
        assert_eq!(symbols("A && !B || A=y && C!=5"), ["A", "B", "C"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[AB()!&|= \"ymn]{0,40}", any in ".{0,40}") {
            let config = DotConfig::parse("CONFIG_A=y\n");
            let _ = (is_met(&text, &config), is_met(&any, &config), symbols(&any));
            let deep = "(".repeat(100_000);
            let nots = "!".repeat(100_000);
            prop_assert_eq!(is_met(&deep, &config).or(is_met(&nots, &config)), None);
        }
    }
}
