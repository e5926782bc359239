//! The environment of a run: everything that determines whether two figures may be compared.
//!
//! Values are read from files below a root directory (`/` on a live system, any directory in a test). A value that can't be read is absent
//! from the record, never made up.

use crate::record::{Build, Cpu, Environment, System, Temperature};
use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::SystemTime,
};

use socbfs_machine::{self as machine, caches, chosen, line, list_numbered, number};

impl Build {
    /// The build of this program.
    pub const THIS: Self = Self {
        version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
        commit: Cow::Borrowed(env!("SOCBFS_COMMIT")),
        compiler: Cow::Borrowed(env!("SOCBFS_COMPILER")),
        target: Cow::Borrowed(env!("SOCBFS_TARGET")),
        opt_level: Cow::Borrowed(env!("SOCBFS_OPT_LEVEL")),
        target_features: Cow::Borrowed(env!("SOCBFS_TARGET_FEATURES")),
    };
}

impl Environment {
    /// Reads the environment below `root` (`/` for the live system).
    pub fn read(root: &Path) -> Self {
        Self {
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            build: Build::THIS,
            cpu: cpu(root),
            memory_bytes: machine::memory(root).bytes("MemTotal"),
            system: system(root),
            load: line(root.join("proc/loadavg")).and_then(|line| line.split(' ').next()?.parse().ok()),
            temperatures: temperatures(root),
            temperatures_after: Vec::new(),
        }
    }
}

/// Linux reports the time of a process in hundredths of a second (USER_HZ), whatever the rate of its own clock.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// Whether a cooling device of this kind slows a processor (a fan does not).
pub(crate) fn slows(kind: &str) -> bool {
    ["cpufreq", "Processor", "devfreq", "cpu-idle", "gpu"].iter().any(|part| kind.contains(part))
}

/// The state of clocks and power saving below `root`, a line for each part: limits and governors of clocks, boost, idle states.
pub fn power_saving(root: &Path) -> Vec<String> {
    let cpu = root.join("sys/devices/system/cpu");
    let clock = |folder: &Path, [governor, low, high]: [&str; 3], per_mhz: u64| {
        let mhz = |name: &str| number::<u64>(&folder.join(name)).map_or_else(|| "?".to_owned(), |value| (value / per_mhz).to_string());
        let governor = line(folder.join(governor))?;
        Some(format!("{}: governor {governor}, {} to {} MHz", machine::name(folder), mhz(low), mhz(high)))
    };
    let policies = list_numbered(&cpu.join("cpufreq"), "policy");
    let cpus = policies.iter().filter_map(|folder| clock(folder, ["scaling_governor", "scaling_min_freq", "scaling_max_freq"], 1000));
    let devices = machine::list(&root.join("sys/class/devfreq"), |_| true);
    let devices = devices.iter().filter_map(|folder| clock(folder, ["governor", "min_freq", "max_freq"], 1_000_000));
    let one = |name: &str, path: &str| Some(format!("{name}: {}", line(cpu.join(path))?));
    let others = [("boost", "cpufreq/boost"), ("no_turbo", "intel_pstate/no_turbo"), ("idle governor", "cpuidle/current_governor")];
    cpus.chain(devices).chain(others.into_iter().filter_map(|(name, path)| one(name, path))).collect()
}

/// Reads the current temperatures below `root` (`/` for the live system).
pub fn temperatures(root: &Path) -> Vec<Temperature> {
    let zone = |path: PathBuf| {
        let millidegrees: f64 = number(path.join("temp"))?;
        Some(Temperature { zone: line(path.join("type"))?, celsius: millidegrees / 1000.0 })
    };
    list_numbered(&root.join("sys/class/thermal"), "thermal_zone").into_iter().filter_map(zone).collect()
}

fn cpu(root: &Path) -> Cpu {
    let folder = root.join("sys/devices/system/cpu");
    let cpus = list_numbered(&folder, "cpu");
    let governors: BTreeSet<String> = cpus.iter().filter_map(|cpu| line(cpu.join("cpufreq/scaling_governor"))).collect();
    Cpu {
        model: machine::cpu_model(root),
        online: line(folder.join("online")),
        usable: std::thread::available_parallelism().map_or(1, usize::from),
        caches: caches(&folder.join("cpu0/cache")),
        max_khz: cpus.iter().filter_map(|cpu| number(cpu.join("cpufreq/cpuinfo_max_freq"))).collect(),
        governors: governors.into_iter().collect(),
        simd: simd(),
    }
}

fn system(root: &Path) -> System {
    let release = machine::text(root.join("etc/os-release")).unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    System {
        name: name.map(|name| name.trim_matches('"').to_owned()),
        kernel: machine::kernel(root),
        huge_pages: chosen(&root.join("sys/kernel/mm/transparent_hugepage/enabled")),
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn simd() -> Vec<Cow<'static, str>> {
    let found = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
    ];
    found.into_iter().filter_map(|(name, here)| here.then_some(name.into())).collect()
}

#[cfg(target_arch = "aarch64")]
fn simd() -> Vec<Cow<'static, str>> {
    use std::arch::is_aarch64_feature_detected;
    let found = [("neon", is_aarch64_feature_detected!("neon")), ("sve", is_aarch64_feature_detected!("sve"))];
    found.into_iter().filter_map(|(name, here)| here.then_some(name.into())).collect()
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn simd() -> Vec<Cow<'static, str>> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use socbfs_machine::Cache;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_environment_of_a_board_is_read_from_its_files() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        write(root, "proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xc0f\n\nHardware\t: ODROID-XU3\n");
        write(root, "proc/device-tree/model", "Hardkernel Odroid XU3\0");
        write(root, "proc/meminfo", "MemTotal:        2048000 kB\nMemFree: 5 kB\nMemAvailable:    1024 kB\n");
        write(root, "proc/loadavg", "0.52 0.58 0.59 1/597 13\n");
        write(root, "proc/sys/kernel/osrelease", "4.14.180\n");
        write(root, "etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n");
        write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write(root, "sys/devices/system/cpu/online", "0-1,10\n");
        for (cpu, governor, khz) in [(0, "ondemand", 1_400_000), (1, "ondemand", 1_400_000), (10, "performance", 2_000_000)] {
            write(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), governor);
            write(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), &format!("{khz}\n"));
        }
        for (file, text) in [("level", "2"), ("type", "Unified"), ("size", "512K"), ("shared_cpu_list", "0-1")] {
            write(root, &format!("sys/devices/system/cpu/cpu0/cache/index2/{file}"), text);
        }
        write(root, "sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
        write(root, "sys/class/thermal/thermal_zone0/temp", "51500\n");
        write(root, "sys/class/thermal/thermal_zone1/type", "broken\n");

        let e = Environment::read(root);
        assert_eq!(e.cpu.model.as_deref(), Some("implementer 0x41 part 0xc0f (Hardkernel Odroid XU3)"));
        assert_eq!(e.memory_bytes, Some(2_048_000 * 1024));
        assert_eq!(crate::bench::available_memory(root), Some(1024 * 1024));
        assert_eq!(e.load, Some(0.52));
        assert_eq!(e.system.kernel.as_deref(), Some("4.14.180"));
        assert_eq!(e.system.name.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(e.system.huge_pages.as_deref(), Some("madvise"));
        assert_eq!(e.cpu.online.as_deref(), Some("0-1,10"));
        assert_eq!(e.cpu.governors, ["ondemand", "performance"]);
        assert_eq!(e.cpu.max_khz, [1_400_000, 1_400_000, 2_000_000]);
        let cache = Cache { level: 2, kind: "Unified".into(), bytes: 512 << 10, shared_by: Some("0-1".into()) };
        assert_eq!(e.cpu.caches, [cache]);
        assert_eq!(e.temperatures, [Temperature { zone: "cpu-thermal".into(), celsius: 51.5 }]);
    }

    #[test]
    fn absent_files_leave_fields_empty() {
        let tree = tempfile::tempdir().unwrap();
        let e = Environment::read(tree.path());
        assert_eq!((e.cpu.model, e.memory_bytes, e.load, e.system.kernel), (None, None, None, None));
        assert!(e.cpu.governors.is_empty() && e.temperatures.is_empty() && e.cpu.caches.is_empty());
        assert!(e.cpu.usable >= 1);
        assert!(e.time.ends_with('Z') && e.time.len() == 20, "{}", e.time);
    }
}
