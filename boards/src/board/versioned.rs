//! TOML files that name the version of their schema: board profiles, calibrations.

use std::path::Path;

use serde::{Deserialize, de::DeserializeOwned};

use super::{DocumentError, Entry, Violation, document::Document};
use socbfs::files;

/// A kind of file with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its full name.
    pub name: &'static str,
    /// Its short name, for use after its full name.
    pub short: &'static str,
    /// The version that this build reads.
    pub schema: u32,
    /// Former keys and tables, and what to write instead. The keys of a table come before the table itself.
    pub former: &'static [(&'static str, &'static str)],
}

impl Kind {
    /// The text of the file at `path`.
    ///
    /// # Errors
    /// [`DocumentError::Read`].
    pub fn read(self, path: &Path) -> Result<String, DocumentError> {
        files::read_text(path, files::Kind::Regular, files::CONFIGURATION).map_err(|source| DocumentError::Read {
            kind: self,
            file: path.display().to_string(),
            source,
        })
    }

    /// Reads `text`, and calls `check` with the values. `file` names the text in errors.
    ///
    /// # Errors
    /// [`DocumentError`] with the file, the line, the key and what would be correct.
    pub(crate) fn parse<T: DeserializeOwned>(
        self,
        text: &str,
        file: &str,
        check: impl FnOnce(&T, &Document<'_>) -> Result<(), Violation>,
    ) -> Result<T, DocumentError> {
        /// The only key that all versions have.
        #[derive(Deserialize)]
        struct Version {
            schema: Option<i64>,
        }
        let document = Document::parse(text, file)?;
        // The version is checked before the keys, since another version may have different keys.
        let Version { schema } = toml::from_str(text).map_err(|error| DocumentError::parse(text, file, &error))?;
        if schema != Some(i64::from(self.schema)) {
            return Err(DocumentError::Version { kind: self, file: file.to_owned(), line: document.line("schema"), found: schema });
        }
        if let Some((key, instead)) = self.former.iter().find(|(key, _)| document.has(key)) {
            let reason = format!("this key was removed: {instead}");
            return Err(DocumentError::Check { file: file.to_owned(), line: document.line(key), key: (*key).to_owned(), reason });
        }
        let value: T = toml::from_str(text).map_err(|error| DocumentError::value(&document, text, file, &error))?;
        check(&value, &document).map_err(|Violation { key, reason }| DocumentError::Check {
            file: file.to_owned(),
            line: document.line(&key),
            key,
            reason,
        })?;
        Ok(value)
    }
}

/// Every key in `text` that has a value, in the order of the file, except those that describe the file itself. `estimates` names keys whose
/// values were not measured, and `file` names the text in errors.
///
/// # Errors
/// [`DocumentError::Parse`] if the text is not TOML.
pub fn entries(text: &str, file: &str, estimates: &[String]) -> Result<Vec<Entry>, DocumentError> {
    Ok(Document::parse(text, file)?.entries(estimates))
}
