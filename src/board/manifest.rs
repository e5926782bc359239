//! One file with all that Linux reports of a machine, so that tests on other machines see the same.

use std::path::Path;

use crate::machine;

/// Files that identify the machine.
const FILES: [&str; 12] = [
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/device-tree/compatible",
    "proc/device-tree/model",
    "sys/firmware/devicetree/base/compatible",
    "sys/firmware/devicetree/base/model",
    "sys/class/dmi/id/board_name",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/sys_vendor",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_core/cpus",
    "sys/devices/system/cpu/online",
];

/// Files of each CPU.
const FILES_OF_A_CPU: [&str; 4] = ["cpu_capacity", "cpufreq/cpuinfo_max_freq", "topology/core_cpus_list", "topology/thread_siblings_list"];

/// The files below `root` that detection and new profiles read, as TOML: each file's content by its path. None of them contains a serial
/// number or an address.
///
/// # Errors
/// If a text can't be written as TOML.
pub fn manifest(root: &Path) -> Result<String, toml::ser::Error> {
    const HEAD: &str = "# What Linux shows on this machine: each file by its path, and what is in it.\n\n";
    let mut files = toml::Table::new();
    let mut add = |path: String| {
        if let Some(text) = machine::text(&root.join(&path)) {
            files.insert(path, text.into());
        }
    };
    // Most systems have the device tree at both paths.
    let is_twin = |path: &str| path.starts_with("sys/firmware/") && root.join("proc/device-tree/compatible").exists();
    FILES.into_iter().filter(|path| !is_twin(path)).for_each(|path| add(path.to_owned()));
    for cpu in machine::list_numbered(&root.join("sys/devices/system/cpu"), "cpu") {
        let cpu = machine::name(&cpu);
        FILES_OF_A_CPU.into_iter().for_each(|file| add(format!("sys/devices/system/cpu/{cpu}/{file}")));
    }
    Ok(format!("{HEAD}{}", toml::to_string_pretty(&files)?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// `manifest` finds every file of the test machines, and no other.
    #[test]
    fn the_manifest_lists_every_file_of_a_test_machine() {
        let mut machines = 0;
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/board")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let written: toml::Table = manifest(machine::fixtures::machine(&format!("board/{name}")).path()).unwrap().parse().unwrap();
            let kept: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
            assert_eq!(written, kept, "{name}");
            machines += 1;
        }
        assert!(machines > 10);
        assert!(manifest(Path::new("/nonexistent")).unwrap().parse::<toml::Table>().unwrap().is_empty());
    }
}
