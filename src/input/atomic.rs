//! Output that is there completely or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempPath;

/// Temporaries that exist now.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner) // a set of paths is never half-changed
}

/// Removes every temporary that an [`AtomicFile`] of this process has beside its target, and lets nobody make another. For the handler
/// of Ctrl-C, right before it ends the process: what is being written then is lost, as if it had never been begun.
pub fn remove_temporaries() {
    let mut registered = temporaries();
    for path in std::mem::take(&mut *registered) {
        let _ = fs::remove_file(path); // gone already, or the folder is: nothing more can be done
    }
    // Whoever wants one from now on waits for the end.
    std::mem::forget(registered);
}

/// A file that appears under its name, in place of what had that name before, only when it is complete: it is written to a
/// temporary beside its target (so on the same file system), which [`commit`](Self::commit) renames. Dropping it removes the
/// temporary. Not synced to the disk: a crash of the machine (not of the process) may lose it.
///
/// A target that is no regular file (a terminal, a pipe, `/dev/null`) is written to directly; a symbolic link is followed.
///
/// Buffered: callers may write in small pieces.
#[derive(Debug)]
pub struct AtomicFile {
    // In this order: the file is closed before its path is removed (some systems insist).
    file: BufWriter<File>,
    temporary: Option<Temporary>,
    target: PathBuf,
}

/// A temporary that is registered as long as it exists.
#[derive(Debug)]
struct Temporary(Option<TempPath>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let mut registered = temporaries();
            registered.remove(path.to_path_buf().as_path());
            let _ = path.close(); // as in remove_temporaries
        }
    }
}

impl AtomicFile {
    /// Opens a temporary beside `path`. What stands at `path` stays until [`commit`](Self::commit).
    ///
    /// # Errors
    /// Where the folder does not exist or can't be written to, or `path` is a directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        const BUFFER: usize = 1 << 16;
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file in it"));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Self { file: BufWriter::with_capacity(BUFFER, file), temporary: None, target: path.to_owned() });
        }
        let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let prefix = format!(".{}.", name.to_string_lossy());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        let permissions = match &existing {
            Some(metadata) if metadata.permissions().readonly() => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a file of that name exists and is write-protected"));
            }
            Some(metadata) => Some(metadata.permissions()),
            None => default_permissions(),
        };
        if let Some(permissions) = &permissions {
            builder.permissions(permissions.clone());
        }
        // Registered under the lock, so that a handler of Ctrl-C sees it if it exists.
        let mut registered = temporaries();
        let (file, temporary) = builder.tempfile_in(folder).map_err(plain)?.into_parts();
        registered.insert(temporary.to_path_buf());
        drop(registered);
        let temporary = Temporary(Some(temporary));
        if let (Some(permissions), true) = (permissions, existing.is_some()) {
            let _ = file.set_permissions(permissions); // beyond the umask; without them the file is still good
        }
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), temporary: Some(temporary), target })
    }

    /// Writes out what is buffered and gives the file its name.
    ///
    /// # Errors
    /// Where the disk is full or the folder has changed; the temporary is removed.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        let Some(mut temporary) = self.temporary.take() else { return Ok(()) };
        let Some(path) = temporary.0.take() else { return Ok(()) };
        // Under the lock: after Ctrl-C has removed the temporaries nothing may be renamed, and what was is none of them.
        let mut registered = temporaries();
        registered.remove(path.to_path_buf().as_path());
        path.persist(&self.target).map_err(|error| error.error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What a new file has before the umask; a temporary is only its owner's by default.
fn default_permissions() -> Option<fs::Permissions> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        Some(fs::Permissions::from_mode(0o666))
    }
    #[cfg(not(unix))]
    None
}

/// The error of the system without the path of the temporary, which means nothing to a user.
fn plain(error: io::Error) -> io::Error {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        NotFound => io::Error::new(NotFound, "its folder does not exist"),
        kind @ (NotADirectory | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull) => kind.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()).len(), 2);
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn a_file_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("a.txt")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn permissions_are_those_of_a_new_file_or_of_the_old_one() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (plain, atomic, link) = (folder.path().join("plain"), folder.path().join("atomic"), folder.path().join("link"));
        fs::write(&plain, "").unwrap();
        AtomicFile::create(&atomic).unwrap().commit().unwrap();
        assert_eq!(mode(&atomic), mode(&plain));
        fs::set_permissions(&atomic, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("atomic", &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"through the link").unwrap();
        file.commit().unwrap();
        assert_eq!(mode(&atomic), 0o640);
        assert_eq!(fs::read(&atomic).unwrap(), b"through the link");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::set_permissions(&atomic, fs::Permissions::from_mode(0o440)).unwrap();
        assert_eq!(AtomicFile::create(&atomic).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(AtomicFile::create(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let error = AtomicFile::create(&folder.path().join("missing/a.txt")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "its folder does not exist");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_to_directly_and_a_full_disk_is_told() {
        let mut file = AtomicFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"x").unwrap();
        file.commit().unwrap();
        let mut file = AtomicFile::create(Path::new("/dev/full")).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
