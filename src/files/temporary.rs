//! Temporary files, which may later replace another file.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Number of names that are tried before giving up.
const ATTEMPTS: usize = 1000;

/// Paths of the temporaries that exist now.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Locks the list of temporaries. While it is locked, the handler of Ctrl-C waits.
pub(super) fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner) // a set of paths is never half-changed
}

/// Removes every temporary of this process, and prevents all threads from making another. The handler of Ctrl-C calls it right before it
/// ends the process: unfinished outputs are lost.
pub fn remove_temporaries() {
    remove_all(temporaries());
}

/// As [`remove_temporaries`], for a thread that may itself be making a temporary: does nothing if the list is locked.
pub fn try_remove_temporaries() {
    if let Ok(registered) = TEMPORARIES.try_lock() {
        remove_all(registered);
    }
}

fn remove_all(registered: MutexGuard<'static, BTreeSet<PathBuf>>) {
    for path in &*registered {
        remove(path);
    }
    // The list stays locked: a thread that wants to make a temporary waits until the process ends.
    std::mem::forget(registered);
}

fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path); // on failure it or its folder is gone already: nothing more can be done
    }
}

/// The path of a file or a folder that is removed on drop, unless `persist` has renamed it.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Creates a new file in `folder`, with the permissions `mode` less the umask. Its name is `prefix`, a random number and `.tmp`.
    ///
    /// # Errors
    /// If the folder is absent or refuses the file.
    pub(crate) fn create(folder: &Path, prefix: &str, mode: u32) -> io::Result<(File, Self)> {
        // `create_new` (O_EXCL) follows no symbolic link and opens no file that another user has put there.
        Self::make(folder, prefix, |path| OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path))
    }

    /// Calls `make` with one random name after the other until it succeeds, at most `ATTEMPTS` times.
    ///
    /// # Errors
    /// The first error of `make` that is not [`io::ErrorKind::AlreadyExists`], or that one if every name exists.
    pub fn make<T>(folder: &Path, prefix: &str, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Self)> {
        // Made and listed under one lock, so that the handler of Ctrl-C knows every temporary that exists.
        let mut registered = temporaries();
        for attempt in 0..ATTEMPTS {
            // The standard library seeds `RandomState` from the system's random numbers, differently each time.
            let name = format!("{prefix}{:016x}.tmp", RandomState::new().hash_one(attempt));
            let path = folder.join(name);
            match make(&path) {
                Ok(made) => {
                    registered.insert(path.clone());
                    return Ok((made, Self(path)));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name that was tried for a temporary file exists already"))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Renames the file to `target`, and replaces the file of that name, if any.
    ///
    /// # Errors
    /// If it can't be renamed; it is then removed.
    pub(crate) fn persist(self, target: &Path) -> io::Result<()> {
        // Under the lock: once Ctrl-C has removed the temporaries nothing may be renamed, and a renamed file is not a temporary.
        let mut registered = temporaries();
        fs::rename(&self.0, target)?;
        registered.remove(&self.0);
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut registered = temporaries();
        registered.remove(&self.0);
        remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn temporaries_are_unique_and_removed_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let (_, first) = Temporary::create(folder.path(), ".a.", 0o600).unwrap();
        let (_, second) = Temporary::create(folder.path(), ".a.", 0o600).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(fs::metadata(first.path()).unwrap().mode() & 0o777, 0o600);
        let target = folder.path().join("target");
        fs::write(&target, "old").unwrap();
        drop(first);
        second.persist(&target).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&target).unwrap(), b"");
        let (_, third) = Temporary::create(folder.path(), ".a.", 0o600).unwrap();
        third.persist(Path::new("/nonexistent/target")).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "what can't be renamed is removed");
    }

    #[test]
    fn names_in_use_are_skipped_and_other_errors_end_the_attempts() {
        let attempts = std::cell::Cell::new(0);
        let taken_twice = |_: &Path| -> io::Result<()> {
            attempts.set(attempts.get() + 1);
            let kind = if attempts.get() < 3 { io::ErrorKind::AlreadyExists } else { io::ErrorKind::StorageFull };
            Err(kind.into())
        };
        let error = Temporary::make(Path::new("/"), "", taken_twice).unwrap_err();
        assert_eq!((error.kind(), attempts.get()), (io::ErrorKind::StorageFull, 3));
        let taken = |_: &Path| -> io::Result<()> { Err(io::ErrorKind::AlreadyExists.into()) };
        assert_eq!(Temporary::make(Path::new("/"), "", taken).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let folder = Path::new("/nonexistent");
        assert_eq!(Temporary::create(folder, ".a.", 0o600).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
