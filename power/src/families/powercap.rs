//! RAPL of Intel and AMD through Linux's powercap: `/sys/class/powercap/intel-rapl:N[:M]/energy_uj`.
//!
//! The file `enabled` concerns power capping, not the counter. `psys` contains the package, `core` and `uncore` are inside the package, and
//! `dram` is outside; AMD's `core` is a single core. `intel-rapl-mmio` shows the package a second time, and the dies of AMD's first Zen
//! generations all show the same counter.

use std::{path::Path, time::Duration};

use crate::{
    Channel, Component, Domain, Family, Held, Pace, Reading, Scope, Signal, Source, SystemFiles, Unusable, line, name_of, number, text,
};

/// Interval at which the hardware refreshes the counter.
const REFRESH: Duration = Duration::from_millis(1);

/// Interval at which a counter is read within a window, so that a wrap or the loss of the sensor is noticed. A much shorter interval would
/// not be more exact, since the time of the last refresh is unknown.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_millis(500);

/// The zones of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let amd = is_amd(tree);
    let mut zones = tree.list("sys/class/powercap", |name| name.starts_with("intel-rapl") && name.contains(':'));
    // A mirror comes after its original.
    zones.sort_by_key(|zone| name_of(zone).starts_with("intel-rapl-mmio"));
    let mut found: Vec<Source> = zones.iter().filter_map(|zone| zone_at(zone, amd)).collect();
    mark_mirrors(&mut found);
    found
}

fn zone_at(zone: &Path, amd: bool) -> Option<Source> {
    let id = name_of(zone);
    let name = line(zone.join("name"))?;
    // A zone below another is a part of it, so its package is in the name of its parent.
    let parent = id.rsplit_once(':').and_then(|(parent, _)| line(zone.parent()?.join(parent).join("name")));
    let (package, die) = package_and_die(parent.as_deref().unwrap_or(&name));
    // AMD's dies show the counter of their package.
    let die = die.filter(|_| !amd);
    let (part, domain, scope) = measured(&name, package, die);
    let domain = if amd && domain == Domain::Cpu { Domain::CpuCore } else { domain };
    let path = zone.join("energy_uj");
    let read = Held::open(&path).and_then(|energy| match energy.counter() {
        Ok(_) => Ok(move || energy.counter().map(Reading::Counter)),
        Err(reason) => Err(Unusable::Unreadable { place: path.display().to_string(), reason }),
    });
    let range = number(zone.join("max_energy_range_uj")).filter(|&range| range > 0).unwrap_or(u64::MAX);
    let channel = Channel {
        family: Family::Powercap,
        id,
        label: Some(name),
        domain,
        scope,
        part,
        signal: Signal::Counter { joules_per_count: 1e-6, range },
        refresh: REFRESH,
        place: path.display().to_string(),
    };
    Some(Source::single(channel, Pace::Every(KEEP_ALIVE), read))
}

/// What the zone or the perf event `name` measures.
pub(super) fn measured(name: &str, package: u32, die: Option<u32>) -> (Component, Domain, Scope) {
    let whole = Component::package(package).of_die(die);
    let (part, domain) = match name {
        "psys" | "energy-psys" => return (Component::board(), Domain::Board, Scope::BoardInput),
        "dram" | "energy-ram" => (Component::memory(package).of_die(die), Domain::Memory),
        "uncore" | "energy-gpu" => (whole.inner("uncore"), Domain::Gpu),
        "core" | "energy-cores" => (whole.inner("core"), Domain::Cpu),
        "energy-pkg" => (whole, Domain::Package),
        name if name.starts_with("package") => (whole, Domain::Package),
        other => (whole.inner(other), Domain::Soc),
    };
    (part, domain, Scope::CpuPackage)
}

/// The numbers 1 and 2 of `package-1-die-2`; package 0 if the name has none.
fn package_and_die(name: &str) -> (u32, Option<u32>) {
    let mut words = name.split('-');
    let mut after = |word: &str| words.find(|found| *found == word).and_then(|_| words.next()?.parse().ok());
    (after("package").unwrap_or(0), after("die"))
}

/// Keeps the first usable one of several zones that measure the same part, and marks the others as mirrors of it.
fn mark_mirrors(found: &mut [Source]) {
    for index in 1..found.len() {
        let (before, rest) = found.split_at_mut(index);
        let part = &rest[0].channels[0].part;
        let original = before.iter().find(|source| source.sensor.is_ok() && source.channels[0].part == *part);
        if let Some(original) = original {
            rest[0].sensor = Err(Unusable::Mirror { of: original.channels[0].name() });
        }
    }
}

/// Whether the processor is from AMD, or from Hygon, whose design is AMD's.
pub(super) fn is_amd(tree: &SystemFiles) -> bool {
    line_of_cpuinfo(tree, "vendor_id").is_some_and(|vendor| vendor == "AuthenticAMD" || vendor == "HygonGenuine")
}

fn line_of_cpuinfo(tree: &SystemFiles, key: &str) -> Option<String> {
    let text = text(tree.path("proc/cpuinfo"))?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found.trim() == key)?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::tests::fixture::Fixture;

    fn zone(fixture: &Fixture, id: &str, name: &str, energy: &str) {
        let zone = format!("sys/class/powercap/{id}");
        fixture.file(&format!("{zone}/name"), name);
        fixture.file(&format!("{zone}/energy_uj"), energy);
        fixture.file(&format!("{zone}/enabled"), "0");
        fixture.file(&format!("{zone}/max_energy_range_uj"), "262143328850");
    }

    fn intel() -> Fixture {
        let fixture = Fixture::new();
        fixture.file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
        for (id, name) in [
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:0:1", "uncore"),
            ("intel-rapl:0:2", "dram"),
            ("intel-rapl:1", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
        ] {
            zone(&fixture, id, name, "123456789");
        }
        fixture.file("sys/class/powercap/intel-rapl/enabled", "1");
        fixture
    }

    #[test]
    fn zones_are_found_with_their_parts() {
        let found = discover(&intel().tree());
        let names: Vec<(String, Domain, String)> =
            found.iter().map(|s| (s.channels[0].id.clone(), s.channels[0].domain, s.channels[0].part.to_string())).collect();
        let expected = [
            ("intel-rapl-mmio:0", Domain::Package, "board/soc/package-0"),
            ("intel-rapl:0", Domain::Package, "board/soc/package-0"),
            ("intel-rapl:0:0", Domain::Cpu, "board/soc/package-0/core"),
            ("intel-rapl:0:1", Domain::Gpu, "board/soc/package-0/uncore"),
            ("intel-rapl:0:2", Domain::Memory, "board/memory-0"),
            ("intel-rapl:1", Domain::Board, "board"),
        ];
        for (id, domain, part) in expected {
            assert!(names.contains(&(id.to_owned(), domain, part.to_owned())), "{id} in {names:?}");
        }
        assert_eq!(names.len(), expected.len());
        let package = found.iter().find(|s| s.channels[0].id == "intel-rapl:0").unwrap();
        assert_eq!(package.channels[0].signal, Signal::Counter { joules_per_count: 1e-6, range: 262_143_328_850 });
    }

    #[test]
    fn memory_mapped_registers_mirror_the_package() {
        let mut found = discover(&intel().tree());
        let state = |id: &str, found: &[Source]| found.iter().find(|s| s.channels[0].id == id).unwrap().sensor.as_ref().err().cloned();
        let mirror = Unusable::Mirror { of: "powercap:intel-rapl:0".into() };
        assert_eq!(state("intel-rapl-mmio:0", &found), Some(mirror));
        assert_eq!(state("intel-rapl:0", &found), None);
        // A zone is a mirror only if the original is usable.
        for source in &mut found {
            source.sensor = Err(Unusable::Still { milliseconds: 1 });
        }
        mark_mirrors(&mut found);
        assert!(matches!(state("intel-rapl-mmio:0", &found), Some(Unusable::Still { .. })));
    }

    #[test]
    fn dies_of_amd_mirror_one_counter_and_those_of_intel_do_not() {
        // AMD has no counter for memory, and its `core` is a single core.
        for (vendor, mirrors, core) in [("AuthenticAMD", 3, Domain::CpuCore), ("GenuineIntel", 0, Domain::Cpu)] {
            let fixture = Fixture::new();
            fixture.file("proc/cpuinfo", &format!("vendor_id\t: {vendor}\n"));
            for die in 0..4 {
                zone(&fixture, &format!("intel-rapl:{die}"), &format!("package-0-die-{die}"), "55555");
                if vendor == "GenuineIntel" {
                    zone(&fixture, &format!("intel-rapl:{die}:0"), "dram", "4444");
                }
            }
            zone(&fixture, "intel-rapl:0:1", "core", "333");
            let found = discover(&fixture.tree());
            assert_eq!(found.iter().find(|s| s.channels[0].id == "intel-rapl:0:1").unwrap().channels[0].domain, core);
            let count = found.iter().filter(|s| matches!(s.sensor, Err(Unusable::Mirror { .. }))).count();
            assert_eq!(count, mirrors, "{vendor}");
        }
    }

    #[test]
    fn package_and_die_are_parsed_from_zone_names() {
        assert_eq!(package_and_die("package-1-die-2"), (1, Some(2)));
        assert_eq!(package_and_die("package-12"), (12, None));
        assert_eq!(package_and_die("psys"), (0, None));
    }

    #[test]
    fn unreadable_counters_are_named() {
        // Root can read every file, so tests/vm tests the permission itself.
        let fixture = intel();
        fixture.file("sys/class/powercap/intel-rapl:0/energy_uj", "");
        let found = discover(&fixture.tree());
        let package = found.iter().find(|s| s.channels[0].id == "intel-rapl:0").unwrap();
        assert!(matches!(&package.sensor, Err(Unusable::Unreadable { place, .. }) if place.ends_with("intel-rapl:0/energy_uj")));
    }

    #[test]
    fn a_zone_can_be_read_repeatedly() {
        let fixture = intel();
        let mut found = discover(&fixture.tree());
        let sensor = found.iter_mut().find(|s| s.channels[0].id == "intel-rapl:0").unwrap().sensor.as_mut().unwrap();
        let mut readings = Vec::new();
        let mut sink = |_: usize, at: u64, reading: Reading| readings.push((at, reading));
        sensor.sample(&mut sink);
        fixture.file("sys/class/powercap/intel-rapl:0/energy_uj", "123999999\n");
        sensor.sample(&mut sink);
        assert_eq!(readings.iter().map(|r| r.1).collect::<Vec<_>>(), [Reading::Counter(123_456_789), Reading::Counter(123_999_999)]);
        assert!(readings[0].0 > 0 && readings[1].0 >= readings[0].0);
    }
}
