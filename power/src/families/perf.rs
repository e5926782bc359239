//! RAPL through perf's `power` events, which an administrator may have opened to users where powercap is root's: `energy-pkg`,
//! `energy-ram`, `energy-cores`, `energy-gpu`, `energy-psys`, one counter for every package.

use std::{
    fs::File,
    io::Read,
    os::fd::{FromRawFd, RawFd},
    path::Path,
    time::Duration,
};

use nix::libc;

use super::powercap::KEEP_ALIVE;
use crate::{
    channel::{Channel, Domain, Family, Lost, Pace, Reading, Scope, Sensor, Signal, Sink, monotonic},
    part::Part,
    problem::Unusable,
    source::Source,
    tree::{Tree, line, name_of, number},
};

/// The counter below is refreshed as often.
const REFRESH: Duration = Duration::from_millis(1);

const EVERY_PROCESS: libc::c_long = -1;
const NO_GROUP: libc::c_long = -1;
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The head of `struct perf_event_attr` as far as its first published size goes (PERF_ATTR_SIZE_VER0, 64 bytes): the kernel takes the
/// rest for zero.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    rest: [u64; 6],
}

/// A counting event on one CPU, of every process.
#[derive(Debug)]
struct Event {
    file: File,
}

impl Event {
    fn open(kind: u32, config: u64, cpu: u32) -> std::io::Result<Self> {
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
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us, and nothing else owns it.
        Ok(Self { file: unsafe { File::from_raw_fd(descriptor as RawFd) } })
    }

    fn read(&mut self) -> Result<u64, Lost> {
        let mut value = [0; 8];
        self.file.read_exact(&mut value).map_err(|error| Lost::from(&error))?;
        Ok(u64::from_ne_bytes(value))
    }
}

impl Sensor for Event {
    fn pace(&self) -> Pace {
        Pace::Every(KEEP_ALIVE)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let reading = self.read().map_or_else(Reading::Unavailable, Reading::Counter);
        sink.put(0, monotonic(), reading);
    }
}

/// The events of `tree`.
pub fn discover(tree: &Tree) -> Vec<Source> {
    let device = tree.path("sys/bus/event_source/devices/power");
    let Some(kind) = number(device.join("type")).and_then(|kind| u32::try_from(kind).ok()) else { return Vec::new() };
    let events = tree.list("sys/bus/event_source/devices/power/events", |name| name.starts_with("energy-") && !name.contains('.'));
    let cpus = line(device.join("cpumask")).unwrap_or_else(|| "0".to_owned());
    let cpus: Vec<u32> = cpus.split(',').filter_map(|cpu| cpu.split('-').next()?.parse().ok()).collect();
    events.iter().flat_map(|event| cpus.iter().filter_map(|&cpu| source(tree, event, kind, cpu))).collect()
}

fn source(tree: &Tree, event: &Path, kind: u32, cpu: u32) -> Option<Source> {
    let name = name_of(event);
    // "event=0x02"
    let config = line(event)?.split_once("event=")?.1.trim_start_matches("0x").to_owned();
    let config = u64::from_str_radix(&config, 16).ok()?;
    let joules_per_count: f64 = line(event.with_file_name(format!("{name}.scale")))?.parse().ok()?;
    let topology = tree.path(format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
    let package = number(topology).and_then(|package| u32::try_from(package).ok()).unwrap_or(0);
    let of_package = Part::package(package);
    let (part, domain, scope) = match &name[..] {
        "energy-pkg" => (of_package, Domain::Package, Scope::CpuPackage),
        "energy-ram" => (Part::memory(package), Domain::Memory, Scope::CpuPackage),
        "energy-cores" => (of_package.inner("core"), Domain::Cpu, Scope::CpuPackage),
        "energy-gpu" => (of_package.inner("uncore"), Domain::Gpu, Scope::CpuPackage),
        "energy-psys" => (Part::board(), Domain::Board, Scope::BoardInput),
        other => (of_package.inner(other), Domain::Soc, Scope::CpuPackage),
    };
    let place = event.display().to_string();
    let sensor =
        Event::open(kind, config, cpu).map(|event| Box::new(event) as Box<dyn Sensor>).map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Unusable::Permission {
                place: place.clone(),
                cure: "sudo sysctl kernel.perf_event_paranoid=0 (until the next boot; every user may then count events)".to_owned(),
            },
            _ => Unusable::Unreadable { place: place.clone(), reason: Lost::from(&error) },
        });
    let channel = Channel {
        family: Family::Perf,
        id: format!("{name}/{package}"),
        label: Some(name),
        domain,
        scope,
        part,
        signal: Signal::Counter { joules_per_count, range: u64::MAX },
        refresh: REFRESH,
        place,
    };
    Some(Source::new(vec![channel], sensor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::fixture::{Fixture, sample};

    fn events(fixture: &Fixture, kind: &str, event: &str, scale: &str) {
        let device = "sys/bus/event_source/devices/power";
        fixture.files(device, &[("type", kind), ("cpumask", "0")]);
        fixture.files(&format!("{device}/events"), &[("energy-pkg", event), ("energy-pkg.scale", scale), ("energy-pkg.unit", "Joules")]);
        fixture.file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
    }

    #[test]
    fn events_are_found_with_scale_and_package() {
        let fixture = Fixture::new();
        // No such type of event: opening fails, and says so.
        events(&fixture, "4000000000", "event=0x02", "2.3283064365386962890625e-10");
        let found = discover(&fixture.tree());
        assert_eq!(found.len(), 1);
        let channel = &found[0].channels[0];
        assert_eq!(channel.name(), "perf:energy-pkg/0");
        assert_eq!(channel.signal, Signal::Counter { joules_per_count: 2.328_306_436_538_696_3e-10, range: u64::MAX });
        assert!(channel.part.overlaps(&Part::package(0)));
        assert!(found[0].sensor.is_err());
    }

    /// The call itself, with an event every kernel has: software (type 1), cpu-clock (0), which counts nanoseconds.
    #[test]
    fn an_event_counts() {
        let fixture = Fixture::new();
        events(&fixture, "1", "event=0x00", "1e-9");
        let mut found = discover(&fixture.tree());
        if let Err(error @ (Unusable::Permission { .. } | Unusable::Unreadable { .. })) = &found[0].sensor {
            eprintln!("SKIPPED an_event_counts: perf events are not open to this process: {error}");
            return;
        }
        let mut value = || match sample(&mut found[0])[..] {
            [(0, Reading::Counter(value))] => value,
            ref other => panic!("{other:?}"),
        };
        let before = value();
        std::thread::sleep(Duration::from_millis(20));
        let gained = value() - before;
        assert!(gained > 10_000_000, "{gained} ns in 20 ms");
    }
}
