//! Board profiles: what is known of a machine, as TOML files that are compiled in or loaded from a path.
//!
//! A profile sets defaults. The order of precedence is flag, environment variable, board file, built-in default.
//! This room does not know the policies: the type that `[policy]` is read as is a parameter.

mod cpus;

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use cpus::{CpuList, CpuListError};

/// The version of the profile format that this build reads.
pub const SCHEMA: u32 = 1;

/// Most threads a profile or a flag may ask for.
pub const MOST_THREADS: usize = 4096;

/// The profiles compiled in, by name.
const SHIPPED: &[(&str, &str)] = &[("generic", include_str!("../../boards/generic.toml"))];

/// A board profile; `P` is the type of its policy, which checks its own values as it is deserialised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board<P> {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// Name of the board.
    pub name: String,
    /// How to search on it.
    #[serde(default)]
    pub search: SearchDefaults,
    /// Who decides the direction of a level, with thresholds.
    pub policy: Option<P>,
}

/// The table `[search]` of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchDefaults {
    /// Threads (0: one for every CPU the process may run on).
    pub threads: Option<usize>,
    /// CPUs the threads are bound to, one each in turn.
    pub cpus: Option<CpuList>,
}

/// Why a board profile can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// The file can't be read.
    #[error("board profile {file} can't be read")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is not TOML, or has keys or values that a profile can't have.
    #[error("{file}:{line}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong, with the key.
        message: String,
    },
    /// A value that fails a check.
    #[error("{file}: {key}: {reason}")]
    Check {
        /// The file.
        file: String,
        /// The key.
        key: &'static str,
        /// What is wrong and what would be right.
        reason: String,
    },
}

/// The names of the profiles compiled in.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// A profile compiled in, as its text.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

impl<P> Board<P> {
    /// The profile of a machine of which nothing is known: sets nothing.
    pub fn generic() -> Self {
        Self { schema: SCHEMA, name: "generic".to_owned(), search: SearchDefaults::default(), policy: None }
    }

    /// Reads and checks the profile at `path`.
    ///
    /// # Errors
    /// [`BoardError`] with the file, the line where there is one, the key and what would be right.
    pub fn load(path: &Path) -> Result<Self, BoardError>
    where
        P: DeserializeOwned,
    {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| BoardError::Read { file: file.clone(), source })?;
        Self::parse(&text, &file)
    }

    /// Reads and checks a profile from its text; `file` names it in errors.
    ///
    /// # Errors
    /// As [`Board::load`].
    pub fn parse(text: &str, file: &str) -> Result<Self, BoardError>
    where
        P: DeserializeOwned,
    {
        let board: Self = toml::from_str(text).map_err(|error| BoardError::Parse {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count()),
            message: error.message().trim().replace('\n', "; "),
        })?;
        board.validate(file)?;
        Ok(board)
    }

    /// Runs every check of the values.
    ///
    /// # Errors
    /// [`BoardError::Check`] for the first that fails.
    pub fn validate(&self, file: &str) -> Result<(), BoardError> {
        let checks = [self.check_schema(), self.check_name(), self.check_threads()];
        match checks.into_iter().find_map(Result::err) {
            Some((key, reason)) => Err(BoardError::Check { file: file.to_owned(), key, reason }),
            None => Ok(()),
        }
    }

    fn check_schema(&self) -> Result<(), (&'static str, String)> {
        if self.schema == SCHEMA {
            return Ok(());
        }
        Err(("schema", format!("is {}, but this build of socbfs reads schema {SCHEMA}", self.schema)))
    }

    fn check_name(&self) -> Result<(), (&'static str, String)> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !self.name.is_empty() && self.name.chars().all(good) {
            return Ok(());
        }
        Err(("name", format!("{:?} must be made of a-z, 0-9 and '-'", self.name)))
    }

    fn check_threads(&self) -> Result<(), (&'static str, String)> {
        match self.search.threads {
            Some(threads) if threads > MOST_THREADS => {
                Err(("search.threads", format!("is {threads}; at most {MOST_THREADS}, 0 for one on every CPU")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for a policy: one key.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Kind {
        kind: String,
    }

    type Board = super::Board<Kind>;

    #[test]
    fn every_shipped_profile_is_good_and_named_as_its_file() {
        assert!(shipped().count() > 0);
        for (name, text) in SHIPPED {
            let board = Board::parse(text, name).unwrap();
            assert_eq!(board.name, *name);
        }
        assert_eq!(Board::parse(SHIPPED[0].1, "generic").unwrap(), Board::generic());
    }

    #[test]
    fn every_file_in_boards_is_compiled_in() {
        for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/boards")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert_eq!(shipped_text(name).unwrap(), fs::read_to_string(&path).unwrap());
        }
    }

    #[test]
    fn a_full_profile_is_read() {
        let text = "schema = 1\nname = 'odroid-xu3'\n[search]\nthreads = 4\ncpus = '4-7'\n[policy]\nkind = 'bc'";
        let board = Board::parse(text, "x.toml").unwrap();
        assert_eq!(board.search.threads, Some(4));
        assert_eq!(board.search.cpus.as_ref().unwrap().numbers(), [4, 5, 6, 7]);
        assert_eq!(board.policy, Some(Kind { kind: "bc".into() }));
        assert_eq!(Board::parse(&toml::to_string(&board).unwrap(), "again").unwrap(), board);
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let good = "schema = 1\nname = 'a'\n";
        for (text, line, word) in [
            (format!("{good}colour = 'red'"), 3, "colour"),
            (format!("{good}[search]\nthread = 4"), 4, "thread"),
            (format!("{good}[search]\ncpus = '3-1'"), 4, "ends before it starts"),
            (format!("{good}[policy]\nkind = 'bc'\nalpha = 2"), 5, "alpha"),
            ("schema = 1\nname = 3".to_owned(), 2, "string"),
            ("schema = 1".to_owned(), 1, "name"),
            ("schema = 1\nname".to_owned(), 2, "="),
        ] {
            match Board::parse(&text, "my.toml").unwrap_err() {
                BoardError::Parse { file, line: found, message } => {
                    assert_eq!((file.as_str(), found), ("my.toml", line), "{text}: {message}");
                    assert!(message.contains(word), "{text}: {message}");
                }
                other => panic!("{text}: {other}"),
            }
        }
    }

    #[test]
    fn each_check_fails_on_its_value() {
        let base = Board::generic();
        let threads = |threads| SearchDefaults { threads, cpus: None };
        for (board, key) in [
            (Board { schema: 2, ..base.clone() }, "schema"),
            (Board { name: "Big Board".into(), ..base.clone() }, "name"),
            (Board { search: threads(Some(MOST_THREADS + 1)), ..base.clone() }, "search.threads"),
        ] {
            let error = board.validate("f").unwrap_err();
            assert!(matches!(error, BoardError::Check { key: found, .. } if found == key), "{error}");
        }
        assert!(Board { search: threads(Some(MOST_THREADS)), ..base }.validate("f").is_ok());
    }
}
