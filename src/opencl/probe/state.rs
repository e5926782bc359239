//! What the behaviour of drivers depends on. Whatever is remembered of a driver is remembered for it: a success, and what it has built.

use std::{
    env,
    ffi::{CStr, c_int, c_void},
    fs,
    ops::Range,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::OnceLock,
};

use nix::{
    libc,
    sys::resource::{Resource, getrlimit},
};

use crate::opencl::{
    cache::Key,
    library::{DRIVERS, given_drivers},
};

/// Beginnings of the names of environment variables that drivers, loaders and the dynamic linker read.
const VARIABLES: &str = "OCL_ OPENCL_ CL_ CLC_ LD_ LLVM_ POCL_ OCLGRIND_ RUSTICL_ MESA_ GALLIUM_ LP_ DRI_ PAN_ BIFROST_ MIDGARD_ MALI_ FD_ \
    IR3_ V3D_ AMD_ AMDGPU_ RADEON ROC_ HSA_ HIP_ GPU_ CUDA_ NV INTEL_ IGC_ NEO ZE_";

/// Files and folders whose presence decides what drivers do: without some of them, drivers are known to crash.
const PLACES: &str = "/sys/devices/system/cpu/cpu0/topology /sys/devices/system/node /proc/cpuinfo /dev/shm /dev/kgsl-3d0 /dev/mali0 \
    /dev/kfd /dev/nvidia0 /dev/nvidiactl";

/// The limits of a process that drivers run into.
const LIMITS: [Resource; 7] = [
    Resource::RLIMIT_AS,
    Resource::RLIMIT_DATA,
    Resource::RLIMIT_STACK,
    Resource::RLIMIT_NOFILE,
    Resource::RLIMIT_NPROC,
    Resource::RLIMIT_MEMLOCK,
    Resource::RLIMIT_FSIZE,
];

/// The surroundings of the process for which this one tries drivers. Its own may differ a little, since it was started otherwise.
pub(super) static ASKING: OnceLock<String> = OnceLock::new();

/// A short text for the machine since it was started, the surroundings of this process now, and the installed drivers.
pub(in crate::opencl) fn surroundings() -> String {
    if let Some(asking) = ASKING.get() {
        return asking.clone();
    }
    let mut parts = vec![env!("CARGO_PKG_VERSION").to_owned()];
    let mut variables: Vec<String> = env::vars_os()
        .filter(|(name, _)| VARIABLES.split_whitespace().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())))
        .filter(|(name, _)| name != DRIVERS)
        .map(|variable| format!("{variable:?}"))
        .collect();
    variables.sort_unstable();
    parts.push(format!("{:?}", given_drivers()));
    parts.append(&mut variables);
    // A GPU that hangs may work after a restart, and the other way round.
    parts.push(fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default());
    parts.extend(LIMITS.map(|limit| format!("{:?}", getrlimit(limit))));
    parts.extend(PLACES.split_whitespace().map(|place| Path::new(place).exists().to_string()));
    parts.extend(in_folder("/dev/dri"));
    // The cache of the dynamic linker changes with every library that is installed.
    parts.extend(file("/etc/ld.so.cache"));
    let vendors = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].into_iter().filter_map(|name| env::var(name).ok());
    for folder in vendors.chain(["/etc/OpenCL/vendors".to_owned()]) {
        parts.extend(file(&folder));
        parts.extend(in_folder(&folder));
    }
    for library in env::var("OPENCL_DYLIB_PATH").unwrap_or_default().split(';') {
        parts.extend(file(library));
    }
    Key::of(&parts.iter().map(String::as_str).collect::<Vec<_>>()).name()
}

/// The files in a folder.
fn in_folder(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.filter_map(|entry| file(entry.path().to_str()?)).collect();
    files.sort_unstable();
    files
}

/// A file as a line that changes with its content, and if a link on its path leads to another file. (Not the time of its modification,
/// which copies may keep.)
fn file(path: &str) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    Some(format!("{} {} {}.{} {path}", about.len(), about.ino(), about.ctime(), about.ctime_nsec()))
}

/// The mapped files of /proc/PID/maps, with their addresses.
pub(in crate::opencl) fn mappings(maps: &str) -> impl Iterator<Item = (Range<usize>, &Path)> {
    maps.lines().filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let at = |text| usize::from_str_radix(text, 16).ok();
        Some((at(start)?..at(end)?, Path::new(&line[line.find('/')?..])))
    })
}

/// The libraries of this process, a line each, by the paths at which the dynamic linker found them.
pub(in crate::opencl) fn libraries() -> String {
    unsafe extern "C" fn add(library: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
        // SAFETY: the linker's description is valid during the call, and so is the vector below.
        let (path, paths) = unsafe { ((*library).dlpi_name, &mut *paths.cast::<Vec<String>>()) };
        if !path.is_null() {
            // SAFETY: the linker's strings end with a zero byte.
            paths.push(unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned());
        }
        0
    }
    let mut paths = Vec::<String>::new();
    // SAFETY: the function is called before this call returns.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut paths).cast()) };
    paths.iter().filter_map(|path| Some(file(path)? + "\n")).collect()
}

/// What stands behind the [`libraries`] at the beginning of `entry` and an empty line. `None` if one of them has changed.
pub(in crate::opencl) fn unchanged(mut entry: &[u8]) -> Option<&[u8]> {
    loop {
        let (line, rest) = entry.split_at(entry.iter().position(|&byte| byte == b'\n')?);
        entry = &rest[1..];
        if line.is_empty() {
            return Some(entry);
        }
        let line = std::str::from_utf8(line).ok()?;
        if file(line.splitn(4, ' ').nth(3)?)? != line {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_changed_library_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (library, link) = (folder.path().join("lib a.so.1"), folder.path().join("lib.so"));
        fs::write(&library, "one").unwrap();
        symlink(&library, &link).unwrap();
        let maps = format!(
            "7f0000000000-7f0000001000 r-xp 00000000 08:01 7 {0}\n7f0000001000-7f0000002000 r--p 00000000 08:01 7 {0}\n\
             7f0000003000-7f0000004000 rw-p 00000000 00:00 0 [heap]\n7f0000005000-7f0000006000 rw-p 00000000 00:00 0\n",
            library.display()
        );
        let found = mappings(&maps).next().unwrap();
        assert_eq!(found, (0x7f00_0000_0000..0x7f00_0000_1000, library.as_path()));
        let entry = |path: &Path| format!("{}{}\n\nbinary\n\nx", libraries(), file(path.to_str().unwrap()).unwrap()).into_bytes();
        let (by_path, by_link) = (entry(&library), entry(&link));
        for entry in [&by_path, &by_link] {
            assert!(entry.iter().filter(|&&byte| byte == b'\n').count() > 4, "the C library is a library");
            assert_eq!(unchanged(entry), Some(&b"binary\n\nx"[..]));
        }
        // A copy may keep the time of its origin.
        let before = fs::metadata(&library).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&library, "two").unwrap();
        fs::File::options().write(true).open(&library).unwrap().set_modified(before).unwrap();
        assert_eq!((unchanged(&by_path), unchanged(&by_link)), (None, None));
        let (by_path, by_link) = (entry(&library), entry(&link));
        let other = folder.path().join("lib a.so.2");
        fs::write(&other, "two").unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        assert!(unchanged(&by_path).is_some() && unchanged(&by_link).is_none());
        fs::remove_file(&library).unwrap();
        assert_eq!(unchanged(&by_path), None);
    }
}
