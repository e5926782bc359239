//! Files of JSON lines that grow by a line at a time, so that an interruption loses at most one line.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::Serialize;

use crate::files::{self, OwnFile};

/// Such a file, open to be added to.
#[derive(Debug)]
pub struct JsonLines(OwnFile);

impl JsonLines {
    /// Opens the file, or makes it, and gives what is in it. Nothing is changed before [`keep`](Self::keep).
    ///
    /// # Errors
    /// Where it can't be opened or read, or [may not be ours](files::open_own).
    pub fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = files::open_own(path)?;
        let text = file.read_all(files::RECORD)?;
        Ok((Self(file), text))
    }

    /// Only the first `good` bytes stay: what an interruption left of a line goes.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn keep(&mut self, good: u64) -> io::Result<()> {
        self.0.file.set_len(good)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn add(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // In one piece: an interruption leaves whole lines, or one that its missing end gives away.
        self.0.file.write_all(&line).and_then(|()| self.0.file.flush())
    }
}

/// The lines of `text` that are complete, their ends included.
pub fn complete_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
}
