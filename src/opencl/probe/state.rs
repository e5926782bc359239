//! What the behaviour of drivers depends on: a success is remembered for it.

use std::{env, fs, ops::Range, os::unix::fs::MetadataExt, path::Path};

use nix::sys::resource::{Resource, getrlimit};

use super::super::cache::Key;

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

/// The name under which a success is remembered: the machine since it was started, the surroundings of this process, the installed drivers.
pub(super) fn key() -> Key {
    let mut parts = vec![env!("CARGO_PKG_VERSION").to_owned()];
    let mut variables: Vec<String> = env::vars_os()
        .filter(|(name, _)| VARIABLES.split_whitespace().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())))
        .map(|variable| format!("{variable:?}"))
        .collect();
    variables.sort_unstable();
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
    Key::of(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The files in a folder.
fn in_folder(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.filter_map(|entry| file(entry.path().to_str()?)).collect();
    files.sort_unstable();
    files
}

/// A file as a line that changes with its content.
fn file(path: &str) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    Some(format!("{FILE}{} {} {}.{} {path}", about.len(), about.ino(), about.mtime(), about.mtime_nsec()))
}

/// The beginning of such a line.
const FILE: &str = "file ";

/// The mapped files of /proc/PID/maps, with their addresses.
pub(in crate::opencl) fn mappings(maps: &str) -> impl Iterator<Item = (Range<usize>, &Path)> {
    maps.lines().filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let at = |text| usize::from_str_radix(text, 16).ok();
        Some((at(start)?..at(end)?, Path::new(&line[line.find('/')?..])))
    })
}

/// The libraries in /proc/PID/maps, a line each.
pub(super) fn files(maps: &str) -> String {
    let mut files: Vec<&str> = mappings(maps).filter_map(|(_, path)| path.to_str()).collect();
    files.sort_unstable();
    files.dedup();
    let lines = files.into_iter().filter(|path| path.ends_with(".so") || path.contains(".so.")).filter_map(file);
    lines.map(|line| line + "\n").collect()
}

/// Whether all files of an answer are as they were.
pub(super) fn unchanged(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    answer.lines().filter(|line| line.starts_with(FILE)).all(|line| {
        let path = line.splitn(5, ' ').nth(4);
        path.and_then(file).is_some_and(|now| now == line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_library_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib a.so.1");
        fs::write(&library, "one").unwrap();
        let maps = format!(
            "7f0000000000-7f0000001000 r-xp 00000000 08:01 7 {0}\n7f0000001000-7f0000002000 r--p 00000000 08:01 7 {0}\n\
             7f0000003000-7f0000004000 rw-p 00000000 00:00 0 [heap]\n7f0000005000-7f0000006000 rw-p 00000000 00:00 0\n",
            library.display()
        );
        let found = mappings(&maps).next().unwrap();
        assert_eq!(found, (0x7f00_0000_0000..0x7f00_0000_1000, library.as_path()));
        let answer = format!("begun\n{}end", files(&maps));
        assert_eq!(answer.lines().count(), 3, "{answer}");
        assert!(unchanged(answer.as_bytes()));
        fs::write(&library, "other").unwrap();
        assert!(!unchanged(answer.as_bytes()));
        fs::remove_file(&library).unwrap();
        assert!(!unchanged(answer.as_bytes()));
    }
}
