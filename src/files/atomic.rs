//! Output files that appear completely or not at all.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Seek, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, posix_fallocate},
    libc,
    unistd::{geteuid, linkat},
};

use super::{
    claim::Claim,
    read::explained,
    temporary::{Temporary, temporaries},
};

/// Permissions of a new file, before the umask removes some.
const NEW: u32 = 0o666;

/// A file that appears under its name, and replaces an old file of that name, only when it is complete. It is written to a temporary in the
/// same folder (so on the same file system), to which [`commit`](Self::commit) gives the name. Where the file system allows it, the
/// temporary has no name until then, so that a killed process leaves none. Dropping the `AtomicFile` removes the temporary. The file is not
/// synced to the disk: a crash of the machine (not of the process) may lose it.
///
/// [`create`](Self::create) checks everything that can be checked early, so that results of hours are not lost at the end.
///
/// A target that is not a regular file (a terminal, a pipe, `/dev/null`) is written to directly. A symbolic link is followed, unless
/// another user may have put it there. A file that something is mounted on can't be replaced: [`commit`](Self::commit) copies to it.
///
/// The new file has the permissions of the old one (without set-user-ID, set-group-ID and sticky bits) if the old one belongs to this user,
/// and otherwise those of any new file: another user chose the permissions of their own file.
///
/// Writes are buffered: callers may write in small pieces.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    place: Place,
    target: PathBuf,
    /// The file that is replaced, open for writing. `None` if there is none, or it is a running program.
    old: Option<File>,
    _claim: Option<Claim>,
}

/// The file that is written to.
#[derive(Debug)]
enum Place {
    /// The target itself.
    Direct,
    /// A temporary without a name.
    Unnamed,
    /// A temporary with a name.
    Named(Temporary),
}

impl AtomicFile {
    /// Opens a temporary in the folder of `path`. A file at `path` stays as it is until [`commit`](Self::commit).
    ///
    /// # Errors
    /// If the folder does not exist or can't be written to; if `path` is a directory, a symbolic link that leads nowhere or that another
    /// user may have planted, a file that this user may not replace, or one that this process reads or writes already.
    pub fn create(path: &Path) -> io::Result<Self> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match &existing {
            Some(metadata) if metadata.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file in it"));
            }
            Some(metadata) if !metadata.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(Self { file: buffered(file), place: Place::Direct, target: path.to_owned(), old: None, _claim: None });
            }
            // Refused now: the file could not get this name in the end.
            None if names_folder(path) => {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it names a folder that does not exist; name a file"));
            }
            _ => {}
        }
        refuse_link(path, existing.is_some())?;
        let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        let folder = parent(&target);
        let claim = Claim::output(&fs::canonicalize(folder).map_err(plain)?.join(name))?;
        let old = existing.as_ref().map(|metadata| open_existing(&target, metadata, folder)).transpose()?.flatten();
        // The permissions of this user's own file are kept, except set-user-ID and set-group-ID, with which others would act as this user.
        let kept = existing.as_ref().filter(|metadata| metadata.uid() == geteuid().as_raw()).map(|metadata| metadata.mode() & 0o777);
        let (file, place) = match unnamed(folder) {
            Some(file) => (file, Place::Unnamed),
            None => {
                Temporary::create(folder, &prefix(name), NEW).map(|(file, temporary)| (file, Place::Named(temporary))).map_err(plain)?
            }
        };
        if let Some(mode) = kept {
            let _ = file.set_permissions(fs::Permissions::from_mode(mode)); // not limited by the umask; on failure the file is still usable
        }
        Ok(Self { file: buffered(file), place, target, old, _claim: Some(claim) })
    }

    /// Writes out the buffer and gives the file its name.
    ///
    /// # Errors
    /// If the disk is full or the folder has changed; the temporary is removed.
    pub fn commit(self) -> io::Result<()> {
        let mut file = self.file.into_inner()?;
        let named = match self.place {
            Place::Direct => return Ok(()),
            Place::Named(temporary) => {
                report_late_errors(&file)?;
                temporary
            }
            Place::Unnamed => give_name(&mut file, &self.target)?,
        };
        match (named.persist(&self.target), self.old) {
            // Something is mounted on the target, as containers do with single files.
            (Err(error), Some(old)) if error.kind() == io::ErrorKind::ResourceBusy => overwrite(old, &mut file),
            (done, _) => done,
        }
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

/// Copies all of `file` to `old`. Before the old content is overwritten, the file system must have room for the new one.
fn overwrite(mut old: File, file: &mut File) -> io::Result<()> {
    let (size, before) = (file.metadata()?.len(), old.metadata()?.len());
    if let Some(size) = libc::off_t::try_from(size).ok().filter(|&size| size > 0) {
        if let Err(error @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG | Errno::EIO)) = posix_fallocate(&old, 0, size) {
            let _ = old.set_len(before); // some file systems have extended the file by then
            return Err(error.into());
        }
    }
    // Ctrl-C waits for the end of the copy.
    let _registered = temporaries();
    file.rewind()?;
    io::copy(file, &mut old)?;
    old.set_len(size)?;
    report_late_errors(&old)
}

/// Asks the file system for errors of earlier writes. Network file systems report a full disk only when a file is closed, and do so at the
/// close of each of its descriptors; others return at once.
fn report_late_errors(file: &File) -> io::Result<()> {
    Ok(nix::unistd::close(file.try_clone()?)?)
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 16, file)
}

/// Whether `path` can only be the path of a folder, since it ends with a slash, or with a dot after one.
fn names_folder(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.ends_with(b"/") || path.ends_with(b"/.")
}

/// The folder of `path`; `.` if `path` is only a name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The first part of a temporary's name.
fn prefix(name: &OsStr) -> String {
    // Names have 255 bytes at most, of which a temporary needs some for its number and suffix.
    let name: String = name.to_string_lossy().chars().take(40).collect();
    format!(".{name}.")
}

/// Refuses a symbolic link at `path` that leads nowhere, and one in a folder that all users share (`/tmp`) if neither this user nor the
/// owner of the folder made it. Linux may be set up to refuse the latter itself (`fs.protected_symlinks`).
fn refuse_link(path: &Path, leads_somewhere: bool) -> io::Result<()> {
    let Ok(link) = fs::symlink_metadata(path) else { return Ok(()) };
    if !link.is_symlink() {
        return Ok(());
    }
    if !leads_somewhere {
        return Err(explained(path, io::ErrorKind::NotFound.into()));
    }
    let folder = fs::metadata(parent(path))?;
    let is_shared = folder.mode() & 0o1002 == 0o1002;
    if is_shared && link.uid() != geteuid().as_raw() && link.uid() != folder.uid() {
        let reason = "it is a symbolic link that another user put into a folder that all users share";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Opens the file that is to be replaced, as proof that this user may write to it. (`None`: the file is a running program, which may be
/// replaced, but not written to.)
fn open_existing(target: &Path, metadata: &fs::Metadata, folder: &Path) -> io::Result<Option<File>> {
    let refuse = |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if metadata.permissions().readonly() {
        return refuse("a file of that name exists and is write-protected");
    }
    let user = geteuid().as_raw();
    let folder = fs::metadata(folder)?;
    if folder.mode() & 0o1000 != 0 && metadata.uid() != user && folder.uid() != user && user != 0 {
        return refuse("a file of that name belongs to another user, and in this folder only its owner may replace it");
    }
    match OpenOptions::new().write(true).open(target) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refuse("a file of that name exists, and you may not write to it"),
        Err(error) => Err(error),
    }
}

/// Creates a file without a name in `folder`. `None` if the file system does not support such files.
fn unnamed(folder: &Path) -> Option<File> {
    // Without /proc, the file could not be given a name later.
    Path::new("/proc/self/fd").exists().then_some(())?;
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(NEW).open(folder).ok()
}

/// Gives a file without a name that of a temporary beside `target`. (A link can't replace a file.) Some file systems support files without
/// a name, but can't link them: then a copy is made, from the data in the file.
fn give_name(file: &mut File, target: &Path) -> io::Result<Temporary> {
    report_late_errors(file)?;
    let (folder, prefix) = (parent(target), prefix(target.file_name().unwrap_or_default()));
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |path: &Path| Ok(linkat(AT_FDCWD, source.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?);
    Temporary::make(folder, &prefix, link).map(|((), temporary)| temporary).or_else(|_| {
        let (mut copy, temporary) = Temporary::create(folder, &prefix, NEW).map_err(plain)?;
        copy.set_permissions(file.metadata()?.permissions())?;
        file.rewind()?;
        io::copy(file, &mut copy)?;
        report_late_errors(&copy)?;
        Ok(temporary)
    })
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
    use crate::files::can_give_away;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_only_when_it_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        // If the file system supports files without a name, a process that is killed now leaves nothing.
        assert!(names(folder.path()).len() == if matches!(file.place, Place::Unnamed) { 1 } else { 2 });
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    /// An output with a named temporary, as on a file system that does not support files without a name.
    fn named(path: &Path) -> AtomicFile {
        let mut file = AtomicFile::create(path).unwrap();
        let (temporary, place) = Temporary::create(parent(path), ".x.", NEW).unwrap();
        file.file = buffered(temporary);
        file.place = Place::Named(place);
        file
    }

    #[test]
    fn named_temporaries_are_removed_or_become_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut file = named(&path);
        file.write_all(b"half").unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        drop(file);
        assert!(names(folder.path()).is_empty() && !temporaries().iter().any(|name| name.starts_with(folder.path())));
        let mut file = named(&path);
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"whole".to_vec(), vec!["a.txt".to_owned()]));
    }

    #[test]
    fn files_that_can_not_be_linked_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        // An unlinked file can't be linked again.
        let mut file = tempfile::tempfile_in(folder.path()).unwrap();
        let named = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.path().join("gone")).unwrap();
        fs::remove_file(folder.path().join("gone")).unwrap();
        for file in [&mut file, &mut { named }] {
            file.write_all(b"content").unwrap();
            give_name(file, &folder.path().join("a")).unwrap().persist(&folder.path().join("a")).unwrap();
            assert_eq!((fs::read(folder.path().join("a")).unwrap(), names(folder.path())), (b"content".to_vec(), vec!["a".to_owned()]));
        }
    }

    #[test]
    fn permissions_and_links_of_other_users_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let fresh = folder.path().join("fresh");
        fs::write(&fresh, "").unwrap();
        // A file of this user keeps its permissions, but not set-user-ID and set-group-ID.
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6751)).unwrap();
        AtomicFile::create(&path).unwrap().commit().unwrap();
        assert_eq!(mode(&path), 0o751);
        if !can_give_away() {
            return;
        }
        for theirs in [0o4777, 0o666] {
            std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(theirs)).unwrap();
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(b"of root").unwrap();
            file.commit().unwrap();
            assert_eq!((mode(&path), fs::metadata(&path).unwrap().uid()), (mode(&fresh), 0), "was {theirs:o}");
        }
        // A link that another user planted in a folder that all users share.
        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        std::os::unix::fs::symlink(&fresh, shared.join("link")).unwrap();
        assert!(AtomicFile::create(&shared.join("link")).is_ok());
        std::os::unix::fs::lchown(shared.join("link"), Some(65534), Some(65534)).unwrap();
        assert_eq!(AtomicFile::create(&shared.join("link")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn dangling_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(AtomicFile::create(&link).unwrap_err().to_string(), "it is a symbolic link to nowhere, which does not exist");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_file_can_not_be_two_outputs_or_input_and_output() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("other"));
        let first = AtomicFile::create(&path).unwrap();
        let same = folder.path().join("../").join(folder.path().file_name().unwrap()).join("a");
        assert!(AtomicFile::create(&same).unwrap_err().to_string().contains("another output"));
        drop(first);
        AtomicFile::create(&same).unwrap().commit().unwrap();
        crate::files::protect(&path).unwrap();
        assert!(AtomicFile::create(&path).unwrap_err().to_string().contains("an input as well"));
        fs::write(&other, "").unwrap();
        let output = AtomicFile::create(&other).unwrap();
        assert!(crate::files::protect(&other).unwrap_err().to_string().contains("an input as well"));
        drop(output);
        crate::files::protect(&other).unwrap();
    }

    #[test]
    fn a_file_that_can_not_be_replaced_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        for (before, after) in [("long content", "new"), ("old", "longer content"), ("old", "")] {
            fs::write(&old, before).unwrap();
            fs::write(&new, after).unwrap();
            overwrite(OpenOptions::new().write(true).open(&old).unwrap(), &mut File::open(&new).unwrap()).unwrap();
            assert_eq!(fs::read_to_string(&old).unwrap(), after);
        }
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
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
        // Such a name can't be given to a file in the end.
        for ending in ["/", "/."] {
            let new = format!("{}/new{ending}", folder.path().display());
            assert_eq!(AtomicFile::create(Path::new(&new)).unwrap_err().kind(), io::ErrorKind::NotFound, "{new}");
        }
    }

    #[test]
    fn devices_are_written_directly_and_a_full_disk_is_an_error() {
        let mut file = AtomicFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"x").unwrap();
        file.commit().unwrap();
        let mut file = AtomicFile::create(Path::new("/dev/full")).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
