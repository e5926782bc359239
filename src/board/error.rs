//! Reasons why a TOML file can't be used.

use std::io;

use super::{Document, Kind, document::line_at};

/// A reason why a TOML file of some [`Kind`] can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file can't be read.
    #[error("{} {file} can't be read", kind.name)]
    Read {
        /// What it should be.
        kind: Kind,
        /// The file.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is of a version that this build does not read.
    #[error(
        "{file}:{line}: {}; this build of socbfs reads schema {}",
        found.map_or_else(|| format!("the {} has no schema", kind.short), |found| format!("the {} has schema {found}", kind.short)),
        kind.schema
    )]
    Version {
        /// What it should be.
        kind: Kind,
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The version; none where the key is absent.
        found: Option<i64>,
    },
    /// The file is not TOML, or has keys or values that it can't have.
    #[error("{file}:{line}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong, with the key, and the nearest that would be right.
        message: String,
    },
    /// A value that fails a check.
    #[error("{file}:{line}: {key}: {reason}")]
    Check {
        /// The file.
        file: String,
        /// Line, from 1: that of the key, or where the key is absent that of its table.
        line: usize,
        /// The key.
        key: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

impl DocumentError {
    pub(super) fn parse(text: &str, file: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Self::Parse { file: file.to_owned(), line, message: with_nearest(&error.message().trim().replace('\n', "; ")) }
    }

    /// The same of values, whose error may be about a key of the table that it points at.
    pub(super) fn value(document: &Document<'_>, text: &str, file: &str, error: &toml::de::Error) -> Self {
        match Self::parse(text, file, error) {
            Self::Parse { file, line, message } => {
                let line = document.line_of_fault(line, &message);
                // Serde says of a value what it is, not whose it is.
                let key = error.span().filter(|_| message.starts_with("invalid ")).and_then(|span| document.key_at(span.start));
                let message = key.map_or(message.clone(), |key| format!("{key}: {message}"));
                Self::Parse { file, line, message }
            }
            other => other,
        }
    }
}

/// An error of the parser that keeps the text as it is.
#[cfg(feature = "cli")]
pub(super) fn parse_error(text: &str, file: &str, error: &toml_edit::TomlError) -> DocumentError {
    let line = error.span().map_or(1, |span| line_at(text, span.start));
    DocumentError::Parse { file: file.to_owned(), line, message: error.message().trim().replace('\n', "; ") }
}

/// Serde says "unknown field `a`, expected one of `b`, `c`": a short message names only the nearest key instead of a long list.
fn with_nearest(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return message.to_owned();
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let Some(given) = names.next() else { return message.to_owned() };
    let known: Vec<&str> = names.collect();
    let what = if message.starts_with("unknown field") { "unknown key" } else { "unknown value" };
    match nearest(given, known.iter().copied()) {
        Some(nearest) => format!("{what} `{given}`; did you mean `{nearest}`?"),
        None => format!("{what} `{given}`; known here: {}", known.join(", ")),
    }
}

/// The one of `known` that `given` may be a misspelling of.
#[cfg(feature = "cli")]
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::normalized_damerau_levenshtein(given, name), name))
        .filter(|(similarity, _)| *similarity >= 0.6)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// The one of `known` that equals `given` but for upper and lower case. (Only the command has the crate that finds similar words.)
#[cfg(not(feature = "cli"))]
pub(super) fn nearest<'a>(given: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.find(|name| name.eq_ignore_ascii_case(given))
}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_what_is_alike() {
        let nearest = |given| nearest(given, ["threads", "cpus", "clusters"].into_iter());
        assert_eq!(nearest("thread"), Some("threads"));
        assert_eq!(nearest("cluster"), Some("clusters"));
        assert_eq!(nearest("colour"), None);
    }

    #[test]
    fn messages_of_other_kinds_stay() {
        assert_eq!(with_nearest("missing field `name`"), "missing field `name`");
        assert_eq!(with_nearest("unknown field `x`, there are no fields"), "unknown key `x`; known here: ");
        assert_eq!(with_nearest("unknown field `thread`, expected `threads` or `cpus`"), "unknown key `thread`; did you mean `threads`?");
    }
}
