//! Files that grow over several runs, in folders where another user may replace them.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Seek},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::{libc, unistd::geteuid};

use super::{claim::Claim, read::read_open};

/// A file that belongs to this user and has no other name.
#[derive(Debug)]
pub struct UserFile {
    /// Open for reading and appending.
    pub file: File,
    path: PathBuf,
    _claim: Claim,
}

impl UserFile {
    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// If it can't be read, or has more than `most` bytes.
    pub fn read_all(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let size = self.file.metadata()?.len();
        self.file.rewind()?;
        read_open(&mut self.file, size, most)
    }
}

/// Opens `path` for reading and appending, and creates the file if it is absent. A symbolic link, a file of another user, and a file with a
/// second name are refused: writing to them would change a file that another user may have chosen.
///
/// # Errors
/// If `path` is one of these or not a regular file, if this process reads or writes the file already, or if it can't be opened or created.
pub fn open_user_file(path: &Path) -> io::Result<UserFile> {
    let options = || OpenOptions::new().read(true).append(true).mode(0o666).clone();
    let (file, metadata) = match open_of_user(path, options().create_new(true)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_of_user(path, &mut options())?,
        created => created?,
    };
    if metadata.nlink() > 1 {
        return Err(refused("it has a second name (a hard link)"));
    }
    let claim = Claim::output(&fs::canonicalize(path)?)?;
    Ok(UserFile { file, path: path.to_owned(), _claim: claim })
}

/// Opens a regular file that belongs to this user. Follows no symbolic link, and waits for no pipe.
///
/// # Errors
/// If `path` is not such a file, or can't be opened with these `options`.
pub fn open_of_user(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => refused("it is a symbolic link: name the file itself"),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(refused("it belongs to another user"));
    }
    Ok((file, metadata))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Whether a test can give files to another user: only root can, and in a user namespace only to users that are mapped there.
#[cfg(test)]
pub fn can_give_away() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    let can = geteuid().is_root() && std::os::unix::fs::chown(file.path(), Some(65534), Some(65534)).is_ok();
    if !can {
        // Not a print macro, whose output the test harness would capture.
        let why = b"SKIPPED: no file can be given to another user here: this is not root, or a namespace of users\n";
        io::Write::write_all(&mut io::stderr(), why).unwrap();
    }
    can
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn links_pipes_and_directories_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "precious").unwrap();
        std::os::unix::fs::symlink("precious", path("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        fs::hard_link(path("precious"), path("hard")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (name, reason) in
            [("link", "symbolic link"), ("dangling", "symbolic link"), ("hard", "second name"), ("pipe", "regular"), ("", "")]
        {
            let error = open_user_file(&path(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        assert!(!path("nowhere").exists());
        assert_eq!(fs::read(path("precious")).unwrap(), b"precious");
    }

    #[test]
    fn own_files_are_read_and_appended_to_by_one_opener_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        open_user_file(&path).unwrap().file.write_all(b"one").unwrap();
        let mut again = open_user_file(&path).unwrap();
        assert_eq!(again.read_all(3).unwrap(), b"one");
        assert_eq!(again.read_all(2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        again.file.write_all(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
        assert!(open_user_file(&path).unwrap_err().to_string().contains("same file"));
        assert!(super::super::AtomicFile::create(&path).unwrap_err().to_string().contains("same file"));
    }

    /// Only root can make a file of another user.
    #[test]
    fn the_file_of_another_user_is_refused() {
        if !can_give_away() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foreign");
        fs::write(&path, "theirs").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        assert!(open_user_file(&path).unwrap_err().to_string().contains("another user"));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }
}
