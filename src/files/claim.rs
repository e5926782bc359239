//! Records the files that this process reads and writes. A file may not be both, and two outputs may not go to the same file.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Default)]
struct Claims {
    inputs: BTreeSet<PathBuf>,
    outputs: BTreeSet<PathBuf>,
}

static CLAIMS: Mutex<Option<Claims>> = Mutex::new(None);

fn claims() -> MutexGuard<'static, Option<Claims>> {
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner) // sets of paths are never half-changed
}

/// Why a file can't be an output, or an input.
const INPUT_TOO: &str = "it is an input as well";

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, reason)
}

/// Records `path` as an input, so that the same process can't write to it.
///
/// # Errors
/// If it is an output already.
pub fn protect(path: &Path) -> io::Result<()> {
    // A file that can't be found is reported when it is read.
    let Ok(path) = fs::canonicalize(path) else { return Ok(()) };
    if !path.is_file() {
        return Ok(());
    }
    let mut claims = claims();
    let claims = claims.get_or_insert_default();
    if claims.outputs.contains(&path) {
        return Err(refused(INPUT_TOO));
    }
    claims.inputs.insert(path);
    Ok(())
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
        let path = PathBuf::from("-");
        if !claims().get_or_insert_default().outputs.insert(path.clone()) {
            return Err(refused("another output goes to standard output"));
        }
        Ok(Self(path))
    }

    /// Records `path`, which must be canonical, as an output.
    pub(super) fn output(path: &Path) -> io::Result<Self> {
        let mut claims = claims();
        let claims = claims.get_or_insert_default();
        if claims.inputs.contains(path) {
            return Err(refused(INPUT_TOO));
        }
        if !claims.outputs.insert(path.to_owned()) {
            return Err(refused("another output goes to the same file"));
        }
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(claims) = claims().as_mut() {
            claims.outputs.remove(&self.0);
        }
    }
}
