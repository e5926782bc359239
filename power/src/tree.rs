//! The files in which Linux shows its devices, below a root that is a parameter: `/` on a live system, any folder in a test.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;

use crate::{channel::Lost, problem::Unusable};

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
        fs::canonicalize(&self.root).is_ok_and(|root| root == Path::new("/"))
    }

    /// `path` (relative) in this tree.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Entries of the directory `path` whose names `wanted` accepts, sorted by name, with numbers compared as numbers. Empty if there is
    /// no such directory.
    pub(crate) fn list(&self, path: impl AsRef<Path>, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut found: Vec<(Vec<Piece>, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                wanted(&name).then(|| (pieces(&name), entry.path()))
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, path)| path).collect()
    }
}

/// A part of a name, so that `hwmon10` comes after `hwmon9`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Number(u64),
    Text(String),
}

fn pieces(name: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        found.push(if digits { Piece::Number(piece.parse().unwrap_or(u64::MAX)) } else { Piece::Text(piece.to_owned()) });
        rest = after;
    }
    found
}

/// The last component of `path`.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The last component of the target of the link `path`.
pub(crate) fn name_of_target(path: &Path) -> Option<String> {
    fs::read_link(path).ok().map(|target| name_of(&target)).filter(|name| !name.is_empty())
}

/// Most bytes that are read from a file. Files of the kernel are small, but a copied tree may hold any file.
const MOST: u64 = 1 << 20;

/// Opens what an untrusted file or folder names, for reading: regular files only. A pipe would block, and opening a device (a watchdog)
/// could have an effect.
///
/// # Errors
/// If `path` is of another kind, or can't be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let checked = |metadata: fs::Metadata| {
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
        }
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, not a file");
        metadata.is_file().then_some(()).ok_or_else(refused)
    };
    checked(fs::metadata(path)?)?;
    // A pipe that has taken its place meanwhile does not block either, nor does a file of the kernel that waits for what comes next.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    checked(file.metadata()?)?;
    Ok(file)
}

/// The text of the file `path`, up to [`MOST`] bytes; other bytes are replaced.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path.as_ref()).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line of the file `path`, without the zero byte that ends strings in the device tree.
pub(crate) fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = text(path)?;
    let line = text.lines().next()?.trim_end_matches('\0').trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The number in the file `path`.
pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    line(path)?.parse().ok()
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
    fn names_are_sorted_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["hwmon10", "hwmon9", "hwmon", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let tree = SystemFiles::new(folder.path());
        let names: Vec<String> = tree.list("", |name| name.starts_with("hwmon")).iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["hwmon", "hwmon9", "hwmon10"]);
        assert!(tree.list("nowhere", |_| true).is_empty());
    }

    #[test]
    fn only_files_are_read_and_large_ones_only_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        fs::write(path("large"), vec![b'x'; 3 << 20]).unwrap();
        assert_eq!((line(path("pipe")), line(path("zero"))), (None, None));
        assert!(matches!(Held::open(&path("pipe")), Err(Unusable::Unreadable { .. })));
        assert_eq!(text(path("large")).unwrap().len() as u64, MOST);
        assert!(SystemFiles::new("/").is_live() && SystemFiles::new("/proc/..").is_live() && !SystemFiles::new(folder.path()).is_live());
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
