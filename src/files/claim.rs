//! Records the files that this process reads and writes. A file may not be both, and two outputs may not go to the same file.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Input,
    Output,
}

static CLAIMS: Mutex<BTreeMap<PathBuf, Use>> = Mutex::new(BTreeMap::new());

fn claims() -> MutexGuard<'static, BTreeMap<PathBuf, Use>> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner) // a map of paths is never half-changed
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, reason)
}

/// Why a file can't be an output, or an input.
const INPUT_TOO: &str = "it is an input as well";

/// Records `path` as an input, so that the same process can't write to it.
///
/// # Errors
/// If it is an output already.
pub fn protect(path: &Path) -> io::Result<()> {
    // A file that can't be found is reported when it is read.
    let Some(path) = fs::canonicalize(path).ok().filter(|path| path.is_file()) else { return Ok(()) };
    match *claims().entry(path).or_insert(Use::Input) {
        Use::Input => Ok(()),
        Use::Output => Err(refused(INPUT_TOO)),
    }
}

/// A file, or standard output, that is recorded as an output until this is dropped.
#[derive(Debug)]
pub struct Claim(PathBuf);

impl Claim {
    /// Records standard output as an output.
    ///
    /// # Errors
    /// If it is an output already.
    pub fn stdout() -> io::Result<Self> {
        // No canonical path has this name.
        Self::of(PathBuf::from("-"), "another output goes to standard output")
    }

    /// Records `path`, which must be canonical, as an output.
    pub(super) fn output(path: &Path) -> io::Result<Self> {
        Self::of(path.to_owned(), "another output goes to the same file")
    }

    fn of(path: PathBuf, taken: &str) -> io::Result<Self> {
        let mut claims = claims();
        match claims.get(&path) {
            Some(Use::Input) => Err(refused(INPUT_TOO)),
            Some(Use::Output) => Err(refused(taken)),
            None => {
                claims.insert(path.clone(), Use::Output);
                Ok(Self(path))
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        claims().remove(&self.0);
    }
}
