//! Files of JSON lines that grow by a line at a time, so that an interruption costs no more than the line it fell into.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

/// Such a file, open to be added to.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
}

impl JsonLines {
    /// Opens the file, or makes it. Only its first `good` bytes stay: what an interruption left of a line goes.
    ///
    /// # Errors
    /// Where it can't be opened or written.
    pub fn open(path: &Path, good: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(good)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn add(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // In one piece: whoever interrupts leaves whole lines, or one that is told by its missing end.
        self.file.write_all(&line).and_then(|()| self.file.flush())
    }
}

/// The lines of `text` that are complete, their ends included.
pub fn complete_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
}
