//! The memory that is available: what the system could give without swapping, within the limit of a control group.

use std::{fs, path::Path};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use socbfs_machine::{self as machine, Fields, number};

/// Memory that the system can give this process without swapping, in bytes (`None` if no source reports it): at most what its control group
/// may still take and what its own limits (`ulimit -v`, `ulimit -d`) leave, and for a 32-bit process at most the addresses it has left.
pub fn available_bytes() -> Option<u64> {
    available_bytes_below(Path::new("/"))
}

/// As [`available_bytes`], for the machine whose files are below `root`.
pub fn available_bytes_below(root: &Path) -> Option<u64> {
    available_of(&machine::memory(root), root)
}

/// As [`available_bytes_below`], if /proc/meminfo below `root` has been read already.
pub fn available_of(memory: &Fields, root: &Path) -> Option<u64> {
    let is_live = root == Path::new("/");
    let live_32_bit = cfg!(target_pointer_width = "32") && is_live;
    let limits = if is_live { limits_leave() } else { None };
    [system_bytes(memory), group_bytes(root), limits, live_32_bit.then(addresses_left)].into_iter().flatten().min()
}

/// Bytes that the limits of this process on its addresses and on its data leave.
fn limits_leave() -> Option<u64> {
    let status = machine::status();
    let left = |resource, used| {
        let (soft, _) = getrlimit(resource).ok().filter(|&(soft, _)| soft != RLIM_INFINITY)?;
        #[allow(clippy::useless_conversion, reason = "limits have 32 bits on some systems")]
        Some(u64::from(soft).saturating_sub(status.bytes(used).unwrap_or(0)))
    };
    [left(Resource::RLIMIT_AS, "VmSize"), left(Resource::RLIMIT_DATA, "VmData")].into_iter().flatten().min()
}

/// Memory that the system has for all programs, without swapping. Linux reports it since 3.14. For older kernels it is free memory plus
/// copies of files, as `free` counted it, less shared memory, which is counted among those copies but freed only by swapping.
fn system_bytes(memory: &Fields) -> Option<u64> {
    let of_older_kernels = || {
        let cached = |field| memory.bytes(field).unwrap_or(0);
        let copies = cached("Buffers").saturating_add(cached("Cached")).saturating_sub(cached("Shmem"));
        Some(memory.bytes("MemFree")?.saturating_add(copies))
    };
    memory.bytes("MemAvailable").or_else(of_older_kernels)
}

/// Bytes of 32-bit addresses left: the 3 GiB that most 32-bit kernels give a process, less those in use.
fn addresses_left() -> u64 {
    const OF_A_PROCESS: u64 = 3 << 30;
    // The size in /proc/self/status is not used: under an emulator it is the emulator's.
    let used = fs::read_to_string("/proc/self/maps").map_or(0, |maps| mapped_bytes(&maps));
    OF_A_PROCESS.saturating_sub(used)
}

/// The sum of the mappings that /proc/self/maps lists, one `begin-end ...` in a line.
fn mapped_bytes(maps: &str) -> u64 {
    let size = |line: &str| {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        u64::from_str_radix(end, 16).ok()?.checked_sub(u64::from_str_radix(begin, 16).ok()?)
    };
    maps.lines().filter_map(size).sum()
}

/// Names of a control group's files, which differ between the versions of the interface.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Field of memory.stat: file pages that are freed when memory is short.
    cache: &'static str,
}

const VERSION_2: Files = Files { limit: "memory.max", usage: "memory.current", cache: "inactive_file " };
const VERSION_1: Files = Files { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", cache: "total_inactive_file " };

/// The memory that the control groups of this process leave it; `None` if there is no group with a limit.
fn group_bytes(root: &Path) -> Option<u64> {
    let groups = machine::text(root.join("proc/self/cgroup"))?;
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (mount, files) = match controllers {
            "" => (root.join("sys/fs/cgroup"), VERSION_2),
            list if list.split(',').any(|controller| controller == "memory") => (root.join("sys/fs/cgroup/memory"), VERSION_1),
            _ => continue,
        };
        // The group and all its ancestors. In a container the path may belong to the host, which is not visible here. The mount itself is
        // then the group.
        let mut folder = mount.join(path.trim_start_matches('/'));
        loop {
            least = least.into_iter().chain(left_in(&folder, &files)).min();
            if folder == mount || !folder.pop() {
                break;
            }
        }
    }
    least
}

/// The memory that one control group leaves.
fn left_in(folder: &Path, files: &Files) -> Option<u64> {
    // Without a limit, version 2 has "max", which is not a number, and version 1 a number near 2^63.
    let limit = number::<u64>(&folder.join(files.limit)).filter(|limit| *limit < 1 << 60)?;
    let usage = number::<u64>(&folder.join(files.usage))?;
    let stat = machine::text(folder.join("memory.stat")).unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix(files.cache)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_mappings_add_up() {
        let maps = "00010000-00012000 r-xp 00000000 fd:00 42    /bin/socbfs\nbead0000-bedad000 rw-p 00000000 00:00 0 [stack]\n\nodd\n";
        assert_eq!(mapped_bytes(maps), 0x2000 + 0x2dd000);
        // A test uses little memory, so 32-bit addresses must be left.
        assert!(available_bytes().is_some_and(|bytes| bytes > 16 << 20));
        assert!(addresses_left() > 1 << 30 || cfg!(target_pointer_width = "64"));
    }

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 4000 kB\nMemAvailable:    1024 kB\n");

    #[test]
    fn without_a_group_the_value_of_the_system_is_used() {
        assert_eq!(available_bytes_below(machine(&[MEMINFO]).path()), Some(1 << 20));
        assert_eq!(available_bytes_below(machine(&[]).path()), None);
        assert!(available_bytes().is_some_and(|bytes| bytes > 0));
    }

    /// As on an Odroid-XU3 with Linux 3.10.
    const OLD_MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal: 2041344 kB\nMemFree: 1024 kB\nBuffers: 512 kB\nCached: 2048 kB\nSwapCached: 9 kB\nShmem: 1536 kB\n");

    #[test]
    fn missing_available_memory_is_computed_from_other_fields() {
        assert_eq!(available_bytes_below(machine(&[OLD_MEMINFO]).path()), Some(2 << 20));
        let of = |text: &str| available_bytes_below(machine(&[("proc/meminfo", text)]).path());
        assert_eq!(of("MemFree: 7 kB\n"), Some(7 << 10));
        assert_eq!(of("MemFree: 7 kB\nCached: 1 kB\nShmem: 2 kB\n"), Some(7 << 10));
        assert_eq!(of("MemTotal: 7 kB\nCached: 1 kB\n"), None);
    }

    #[test]
    fn a_limit_applies_even_if_nothing_else_is_known() {
        let group = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "500000\n"), ("sys/fs/cgroup/memory.current", "0\n")];
        assert_eq!(available_bytes_below(machine(&group).path()), Some(500_000));
        assert_eq!(available_bytes_below(machine(&[&[OLD_MEMINFO][..], &group].concat()).path()), Some(500_000));
    }

    #[test]
    fn the_limit_of_the_tightest_group_applies() {
        let tree = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/user/shell\n"),
            ("sys/fs/cgroup/user/shell/memory.max", "max\n"),
            ("sys/fs/cgroup/user/memory.max", "500000\n"),
            ("sys/fs/cgroup/user/memory.current", "300000\n"),
            ("sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 100000\nactive_file 7\n"),
        ]);
        assert_eq!(available_bytes_below(tree.path()), Some(300_000));
    }

    #[test]
    fn limits_of_cgroup_version_1_are_read() {
        let tree = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n"),
            // The path of the host does not exist here; the mount does.
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "70000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "50000\n"),
        ]);
        assert_eq!(available_bytes_below(tree.path()), Some(20_000));
        let unlimited = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "4:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "50000\n"),
        ]);
        assert_eq!(available_bytes_below(unlimited.path()), Some(1 << 20));
    }
}
