//! Reasons why a TOML file can't be used.

use std::io;

use super::{Document, Kind};
use socbfs::words::{self, line_at};

/// A reason why a TOML file of some [`Kind`] can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file can't be read.
    #[error("{} {file} can't be read", kind.name)]
    Read {
        /// The kind of file that it should be.
        kind: Kind,
        /// The file.
        file: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file has a version that this build does not read.
    #[error(
        "{file}:{line}: {}; this build of socbfs reads schema {}",
        found.map_or_else(|| format!("the {} has no schema", kind.short), |found| format!("the {} has schema {found}", kind.short)),
        kind.schema
    )]
    Version {
        /// The kind of file that it should be.
        kind: Kind,
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The version of the file; `None` if the key is absent.
        found: Option<i64>,
    },
    /// The file is not TOML, or has unknown keys or invalid values.
    #[error("{file}:{line}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The error, with the key and the nearest correct name.
        message: String,
    },
    /// A value that fails a check.
    #[error("{file}:{line}: {key}: {reason}")]
    Check {
        /// The file.
        file: String,
        /// Line, from 1, of the key or, if the key is absent, of its table.
        line: usize,
        /// The key.
        key: String,
        /// The error, and what would be correct.
        reason: String,
    },
}

impl DocumentError {
    /// The error for a `text` that is not TOML, or has values that are not those of the type.
    pub fn parse(text: &str, file: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map_or(1, |at| line_at(text, at.start));
        Self::Parse { file: file.to_owned(), line, message: in_words_of_toml(&with_nearest(&error.message().trim().replace('\n', "; "))) }
    }

    /// As [`parse`](Self::parse), for an error about values. Such an error may point at a table but be about a key of it.
    pub(super) fn value(document: &Document<'_>, text: &str, file: &str, error: &toml::de::Error) -> Self {
        match Self::parse(text, file, error) {
            Self::Parse { file, line, message } => {
                let line = document.line_of_fault(line, &message);
                // Serde's message about an invalid value does not name the key.
                let at = error.span().filter(|_| message.starts_with("invalid "));
                let key = at.and_then(|at| document.key_at(at.start));
                let message = key.map_or(message.clone(), |key| format!("{key}: {message}"));
                Self::Parse { file, line, message }
            }
            other => other,
        }
    }
}

/// Replaces the names of Rust's types in Serde's "invalid type: a, expected b" and "invalid value: a, expected b".
fn in_words_of_toml(message: &str) -> String {
    let Some((fault, expected)) = message.rsplit_once(", expected ").filter(|_| message.starts_with("invalid ")) else {
        return message.to_owned();
    };
    let fault = fault.replace("type: sequence", "type: array").replace("type: map", "type: table");
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "a table",
        name if name.starts_with("struct ") => "a table",
        other => other,
    };
    format!("{fault}, expected {expected}")
}

/// Replaces Serde's "unknown field `a`, expected one of `b`, `c`" by a message that names only the nearest key.
fn with_nearest(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return message.to_owned();
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let Some(given) = names.next() else { return message.to_owned() };
    let known: Vec<&str> = names.collect();
    let what = if message.starts_with("unknown field") { "unknown key" } else { "unknown value" };
    match words::nearest(given, known.iter().copied()) {
        Some(nearest) => format!("{what} `{given}`; did you mean `{nearest}`?"),
        None => format!("{what} `{given}`; known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_types_are_those_of_toml() {
        for (serde, toml) in [
            ("invalid type: string \"two\", expected usize", "invalid type: string \"two\", expected a whole number of 0 or more"),
            ("invalid value: integer `-1`, expected u32", "invalid value: integer `-1`, expected a whole number of 0 or more"),
            ("invalid type: map, expected a sequence", "invalid type: table, expected an array"),
            ("invalid type: string \"a, expected b\", expected f64", "invalid type: string \"a, expected b\", expected a number"),
            ("invalid type: integer `1`, expected struct Cpu", "invalid type: integer `1`, expected a table"),
            ("missing field `x`, expected u32", "missing field `x`, expected u32"),
        ] {
            assert_eq!(in_words_of_toml(serde), toml);
        }
    }

    #[test]
    fn only_messages_about_unknown_fields_are_rewritten() {
        assert_eq!(with_nearest("missing field `name`"), "missing field `name`");
        assert_eq!(with_nearest("unknown field `x`, there are no fields"), "unknown key `x`; known here: ");
        assert_eq!(with_nearest("unknown field `thread`, expected `threads` or `cpus`"), "unknown key `thread`; did you mean `threads`?");
    }
}
