//! Files of JSON lines that grow one line at a time, so that an interruption, a kill or a power cut loses at most one line. The last key of
//! each line is a checksum of the rest, so that no damaged line is taken for a measurement.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};
use twox_hash::XxHash3_128;

use socbfs::files::{self, UserFile};

/// What stands before the checksum of a line.
const SUM: &str = ",\"xxh3\":\"";

fn sum(line: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(line))
}

/// A file of JSON lines, open for appending.
#[derive(Debug)]
pub struct JsonLines(UserFile);

impl JsonLines {
    /// Opens the file, or creates it, and returns its content. The file is not changed before [`keep`](Self::keep).
    ///
    /// # Errors
    /// If the file can't be opened or read, or if [`open_user_file`](files::open_user_file) refuses it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = files::open_user_file(path)?;
        let text = file.read_all(files::RECORD)?;
        Ok((Self(file), text))
    }

    /// Keeps the first `good` bytes and cuts off the rest, such as the beginning of a line that was interrupted.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn keep(&mut self, good: u64) -> io::Result<()> {
        self.0.file.set_len(good)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Waits until all that was written to the file system of this file, by any process, is on the disk.
    pub(super) fn sync_file_system(&self) -> io::Result<()> {
        Ok(nix::unistd::syncfs(&self.0.file)?)
    }

    /// Appends an object as a line, or nothing.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn add(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        let sum = sum(&line);
        line.pop();
        line.extend_from_slice(format!("{SUM}{sum}\"}}\n").as_bytes());
        let before = self.0.file.metadata()?.len();
        // One write of the whole line: after an interruption, a line is either complete or lacks its line end. Synced, since a line is
        // minutes of work, and a power cut would lose it.
        let added = self.0.file.write_all(&line).and_then(|()| self.0.file.sync_data());
        if added.is_err() {
            // On a full disk, for example. If this fails too, the next reader cuts the line off.
            let _ = self.keep(before);
        }
        added
    }
}

/// Reads a line. `may_lack_sum`: an older version may have written it. (Records are read from text everywhere: the reader of every type is
/// then in the program once, not once for each source.)
///
/// # Errors
/// If it is not the JSON of a `T`, or if its checksum is wrong.
pub fn read_line<T: DeserializeOwned>(line: &[u8], may_lack_sum: bool) -> serde_json::Result<T> {
    let text = std::str::from_utf8(line).map_err(serde_json::Error::custom)?.trim_end();
    let (object, found) = match text.strip_suffix("\"}").and_then(|text| text.rsplit_once(SUM)) {
        Some((object, found)) => (format!("{object}}}"), found),
        None if may_lack_sum => return serde_json::from_str(text),
        None => return Err(serde_json::Error::custom("the line has no checksum")),
    };
    if sum(object.as_bytes()) != found {
        return Err(serde_json::Error::custom("the line is damaged: its checksum is another one; remove it"));
    }
    serde_json::from_str(&object)
}

/// The complete lines of `text`, with their line ends.
pub fn complete_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
}
