//! Programs that a driver has built, kept on disk: building takes seconds, loading milliseconds.
//!
//! A damaged binary can abort the process inside the driver (Mesa's rusticl 22.3 does), so no entry reaches a driver before its own hash
//! has been checked. An entry is a file named by the hash of everything that the binary depends on, except the files of the driver, which
//! are in the entry:
//!
//! ```text
//! bytes 0..16    "socbfs program 1"
//! bytes 16..32   the key
//! bytes 32..48   a hash of the rest: two of the standard library's, of 64 bits each
//! bytes 48..     a line for each library of the process that stored the entry, an empty line, and the binary
//! ```
//!
//! Entries of replaced drivers and of settings that are no longer used would pile up, so the folder is bounded. Whenever an entry is added,
//! entries that were not loaded for [`MOST_DAYS`] are deleted, and then those that were loaded longest ago, until at most [`MOST_BYTES`]
//! are left. Apart from entries, which are known by their names and first bytes, only temporary files of killed processes are deleted.
//! Another process that loads an entry at that moment either has it open already or builds its program again.

use std::{
    cmp::Reverse,
    env,
    fs::{self, File},
    hash::{DefaultHasher, Hasher as _},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use nix::unistd::geteuid;

use super::{
    info::DeviceInfo,
    probe::{libraries, surroundings, unchanged},
};
use crate::files::{Temporary, open_of_user, read_open};

const MAGIC: &[u8; 16] = b"socbfs program 1";
const HEADER: usize = 48;
/// Bytes that the entries of a folder may take together: some hundred programs.
const MOST_BYTES: u64 = 64 << 20;
/// Days after which an entry that was not loaded is deleted.
const MOST_DAYS: u64 = 180;
/// The beginning of the names of files that are being written.
const BEING_WRITTEN: &str = ".program-";
/// The age from which such a file counts as left behind by a killed process.
const MOST_TO_WRITE: Duration = Duration::from_secs(24 * 60 * 60);

/// The largest entry that is read. Entries of known drivers have less than a hundredth of it.
const MOST: u64 = 64 << 20;

/// Everything that a binary depends on, except the files of the driver, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u8; 16]);

impl Key {
    pub(super) fn new(device: &DeviceInfo, source: &str, options: &str) -> Self {
        Self::of(&[
            &surroundings(),
            source,
            options,
            &device.name,
            &device.driver,
            &device.version,
            &device.platform,
            &device.platform_version,
            &device.vendor,
        ])
    }

    /// The key of everything that `parts` describe.
    pub(super) fn of(parts: &[&str]) -> Self {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            // Lengths are included, so that no two lists of parts give the same bytes.
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Self(hash(&bytes))
    }

    /// The name of its entry.
    pub(super) fn name(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

fn hash(bytes: &[u8]) -> [u8; 16] {
    // The standard library may change it: then no entry is found, and each is made again.
    let salted = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(salt);
        hasher.write(bytes);
        hasher.finish()
    };
    (u128::from(salted(0)) << 64 | u128::from(salted(1))).to_le_bytes()
}

/// A folder of programs.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `$SOCBFS_CACHE_DIR`, else `$XDG_CACHE_HOME/socbfs`, else `~/.cache/socbfs`, and in it `programs`. `None` if no such folder can be
    /// used, or `SOCBFS_CACHE_DIR` is empty.
    pub(super) fn of_user() -> Option<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = match env::var_os("SOCBFS_CACHE_DIR") {
            Some(folder) if folder.is_empty() => return None,
            Some(folder) => PathBuf::from(folder),
            None => match variable("XDG_CACHE_HOME").filter(|path| path.is_absolute()) {
                Some(folder) => folder.join("socbfs"),
                None => variable("HOME")?.join(".cache/socbfs"),
            },
        };
        Self::in_folder(&base.join("programs"))
    }

    /// The cache in `folder`, which the first program that is kept creates. `None` if another user could put a program into it, since
    /// programs loaded from it are run.
    pub(super) fn in_folder(folder: &Path) -> Option<Self> {
        if folder.exists() { Self::made(folder) } else { Some(Self { folder: folder.to_owned() }) }
    }

    /// As [`in_folder`](Self::in_folder), in a folder that is created if it does not exist.
    fn made(folder: &Path) -> Option<Self> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| fs::metadata(folder));
        let metadata = made.inspect_err(|error| log::debug!("no cache of programs at {}: {error}", folder.display())).ok()?;
        if metadata.uid() != geteuid().as_raw() {
            log::warn!("no cache of programs at {}: it belongs to another user", folder.display());
            return None;
        }
        // The folder was made with a umask that lets others write. Its entries are checked one by one.
        if metadata.mode() & 0o022 != 0 {
            if let Err(error) = fs::set_permissions(folder, fs::Permissions::from_mode(0o700)) {
                log::warn!("no cache of programs at {}: others may write to it, and that can't be changed: {error}", folder.display());
                return None;
            }
        }
        Some(Self { folder: folder.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(key.name())
    }

    /// Calls `work`, which has a driver use the `entry` (if there is a cache). If the driver ends this process, the entry is gone: it must
    /// not end the next one.
    pub(super) fn aside<T>(entry: Option<(&Self, &Key)>, work: impl FnOnce() -> T) -> T {
        let Some((cache, key)) = entry else { return work() };
        let (entry, aside) = (cache.path(key), cache.folder.join(format!("{BEING_WRITTEN}{}", key.name())));
        // A folder that can't be written keeps the entry.
        let is_aside = fs::rename(&entry, &aside).is_ok();
        let done = work();
        if is_aside {
            // If that fails, the program is built again.
            let _ = fs::rename(&aside, &entry);
        }
        done
    }

    /// The binary, if there is one, it is undamaged, and the libraries are those with which it was stored.
    pub(super) fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let told = |error: &io::Error| {
            if error.kind() != io::ErrorKind::NotFound {
                log::debug!("can't read the cached program {}: {error}", path.display());
            }
        };
        let bytes = open_user_file(&path).and_then(|mut file| read_open(&mut file, 0, MOST)).inspect_err(told).ok()?;
        if let Some(damage) = damage(&bytes, key) {
            log::debug!("the cached program {} is {damage}, so it is built again", path.display());
            return None;
        }
        let Some(binary) = unchanged(&bytes[HEADER..]).map(<[u8]>::to_vec) else {
            log::debug!("the driver of the cached program {} has changed, so it is built again", path.display());
            return None;
        };
        // Records the time of the last use. In a folder that can't be written the old time stays, and so does the entry.
        let _ = open_user_file(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(binary)
    }

    /// Stores `binary` in place of an earlier one. A cache that can't be written is not an error.
    pub(super) fn store(&self, key: &Key, binary: &[u8]) {
        let path = self.path(key);
        match self.write(&path, key, binary) {
            Ok(()) => {
                log::debug!("program kept at {}", path.display());
                self.prune(&path, MOST_BYTES, SystemTime::now());
            }
            Err(error) => log::debug!("can't keep a program at {}: {error}", path.display()),
        }
    }

    fn write(&self, path: &Path, key: &Key, binary: &[u8]) -> io::Result<()> {
        // Written to a temporary file in the same folder and then renamed, so that another process sees the old entry or the new one, never
        // a part.
        Self::made(&self.folder).ok_or(io::ErrorKind::PermissionDenied)?;
        let (mut file, temporary) = Temporary::create(&self.folder, BEING_WRITTEN, 0o600)?;
        let content = [libraries().as_bytes(), b"\n", binary].concat();
        for part in [MAGIC.as_slice(), &key.0, &hash(&content), &content] {
            file.write_all(part)?;
        }
        temporary.persist(path)
    }
}

/// Opens a file that no other user can have written.
fn open_user_file(path: &Path) -> io::Result<File> {
    let (file, metadata) = open_of_user(path, File::options().read(true))?;
    if metadata.mode() & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user may have written it"));
    }
    Ok(file)
}

/// An entry on disk, or a temporary file that was to become one.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    /// Deletes entries that are too old or exceed the size. `new` stays.
    fn prune(&self, new: &Path, most_bytes: u64, now: SystemTime) {
        let old = |entry: &Entry, most: Duration| now.duration_since(entry.used).is_ok_and(|age| age > most);
        // Returns the bytes that are free then.
        let delete = |entry: &Entry| match fs::remove_file(&entry.path) {
            Ok(()) => {
                log::debug!("cached program {} deleted: not used lately", entry.path.display());
                entry.bytes
            }
            Err(error) => {
                log::debug!("can't delete the cached program {}: {error}", entry.path.display());
                0
            }
        };
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (name, path) = (file.file_name(), file.path());
            let Some(name) = name.to_str() else { continue };
            let about = file.metadata().and_then(|about| Ok((about.is_file(), about.len(), about.modified()?)));
            let Ok((true, bytes, used)) = about else { continue };
            let entry = Entry { path, bytes, used };
            if name.starts_with(BEING_WRITTEN) {
                if old(&entry, MOST_TO_WRITE) {
                    delete(&entry);
                }
            } else if entry.path != new && is_name(name) && is_ours(&entry.path) {
                entries.push(entry);
            }
        }
        // The most recently used entries come first.
        entries.sort_by_key(|entry| Reverse(entry.used));
        let mut kept = fs::metadata(new).map_or(0, |about| about.len());
        for entry in entries {
            kept += entry.bytes;
            if kept > most_bytes || old(&entry, Duration::from_secs(MOST_DAYS * 24 * 60 * 60)) {
                kept -= delete(&entry);
            }
        }
    }
}

/// Whether a file is named as entries are.
fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a file is this user's and begins as entries do.
fn is_ours(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    open_user_file(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *MAGIC
}

/// The fault of an entry; `None` if it is good.
fn damage(bytes: &[u8], key: &Key) -> Option<&'static str> {
    let Some((header, content)) = bytes.split_at_checked(HEADER) else { return Some("truncated") };
    if &header[..16] != MAGIC {
        return Some("not from socbfs, or of another version");
    }
    if header[16..32] != key.0 {
        return Some("of another program or device");
    }
    (header[32..48] != hash(content)).then_some("damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        files::can_give_away,
        opencl::{DeviceKind, info::tests::invented},
    };

    #[test]
    fn everything_a_binary_depends_on_is_in_its_key() {
        let device = invented("p", "d", DeviceKind::Gpu, 4);
        let key = Key::new(&device, "source", "-O");
        assert_eq!(Key::new(&device.clone(), "source", "-O"), key);
        for other in [
            Key::new(&device, "source2", "-O"),
            Key::new(&device, "source", "-O2"),
            Key::new(&device, "source-", "O"),
            Key::new(&DeviceInfo { name: "e".into(), ..device.clone() }, "source", "-O"),
            Key::new(&DeviceInfo { driver: "2".into(), ..device.clone() }, "source", "-O"),
            Key::new(&DeviceInfo { version: "2".into(), ..device.clone() }, "source", "-O"),
            Key::new(&DeviceInfo { platform: "q".into(), ..device.clone() }, "source", "-O"),
            Key::new(&DeviceInfo { platform_version: "q".into(), ..device.clone() }, "source", "-O"),
        ] {
            assert_ne!(other, key);
        }
    }

    #[test]
    fn damaged_entries_are_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().to_owned() };
        let device = invented("p", "d", DeviceKind::Gpu, 4);
        let (key, other) = (Key::new(&device, "a", ""), Key::new(&device, "b", ""));
        assert_eq!(cache.load(&key), None);
        let binary: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        cache.store(&key, &binary);
        assert_eq!(cache.load(&key).as_ref(), Some(&binary));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");

        let path = cache.path(&key);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.load(&key), None, "byte {at} changed");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(cache.load(&key), None, "cut to {length}");
        }
        fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
        assert_eq!(cache.load(&key), None, "lengthened");
        // An entry of another program under this name.
        fs::write(cache.path(&other), &whole).unwrap();
        assert_eq!(cache.load(&other), None);
        // Storing repairs the entry.
        cache.store(&key, &binary);
        assert_eq!(cache.load(&key), Some(binary));
    }

    #[test]
    fn programs_that_another_user_may_have_written_are_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("socbfs/programs");
        let cache = Cache::in_folder(&programs).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let key = Key::new(&invented("p", "d", DeviceKind::Gpu, 4), "a", "");
        assert!(cache.load(&key).is_none() && !folder.path().join("socbfs").exists(), "a cache without a program has no folder");
        cache.store(&key, b"binary");
        assert_eq!((mode(&programs), mode(&folder.path().join("socbfs"))), (0o700, 0o700));
        let path = cache.path(&key);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(cache.load(&key).as_deref(), Some(&b"binary"[..]));
        for open in [0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            assert_eq!(cache.load(&key), None, "{open:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(cache.load(&key).is_some());
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(cache.load(&key), None, "a link");
        // A folder that a group can write to is made private.
        fs::set_permissions(&programs, fs::Permissions::from_mode(0o775)).unwrap();
        assert!(Cache::in_folder(&programs).is_some());
        assert_eq!(mode(&programs), 0o700);
        if !can_give_away() {
            return;
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        assert_eq!(cache.load(&key), None, "of another user");
        std::os::unix::fs::chown(&programs, Some(65534), None).unwrap();
        assert!(Cache::in_folder(&programs).is_none());
    }

    #[test]
    fn old_entries_are_deleted_and_foreign_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { folder: folder.path().to_owned() };
        let device = invented("p", "d", DeviceKind::Gpu, 4);
        let keys: Vec<Key> = (0..6).map(|i| Key::new(&device, &i.to_string(), "")).collect();
        let now = SystemTime::now();
        let day = Duration::from_secs(24 * 60 * 60);
        let used = |path: &Path, days: u32| File::options().append(true).open(path).unwrap().set_modified(now - day * days).unwrap();
        // The first entry was used last.
        for (days, key) in (1..).zip(&keys) {
            cache.store(key, &[7; 1000]);
            used(&cache.path(key), days);
        }
        let foreign = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            used(&path, 1000);
            path
        };
        let others = [
            foreign("README", MAGIC),
            foreign("0123456789abcdef0123456789abcdef", b"something else of that name"),
            foreign("0123456789ABCDEF0123456789ABCDEF", MAGIC),
            foreign(".program-new", b"half"),
        ];
        let killed = foreign(".program-old", b"half");
        used(&others[3], 0);
        fs::create_dir(folder.path().join("fedcba9876543210fedcba9876543210")).unwrap();
        let left = || keys.iter().map(|key| cache.path(key).exists()).collect::<Vec<_>>();

        // Loading counts as use.
        assert!(cache.load(&keys[5]).is_some());
        let bytes = fs::metadata(cache.path(&keys[4])).unwrap().len();
        cache.prune(&cache.path(&keys[4]), 3 * bytes + bytes / 2, SystemTime::now());
        assert_eq!(left(), [true, false, false, false, true, true], "the new one, and two that were used last");
        assert!(!killed.exists() && others.iter().all(|path| path.exists()));
        // Storing prunes by age.
        used(&cache.path(&keys[0]), MOST_DAYS as u32 + 1);
        used(&cache.path(&keys[5]), MOST_DAYS as u32 - 1);
        cache.store(&keys[1], b"binary");
        assert_eq!(left(), [false, true, false, false, true, true]);
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_not_an_error() {
        let cache = Cache { folder: "/proc/nowhere".into() };
        let key = Key::new(&invented("p", "d", DeviceKind::Gpu, 4), "a", "");
        cache.store(&key, b"binary");
        assert_eq!(cache.load(&key), None);
    }
}
