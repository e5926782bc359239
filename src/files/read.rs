//! Files that are read whole: regular files only, and only up to a sensible size.

use std::{
    fs::{self, File, FileType},
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use socbfs_machine::open_regular;

/// The largest configuration that is read (board files, calibrations, weights), in bytes.
pub const CONFIGURATION: u64 = 16 << 20;

/// The largest record of a run, or file of training records, that is read, in bytes. A record of 64 roots of a road network has 100 MB.
pub const RECORD: u64 = 1 << 30;

/// The kinds of files that may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Regular files only.
    Regular,
    /// Regular files, and pipes such as a shell's `<(...)`.
    Stream,
}

/// Reads all of a file.
///
/// # Errors
/// If it can't be read, is of another kind, has more than `most` bytes, or does not fit in memory.
pub fn read(path: &Path, kind: Kind, most: u64) -> io::Result<Vec<u8>> {
    let is_pipe = |of: FileType| of.is_fifo() || of.is_socket();
    let is_stream = kind == Kind::Stream && fs::metadata(path).is_ok_and(|metadata| is_pipe(metadata.file_type()));
    let opened = if is_stream { File::open(path) } else { open_regular(path) };
    let mut file = opened.map_err(|error| explained(path, error))?;
    let metadata = file.metadata()?;
    read_open(&mut file, metadata.len(), most)
}

/// The `error` of opening `path`. If `path` is a symbolic link that leads nowhere, returns an error that says so.
pub fn explained(path: &Path, error: io::Error) -> io::Error {
    match fs::read_link(path) {
        Ok(to) if error.kind() == io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("it is a symbolic link to {}, which does not exist", to.display()))
        }
        _ => error,
    }
}

/// What the user can do about an error of writing, if there is no room for the data.
pub fn write_cure(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("free some space, or write to another disk"),
        io::ErrorKind::QuotaExceeded => Some("delete some of your files, or write to another disk: your share of this one is used up"),
        // An error without a code of the system is that of reading a file that is too large (`read`).
        io::ErrorKind::FileTooLarge if error.raw_os_error().is_some() => {
            Some("the limit of the shell for the size of a file was reached (`ulimit -f` shows it): raise it, or write less")
        }
        _ => None,
    }
}

/// As [`read`], for UTF-8 text.
///
/// # Errors
/// As [`read`], and if the file is not UTF-8.
pub fn read_text(path: &Path, kind: Kind, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, kind, most)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads the rest of an open file. `expected` is its size as far as it is known, in bytes.
pub(crate) fn read_open(file: &mut impl Read, expected: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if expected <= most {
        file.take(most + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
            kind @ io::ErrorKind::OutOfMemory => io::Error::new(kind, format!("no memory for its {expected} bytes")),
            _ => error,
        })?;
    }
    if expected.max(bytes.len() as u64) > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes, the limit for such a file")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_a_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, Kind::Regular, 10).unwrap(), b"0123456789");
        assert_eq!(read(&path, Kind::Regular, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read(folder.path(), Kind::Regular, 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for kind in [Kind::Regular, Kind::Stream] {
            assert!(read(Path::new("/dev/zero"), kind, CONFIGURATION).unwrap_err().to_string().contains("device"));
        }
        // A file of the kernel, which reports a size of 0.
        assert!(read_text(Path::new("/proc/self/status"), Kind::Regular, CONFIGURATION).unwrap().starts_with("Name:"));
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, Kind::Regular, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn pipes_are_read_only_as_streams_and_never_block_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // The pipe has no writer: opening it in blocking mode would hang.
        assert!(read(&path, Kind::Regular, 9).unwrap_err().to_string().contains("pipe"));
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || fs::write(path, "text"))
        };
        assert_eq!(read_text(&path, Kind::Stream, 9).unwrap(), "text");
        writer.join().unwrap().unwrap();
        // The size of a pipe is not known before it is read.
        let writer = std::thread::spawn(move || fs::write(path, [b'x'; 100]));
        assert_eq!(read(&folder.path().join("pipe"), Kind::Stream, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let _ = writer.join().unwrap();
    }
}
