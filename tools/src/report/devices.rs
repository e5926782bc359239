//! The OpenCL devices of a machine, as text and as JSON.

use std::{
    collections::BTreeSet,
    fmt::{self, Write},
    path::PathBuf,
};

use serde::Serialize;

use super::cells::{Cell, Table, folded_by, hanging, written};
use socbfs::{
    DeviceInfo, SharingMode,
    opencl::PlatformInfo,
    words::{bytes, counted, significant},
};
use socbfs_boards::measure::{HandoverTable, HandoverTimes, WayTimes};

/// Width of the column of names.
const NAMES: usize = 16;

/// The OpenCL platforms and devices of a machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Devices {
    /// The file of the OpenCL library (`None`: none was opened).
    pub library: Option<PathBuf>,
    /// Why there is no OpenCL (`None`: there is).
    pub problem: Option<String>,
    /// The platforms, each an OpenCL implementation.
    pub platforms: Vec<Platform>,
}

/// An OpenCL platform and its devices.
#[derive(Debug, Clone, Serialize)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Its version.
    pub version: String,
    /// Why it shows no device.
    pub problem: Option<String>,
    /// Its devices.
    pub devices: Vec<DeviceReport>,
}

/// A device and the cost of handovers on it.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceReport {
    /// What the device reports about itself.
    #[serde(flatten)]
    pub info: DeviceInfo,
    /// The cost of handovers (`None`: the device could not be opened).
    pub handover: Option<HandoverTable>,
    /// Why the device could not be opened.
    pub problem: Option<String>,
    /// The sharing mode chosen for each size.
    pub chosen: Vec<ChosenWay>,
}

/// The sharing mode chosen for a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChosenWay {
    /// Size of the array in bytes.
    pub bytes: u64,
    /// The sharing mode.
    pub way: SharingMode,
}

impl Platform {
    /// Calls `found` for each device of the platform, to get the cost of handovers or the reason why the device can't be opened.
    pub fn new(info: PlatformInfo, found: impl Fn(&DeviceInfo) -> Result<HandoverTable, String>) -> Self {
        let devices = info.devices.into_iter().map(|device| DeviceReport::new(device, &found)).collect();
        Self { devices, name: info.name, vendor: info.vendor, version: info.version, problem: info.problem }
    }
}

impl DeviceReport {
    fn new(info: DeviceInfo, found: impl Fn(&DeviceInfo) -> Result<HandoverTable, String>) -> Self {
        let (handover, problem) = match found(&info) {
            Ok(table) => (Some(table), None),
            Err(problem) => (None, Some(problem)),
        };
        let chosen = handover.iter().flat_map(|table| {
            let sizes: BTreeSet<u64> = table.ways.iter().flat_map(|way| &way.sizes).map(|times| times.bytes).collect();
            sizes.into_iter().map(|bytes| ChosenWay { bytes, way: table.best(bytes) })
        });
        Self { chosen: chosen.collect(), info, handover, problem }
    }
}

/// The devices as text.
pub fn devices(all: &Devices) -> String {
    written(|out| write(out, all))
}

fn write(out: &mut String, all: &Devices) -> fmt::Result {
    if let Some(problem) = &all.problem {
        writeln!(out, "No OpenCL: {problem}.")?;
        return writeln!(out, "Searches run on the CPU, which needs no OpenCL.");
    }
    if let Some(library) = &all.library {
        writeln!(out, "OpenCL library {}", library.display())?;
    }
    for platform in &all.platforms {
        writeln!(out)?;
        out.push_str(&hanging("", &format!("{}, {}", platform.name, platform.version)));
        if let Some(problem) = &platform.problem {
            out.push_str(&hanging("  ", problem));
        }
        for device in &platform.devices {
            write_device(out, device)?;
        }
    }
    Ok(())
}

fn row(out: &mut String, name: &str, value: impl fmt::Display) -> fmt::Result {
    out.push_str(&hanging(&format!("    {name:<NAMES$}"), &value.to_string()));
    Ok(())
}

fn write_device(out: &mut String, device: &DeviceReport) -> fmt::Result {
    let info = &device.info;
    out.push_str(&hanging("  ", &format!("{} ({})", info.name, info.kind)));
    if let Some(reason) = &info.unusable {
        row(out, "unusable", reason)?;
    } else if let Some(problem) = &device.problem {
        row(out, "unusable", problem)?;
    }
    row(out, "vendor", &info.vendor)?;
    row(out, "driver", &info.driver)?;
    row(out, "version", format_args!("{}; {}", info.version, info.c_version))?;
    row(out, "compute units", info.compute_units)?;
    row(out, "work-group", format_args!("at most {}", counted(info.max_work_group as u64, "item", "items")))?;
    let unified = if info.unified_memory { "shared with the CPU" } else { "its own" };
    row(out, "memory", format_args!("{}, {unified}; largest buffer {}", bytes(info.global_bytes), bytes(info.max_alloc_bytes)))?;
    let dedicated = if info.local_is_dedicated { "of its own" } else { "in global memory" };
    row(out, "local memory", format_args!("{}, {dedicated}", bytes(info.local_bytes)))?;
    let svm = match (info.svm_coarse, info.svm_fine) {
        (_, true) => "fine-grained",
        (true, false) => "coarse-grained",
        (false, false) => "none",
    };
    row(out, "shared virtual", svm)?;
    row(out, "alignment", format_args!("{} bytes; cache line {}", info.base_align_bytes, info.cacheline))?;
    if let Some(table) = &device.handover {
        write_table(out, table, &device.chosen)?;
    }
    Ok(())
}

/// Writes a line for each sharing mode, with a column for each size: to the device / to the host. A star marks the chosen mode.
fn write_table(out: &mut String, table: &HandoverTable, chosen: &[ChosenWay]) -> fmt::Result {
    let pair = |times: Option<&HandoverTimes>, star: &str, of: [fn(&HandoverTimes) -> u64; 2]| {
        let [there, back] = of.map(|of| times.map(|times| micro(of(times))));
        Cell::word(there.zip(back).map_or_else(|| "-".to_owned(), |(there, back)| format!("{star}{there} / {back}")))
    };
    let mut shown = Table::of(&table.ways, &[("handover in us", &|way| Cell::word(way.way.to_string()))]);
    for choice in chosen {
        let cell = |way: &WayTimes| {
            let times = way.sizes.iter().find(|times| times.bytes == choice.bytes);
            pair(times, if choice.way == way.way { "*" } else { "" }, [|of| of.to_device_ns, |of| of.to_host_ns])
        };
        shown.add(bytes(choice.bytes), table.ways.iter().map(cell));
    }
    let first = |way: &WayTimes| pair(way.sizes.last(), "", [|of| of.first_to_device_ns, |of| of.first_to_host_ns]);
    shown.add("first", table.ways.iter().map(first));
    shown.add("", table.ways.iter().map(remarks));
    let last = shown.columns.len() - 1;
    folded_by(out, "    ", &shown, &|column| column == 0 || column == last)?;
    let problems: BTreeSet<&str> = table.ways.iter().filter_map(|way| way.problem.as_deref()).collect();
    for problem in problems {
        row(out, "", problem)?;
    }
    row(out, "", "to device / to host; * chosen; first: of the largest size")
}

fn remarks(way: &WayTimes) -> Cell {
    let moved = way.sizes.iter().any(|times| times.pointer_moved);
    let remarks = [(way.copies, "copies"), (moved, "moves")].into_iter().filter_map(|(is, remark)| is.then_some(remark));
    Cell::word(remarks.collect::<Vec<_>>().join(", "))
}

/// Microseconds, with three significant digits or without decimals.
fn micro(ns: u64) -> String {
    significant(ns as f64 / 1e3, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs_boards::measure::HandoverTimes;

    #[test]
    fn missing_opencl_is_reported_as_information() {
        let all = Devices { problem: Some("no library".into()), ..Devices::default() };
        assert_eq!(devices(&all), "No OpenCL: no library.\nSearches run on the CPU, which needs no OpenCL.\n");
    }

    #[test]
    fn the_table_marks_the_chosen_way_of_every_size() {
        let times = |bytes, ns| HandoverTimes {
            bytes,
            first_to_device_ns: 2 * ns,
            first_to_host_ns: 3 * ns,
            to_device_ns: ns,
            to_host_ns: ns,
            device_fill_ns: bytes / 10,
            host_read_ns: bytes / 10,
            ..HandoverTimes::default()
        };
        let mapped = WayTimes {
            way: SharingMode::AllocHostPtr,
            copies: false,
            sizes: vec![times(1 << 10, 12_000), times(1 << 20, 12_500)],
            problem: None,
        };
        let copied = WayTimes { way: SharingMode::Copy, copies: true, sizes: vec![times(1 << 10, 900)], problem: Some("no memory".into()) };
        let table = HandoverTable { ways: vec![mapped, copied] };
        let chosen = [ChosenWay { bytes: 1 << 10, way: SharingMode::Copy }, ChosenWay { bytes: 1 << 20, way: SharingMode::AllocHostPtr }];
        let mut text = String::new();
        write_table(&mut text, &table, &chosen).unwrap();
        let expected = "    handover in us       1.0 KiB       1.0 MiB        first
    alloc-host-ptr   12.0 / 12.0  *12.5 / 12.5  25.0 / 37.5
    copy            *0.90 / 0.90             -  1.80 / 2.70  copies
                    no memory
                    to device / to host; * chosen; first: of the largest size
";
        assert_eq!(text, expected);
    }
}
