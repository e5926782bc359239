//! The files in which Linux shows its devices, below a root that is a parameter: `/` on a live system, any folder in a test.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use socbfs_machine::open_regular;

use crate::{Lost, Unusable, name_of};

/// A file system with `sys/`, `proc/` and `usr/` in it.
#[derive(Debug, Clone)]
pub struct SystemFiles {
    root: PathBuf,
}

impl SystemFiles {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether it is the file system of this machine. Only its programs may be run: another tree may be a copy of an untrusted machine.
    pub fn is_live(&self) -> bool {
        socbfs_machine::is_live(&self.root)
    }

    /// `path` (relative) in this tree.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Entries of the directory `path` whose names `wanted` accepts ([`socbfs_machine::list`]).
    pub(crate) fn list(&self, path: impl AsRef<Path>, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        socbfs_machine::list(&self.path(path), wanted)
    }
}

/// The last component of the target of the link `path`.
pub(crate) fn name_of_target(path: &Path) -> Option<String> {
    fs::read_link(path).ok().map(|target| name_of(&target)).filter(|name| !name.is_empty())
}

/// Most bytes of a value, which is a number or a short word.
const VALUE: usize = 64;

/// A file that is opened once and read from its beginning each time, into a buffer on the stack.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
}

impl Held {
    /// Opens `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Unusable> {
        Self::try_open(path).map_err(|error| Unusable::io(path, &error))
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open_regular(path)? })
    }

    /// Opens `path` if it exists.
    pub(crate) fn open_if_any(path: &Path) -> Result<Option<Self>, Unusable> {
        match Self::try_open(path) {
            Ok(held) => Ok(Some(held)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Unusable::io(path, &error)),
        }
    }

    /// Reads the value and passes its text to `parse`.
    pub(crate) fn value<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Lost> {
        self.text::<VALUE, T>(parse)
    }

    /// Reads up to `MOST` bytes and passes their text to `parse`.
    pub(crate) fn text<const MOST: usize, T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Lost> {
        let mut buffer = [0; MOST];
        let length = self.file.read_at(&mut buffer, 0).map_err(|error| Lost::from(&error))?;
        if length == 0 {
            return Err(Lost::Gone);
        }
        let text = std::str::from_utf8(&buffer[..length]).map_err(|_| Lost::Malformed)?;
        parse(text.trim_end_matches('\0').trim()).ok_or(Lost::Malformed)
    }

    /// Reads a counter.
    pub(crate) fn counter(&self) -> Result<u64, Lost> {
        self.value(|text| text.parse().ok())
    }

    /// Reads a number.
    pub(crate) fn number(&self) -> Result<f64, Lost> {
        self.value(|text| text.parse::<f64>().ok().filter(|value| value.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(Held::open(&pipe), Err(Unusable::Unreadable { .. })));
    }

    #[test]
    fn a_held_file_gives_its_current_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value");
        fs::write(&path, "262143328850\n").unwrap();
        let held = Held::open(&path).unwrap();
        assert_eq!(held.counter(), Ok(262_143_328_850));
        for (text, result) in [
            ("-1600\n", Ok(-1600.0)),
            ("3.25 \n", Ok(3.25)),
            ("nan", Err(Lost::Malformed)),
            ("abc", Err(Lost::Malformed)),
            ("", Err(Lost::Gone)),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(held.number(), result, "{text:?}");
        }
        assert!(Held::open_if_any(&folder.path().join("none")).unwrap().is_none());
        assert!(matches!(Held::open(&folder.path().join("none")), Err(Unusable::Unreadable { .. })));
    }
}
