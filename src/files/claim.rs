//! Which files this process reads and writes: no file is both, and none is written twice.

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

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, reason)
}

/// Keeps a file that a command reads from being written by the same command.
///
/// # Errors
/// Where it is an output already.
pub fn protect(path: &Path) -> io::Result<()> {
    // The reader reports a file that can't be found.
    let Ok(path) = fs::canonicalize(path) else { return Ok(()) };
    if !path.is_file() {
        return Ok(());
    }
    let mut claims = claims();
    let claims = claims.get_or_insert_default();
    if claims.outputs.contains(&path) {
        return Err(refused("it is to be read, and to be written as well: name another file for the output"));
    }
    claims.inputs.insert(path);
    Ok(())
}

/// A file is an output as long as this lives.
#[derive(Debug)]
pub(super) struct Claim(PathBuf);

impl Claim {
    /// Takes `path`, which is canonical.
    pub(super) fn output(path: &Path) -> io::Result<Self> {
        let mut claims = claims();
        let claims = claims.get_or_insert_default();
        if claims.inputs.contains(path) {
            return Err(refused("it is read as well"));
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
