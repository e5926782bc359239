//! RAPL through perf's `power` events: `energy-pkg`, `energy-ram`, `energy-cores`, `energy-gpu`, `energy-psys`. There is one counter per
//! package, or per die if a package of Intel has several. An administrator may have opened these events to users while powercap is for
//! root only.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    os::fd::{FromRawFd, RawFd},
    path::Path,
    time::Duration,
};

use nix::libc;

use super::powercap::{KEEP_ALIVE, is_amd, measured};
use crate::{Channel, Family, Lost, Pace, Reading, Signal, Source, SystemFiles, Unusable, line, name_of, number};

/// Interval at which the hardware refreshes the counter.
const REFRESH: Duration = Duration::from_millis(1);

const EVERY_PROCESS: libc::c_long = -1;
const NO_GROUP: libc::c_long = -1;
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The first 64 bytes of `struct perf_event_attr`, its first published size (PERF_ATTR_SIZE_VER0). The kernel takes the rest as zero.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    rest: [u64; 6],
}

/// Opens an event that counts on one CPU, for all processes.
fn open(kind: u32, config: u64, cpu: u32) -> io::Result<File> {
    let attributes = Attributes { kind, size: size_of::<Attributes>() as u32, config, ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of the structure, which lives until the call returns, and writes nothing to it.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            EVERY_PROCESS,
            libc::c_long::from(cpu as i32),
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor as RawFd) })
}

fn read(mut event: &File) -> Result<Reading, Lost> {
    let mut value = [0; 8];
    event.read_exact(&mut value).map_err(|error| Lost::from(&error))?;
    Ok(Reading::Counter(u64::from_ne_bytes(value)))
}

/// The events of `tree`, one source for each counter.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let device = tree.path("sys/bus/event_source/devices/power");
    let Some(kind) = number::<u32>(device.join("type")) else { return Vec::new() };
    let events = tree.list("sys/bus/event_source/devices/power/events", |name| name.starts_with("energy-") && !name.contains('.'));
    let mask = line(device.join("cpumask")).unwrap_or_else(|| "0".to_owned());
    let places = places(tree, &mask);
    events.iter().flat_map(|event| places.iter().filter_map(|&place| source(tree, event, kind, place))).collect()
}

/// The CPU on which a counter is read, and the package or die that it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    cpu: u32,
    package: u32,
    /// `None` if the counter is that of the whole package.
    die: Option<u32>,
}

/// Linux for x86 supports at most this many CPUs (NR_CPUS). The limit is needed since a copied tree may hold any list.
const MOST_CPUS: usize = 8192;

/// The CPUs in a list of the kernel's format: `0-1,24`.
fn cpus_of(list: &str) -> impl Iterator<Item = u32> + '_ {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().take(MOST_CPUS)
}

/// One place for every counter of the CPUs in `mask`. Most kernels list one CPU per counter. Newer kernels, where the powercap driver
/// provides the event, list every CPU of a package.
fn places(tree: &SystemFiles, mask: &str) -> Vec<Place> {
    let topology = |cpu: u32, name: &str| {
        let path = tree.path(format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}"));
        number(path).unwrap_or(0)
    };
    let mut listed = 0;
    let mut dies = BTreeMap::new();
    for cpu in cpus_of(mask) {
        listed += 1;
        dies.entry((topology(cpu, "physical_package_id"), topology(cpu, "die_id"))).or_insert(cpu);
    }
    // Dies have their own counters unless they are AMD's, which show that of the package, or the list names a die twice.
    let have_counters = dies.len() == listed && !is_amd(tree);
    let mut found: Vec<Place> = Vec::new();
    for (&(package, die), &cpu) in &dies {
        if have_counters && dies.range((package, 0)..=(package, u32::MAX)).count() > 1 {
            found.push(Place { cpu, package, die: Some(die) });
        } else if found.last().is_none_or(|last| last.package != package) {
            found.push(Place { cpu, package, die: None });
        }
    }
    found
}

fn source(tree: &SystemFiles, event: &Path, kind: u32, Place { cpu, package, die }: Place) -> Option<Source> {
    let name = name_of(event);
    // "event=0x02"
    let config = line(event)?.split_once("event=")?.1.trim_start_matches("0x").to_owned();
    let config = u64::from_str_radix(&config, 16).ok()?;
    let joules_per_count: f64 = line(event.with_file_name(format!("{name}.scale")))?.parse().ok()?;
    let (part, domain, scope) = measured(&name, package, die);
    let place = event.display().to_string();
    let opened = if tree.is_live() {
        open(kind, config, cpu).map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Unusable::Permission {
                place: place.clone(),
                cure: "sudo sysctl kernel.perf_event_paranoid=0 (until the next boot; every user may then count events)".to_owned(),
            },
            _ => Unusable::Unreadable { place: place.clone(), reason: Lost::from(&error) },
        })
    } else {
        // The kernel would count an event of this machine, whatever the files of another say.
        Err(Unusable::Protocol { place: place.clone(), reason: "an event of another machine can't be counted here".to_owned() })
    };
    let channel = Channel {
        family: Family::Perf,
        id: format!("{name}/{package}{}", die.map_or_else(String::new, |die| format!("-die-{die}"))),
        label: Some(name),
        domain,
        scope,
        part,
        signal: Signal::Counter { joules_per_count, range: u64::MAX },
        refresh: REFRESH,
        place,
    };
    Some(Source::single(channel, Pace::Every(KEEP_ALIVE), opened.map(|event| move || read(&event))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{families::tests::fixture::Fixture, part::Component};

    fn events(fixture: &Fixture, kind: &str, event: &str, scale: &str) {
        let device = "sys/bus/event_source/devices/power";
        fixture.files(device, &[("type", kind), ("cpumask", "0")]);
        fixture.files(&format!("{device}/events"), &[("energy-pkg", event), ("energy-pkg.scale", scale), ("energy-pkg.unit", "Joules")]);
        fixture.file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
    }

    #[test]
    fn events_are_found_with_scale_and_package() {
        let fixture = Fixture::new();
        // This type of event does not exist, so opening it fails.
        events(&fixture, "4000000000", "event=0x02", "2.3283064365386962890625e-10");
        let found = discover(&fixture.tree());
        assert_eq!(found.len(), 1);
        let channel = &found[0].channels[0];
        assert_eq!(channel.name(), "perf:energy-pkg/0");
        assert_eq!(channel.signal, Signal::Counter { joules_per_count: 2.328_306_436_538_696_3e-10, range: u64::MAX });
        assert!(channel.part.overlaps(&Component::package(0)));
        assert!(found[0].sensor.is_err());
    }

    #[test]
    fn every_package_of_the_mask_is_found() {
        // CPUs of the mask, the vendor, the package and die of each CPU, and the counters.
        let intel = "GenuineIntel";
        type Case<'c> = (&'c str, &'c str, &'c [(u32, u32, u32)], &'c [&'c str]);
        let cases: [Case<'_>; 7] = [
            ("0", intel, &[(0, 0, 0)], &["energy-pkg/0"]),
            ("0,1", intel, &[(0, 0, 0), (1, 1, 0)], &["energy-pkg/0", "energy-pkg/1"]),
            // CPU numbers alternate between the packages, so the kernel prints a range.
            ("0-1", intel, &[(0, 0, 0), (1, 1, 0)], &["energy-pkg/0", "energy-pkg/1"]),
            ("0-1,8,10-11", intel, &[(8, 1, 0), (10, 2, 0), (11, 3, 0)], &["energy-pkg/0", "energy-pkg/1", "energy-pkg/2", "energy-pkg/3"]),
            // All CPUs of two packages with two dies each: one counter per package.
            ("0-7", intel, &[(2, 0, 1), (3, 0, 1), (4, 1, 0), (5, 1, 0), (6, 1, 1), (7, 1, 1)], &["energy-pkg/0", "energy-pkg/1"]),
            // One CPU of every die.
            ("0,4,8", intel, &[(4, 0, 1), (8, 1, 0)], &["energy-pkg/0-die-0", "energy-pkg/0-die-1", "energy-pkg/1"]),
            ("0,4,8", "AuthenticAMD", &[(4, 0, 1), (8, 1, 0)], &["energy-pkg/0", "energy-pkg/1"]),
        ];
        for (mask, vendor, topology, expected) in cases {
            let fixture = Fixture::new();
            events(&fixture, "4000000000", "event=0x02", "2.3283064365386962890625e-10");
            fixture.file("sys/bus/event_source/devices/power/cpumask", mask);
            fixture.file("proc/cpuinfo", &format!("vendor_id\t: {vendor}\n"));
            for (cpu, package, die) in topology {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
                fixture.files(&folder, &[("physical_package_id", &package.to_string()), ("die_id", &die.to_string())]);
            }
            let found = discover(&fixture.tree());
            let channels: Vec<&Channel> = found.iter().map(|source| &source.channels[0]).collect();
            assert_eq!(channels.iter().map(|channel| &channel.id).collect::<Vec<_>>(), expected, "{mask} of {vendor}");
            for (index, one) in channels.iter().enumerate() {
                assert!(channels[..index].iter().all(|other| !one.part.overlaps(&other.part)), "{channels:?}");
            }
        }
        // The length of a list is limited.
        assert_eq!(cpus_of("0-4294967295").count(), MOST_CPUS);
    }

    /// Tests the system call with an event that every kernel has: software (type 1), cpu-clock (0), which counts nanoseconds.
    #[test]
    fn an_event_counts() {
        let event = match open(1, 0, 0) {
            Ok(event) => event,
            Err(error) => {
                // Not a print macro, whose output the test harness would capture.
                let why = format!("SKIPPED an_event_counts: perf events are not open to this process: {error}\n");
                return io::Write::write_all(&mut io::stderr(), why.as_bytes()).unwrap();
            }
        };
        let value = || match read(&event) {
            Ok(Reading::Counter(value)) => value,
            other => panic!("{other:?}"),
        };
        let before = value();
        std::thread::sleep(Duration::from_millis(20));
        let gained = value() - before;
        assert!(gained > 10_000_000, "{gained} ns in 20 ms");
    }

    /// A tree that names this event of every kernel would show this machine's clock as the power of another.
    #[test]
    fn no_event_is_opened_for_a_copy_of_another_machine() {
        let fixture = Fixture::new();
        events(&fixture, "1", "event=0x00", "1e-8");
        let error = discover(&fixture.tree()).remove(0).sensor.err().unwrap().to_string();
        assert!(error.contains("an event of another machine"), "{error}");
    }
}
