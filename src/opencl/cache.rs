//! Programs that a driver has built, kept on disk: building takes seconds, loading milliseconds.
//!
//! A damaged binary can abort the process inside the driver (Mesa's rusticl 22.3 does), so no entry reaches a driver before
//! its own hash was checked. An entry is a file named by the hash of everything that the binary depends on:
//!
//! ```text
//! bytes 0..16    "socbfs program 1"
//! bytes 16..32   the key
//! bytes 32..48   XXH3-128 of the binary, little-endian
//! bytes 48..     the binary
//! ```

use std::{
    env,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::{libc, unistd::geteuid};
use tempfile::NamedTempFile;
use twox_hash::XxHash3_128;

use super::info::DeviceInfo;

const MAGIC: &[u8; 16] = b"socbfs program 1";
const HEADER: usize = 48;

/// The largest entry that is read; those of known drivers have less than a hundredth of it.
const MOST: u64 = 64 << 20;

/// Everything that a binary depends on, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u8; 16]);

impl Key {
    pub(super) fn new(device: &DeviceInfo, source: &str, options: &str) -> Self {
        let mut bytes = Vec::with_capacity(source.len() + 512);
        let parts =
            [source, options, &device.name, &device.driver, &device.version, &device.platform, &device.platform_version, &device.vendor];
        for part in parts {
            // With lengths, so that no two lists of parts give the same bytes.
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Self(hash(&bytes))
    }
}

fn hash(bytes: &[u8]) -> [u8; 16] {
    XxHash3_128::oneshot(bytes).to_le_bytes()
}

/// A folder of programs.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `$SOCBFS_CACHE_DIR`, else `$XDG_CACHE_HOME/socbfs`, else `~/.cache/socbfs`, and in it `programs`. `None` where no such folder can
    /// be made, or the variable is set to nothing.
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

    /// In `folder`, which is made where it is absent. `None` where it can't be, or another user could put a program into it: what is
    /// loaded from it runs.
    pub(super) fn in_folder(folder: &Path) -> Option<Self> {
        if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            log::debug!("no cache of programs at {}: {error}", folder.display());
            return None;
        }
        match fs::metadata(folder) {
            Ok(metadata) if metadata.uid() != geteuid().as_raw() => {
                log::warn!("no cache of programs at {}: it belongs to another user", folder.display());
                return None;
            }
            // Made by an umask that lets a group write. What lies in it is looked at one by one.
            Ok(metadata) if metadata.mode() & 0o022 != 0 => {
                if let Err(error) = fs::set_permissions(folder, fs::Permissions::from_mode(0o700)) {
                    log::warn!("no cache of programs at {}: others may write to it, and that can't be changed: {error}", folder.display());
                    return None;
                }
            }
            Ok(_) => {}
            Err(error) => {
                log::debug!("no cache of programs at {}: {error}", folder.display());
                return None;
            }
        }
        Some(Self { folder: folder.to_owned() })
    }

    fn path(&self, key: &Key) -> PathBuf {
        let mut name = String::with_capacity(40);
        for byte in key.0 {
            // Writing to a String can't fail.
            let _ = write!(name, "{byte:02x}");
        }
        self.folder.join(name)
    }

    /// The binary, where there is one and it is whole.
    pub(super) fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut bytes = match read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    log::debug!("can't read the cached program {}: {error}", path.display());
                }
                return None;
            }
        };
        if let Some(damage) = damage(&bytes, key) {
            log::debug!("the cached program {} is {damage}, so it is built again", path.display());
            return None;
        }
        Some(bytes.split_off(HEADER))
    }

    /// Keeps `binary`, in place of what was there. A cache that can't be written is no error.
    pub(super) fn store(&self, key: &Key, binary: &[u8]) {
        let path = self.path(key);
        match self.write(&path, key, binary) {
            Ok(()) => log::debug!("program kept at {}", path.display()),
            Err(error) => log::debug!("can't keep a program at {}: {error}", path.display()),
        }
    }

    fn write(&self, path: &Path, key: &Key, binary: &[u8]) -> io::Result<()> {
        // Beside the target and then renamed: another process sees the old entry or the new one, never a part.
        let mut file = NamedTempFile::new_in(&self.folder)?;
        for part in [MAGIC.as_slice(), &key.0, &hash(binary), binary] {
            file.write_all(part)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Reads a file that nobody but this user can have written.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    // Nonblocking: a pipe must not hold us before it is refused.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user may have written it"));
    }
    if metadata.len() > MOST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is wrong with an entry.
fn damage(bytes: &[u8], key: &Key) -> Option<&'static str> {
    let Some((header, binary)) = bytes.split_at_checked(HEADER) else { return Some("truncated") };
    if &header[..16] != MAGIC {
        return Some("not ours, or of another version");
    }
    if header[16..32] != key.0 {
        return Some("of another program or device");
    }
    (binary.is_empty() || header[32..48] != hash(binary)).then_some("damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl::{DeviceKind, info::tests::invented};

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
    fn every_damage_is_noticed_before_a_driver_sees_it() {
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
        // And it is put right.
        cache.store(&key, &binary);
        assert_eq!(cache.load(&key), Some(binary));
    }

    #[test]
    fn a_program_that_another_user_may_have_put_there_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("socbfs/programs");
        let cache = Cache::in_folder(&programs).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&programs), mode(&folder.path().join("socbfs"))), (0o700, 0o700));
        let key = Key::new(&invented("p", "d", DeviceKind::Gpu, 4), "a", "");
        cache.store(&key, b"binary");
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
        // A folder that a group could write to is ours again.
        fs::set_permissions(&programs, fs::Permissions::from_mode(0o775)).unwrap();
        assert!(Cache::in_folder(&programs).is_some());
        assert_eq!(mode(&programs), 0o700);
        if !geteuid().is_root() {
            println!("SKIPPED: only root can give a folder to another user");
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
    fn a_cache_that_can_not_be_written_is_no_error() {
        let cache = Cache { folder: "/proc/nowhere".into() };
        let key = Key::new(&invented("p", "d", DeviceKind::Gpu, 4), "a", "");
        cache.store(&key, b"binary");
        assert_eq!(cache.load(&key), None);
    }
}
