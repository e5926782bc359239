//! Patterns of names, in which `*` stands for any text.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A name of a system or driver, in which `*` stands for any text. Case is ignored, and several blanks match one, since drivers are not
/// consistent in either.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

/// A pattern that would match everything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {0:?} matches everything; write the part of the name that distinguishes it, with * for the rest")]
pub struct PatternError(String);

impl Pattern {
    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Number of characters that are not `*`. The more there are, the more specific a match is.
    pub fn literal(&self) -> usize {
        self.0.chars().filter(|&c| c != '*').count()
    }

    /// Whether the whole of `name` matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (normal(&self.0), normal(name));
        let mut parts = pattern.split('*');
        // `split` returns at least one part.
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            // The first match is enough, since it leaves most text for the parts that follow.
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        true
    }
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.chars().all(|c| c == '*' || c.is_whitespace()) { Err(PatternError(text.to_owned())) } else { Ok(Self(text.to_owned())) }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let matches = |pattern: &str, name: &str| pattern.parse::<Pattern>().unwrap().matches(name);
        for (pattern, name) in [
            ("Mali-T628", "Mali-T628"),
            ("mali-t628", "Mali-T628"),
            ("Mali-T6*", "Mali-T628"),
            ("*7850K*", "AMD A10-7850K Radeon R7, 12 Compute Cores 4C+8G"),
            ("*i7-4790 *", "Intel(R) Core(TM) i7-4790 CPU @ 3.60GHz"),
            ("QUALCOMM*Adreno*", "QUALCOMM  Adreno(TM)"),
            ("a*b*b", "abb"),
            ("*a*", "a"),
            ("*-0040", "12-0040"),
            ("package-*", "package-1-die-0"),
            ("AMD Ryzen 5 2400G*", " AMD  Ryzen 5 2400G with Radeon Vega Graphics "),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("Mali-T628", "Mali-T6288"),
            ("Mali-T628", "xMali-T628"),
            ("*i7-4790 *", "Intel(R) Core(TM) i7-4790K CPU @ 4.00GHz"),
            ("VDD", "VDD_IN"),
            ("a*b*b", "ab"),
            ("*a*b", "ba"),
            ("ab*ba", "aba"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_that_match_everything_are_refused() {
        for text in ["", "*", " ** "] {
            assert_eq!(text.parse::<Pattern>(), Err(PatternError(text.to_owned())));
        }
        assert_eq!("*x y*".parse::<Pattern>().unwrap().literal(), 3);
    }
}
