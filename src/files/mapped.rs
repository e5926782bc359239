//! Files that are mapped into memory while other processes may change them. If a mapped file is truncated, reading after its new end
//! raises SIGBUS; the handler of that signal looks up the file here.

use std::{
    fs::{File, Metadata},
    io,
    ops::Deref,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use memmap2::Mmap;

/// All mapped files.
static MAPPED: Mutex<Vec<Arc<Origin>>> = Mutex::new(Vec::new());

/// The file of a mapping.
#[derive(Debug)]
struct Origin {
    path: PathBuf,
    file: File,
    start: usize,
    size: usize,
    /// Size and modification time (seconds, nanoseconds) when the file was mapped.
    state: (u64, i64, i64),
}

impl Origin {
    fn has_changed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| state(&metadata) != self.state)
    }
}

fn state(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

fn mapped() -> MutexGuard<'static, Vec<Arc<Origin>>> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner) // a list of files is never half-changed
}

/// The file that is mapped at `address`. This may be called in the handler of a signal that a read at `address` raised: a thread that reads
/// there holds no lock of this module and is not inside the allocator.
pub fn mapped_at(address: usize) -> Option<PathBuf> {
    let is_there = |origin: &&Arc<Origin>| address.checked_sub(origin.start).is_some_and(|offset| offset < origin.size);
    mapped().iter().find(is_there).map(|origin| origin.path.clone())
}

/// A mapped file that has changed since it was mapped, if there is one. Data that was read from it may be inconsistent.
pub fn changed_while_mapped() -> Option<PathBuf> {
    mapped().iter().find(|origin| origin.has_changed()).map(|origin| origin.path.clone())
}

/// A file that is mapped for reading.
///
/// Its bytes may change at any time, so memory safety must not depend on an earlier check of them.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    origin: Arc<Origin>,
}

impl MappedFile {
    /// Maps all of `file`, which was opened as `path`.
    ///
    /// # Errors
    /// If the file can't be mapped, as on some network and FUSE file systems, or without address space.
    pub fn new(file: &File, path: &Path) -> io::Result<Self> {
        let (file, state) = (file.try_clone()?, state(&file.metadata()?));
        // SAFETY: the map is only read, and only as bytes. Another process may change these bytes, but memory safety does not depend on
        // their values (see the type). If another process truncates the file, this one gets SIGBUS, as any program that maps files does.
        let map = unsafe { Mmap::map(&file) }?;
        let origin = Arc::new(Origin { path: path.to_owned(), file, start: map.as_ptr() as usize, size: map.len(), state });
        mapped().push(Arc::clone(&origin));
        Ok(Self { map, origin })
    }

    /// Whether the file has changed since it was mapped.
    pub fn has_changed(&self) -> bool {
        self.origin.has_changed()
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> &Path {
        &self.origin.path
    }
}

impl Deref for MappedFile {
    type Target = Mmap;

    fn deref(&self) -> &Mmap {
        &self.map
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        mapped().retain(|origin| !Arc::ptr_eq(origin, &self.origin));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn mapped_files_are_found_by_address_and_changes_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [7; 5000]).unwrap();
        let map = MappedFile::new(&File::open(&path).unwrap(), &path).unwrap();
        let start = map.as_ptr() as usize;
        for (address, found) in [(start - 1, false), (start, true), (start + 4999, true), (start + 5000, false)] {
            let at = address.wrapping_sub(start);
            assert_eq!(mapped_at(address).is_some_and(|file| file == path), found, "{at}");
        }
        assert!(!map.has_changed());
        fs::write(&path, [7; 5001]).unwrap();
        assert!(map.has_changed() && changed_while_mapped() == Some(path.clone()));
        drop(map);
        assert_eq!(mapped_at(start).filter(|file| *file == path), None);
    }
}
