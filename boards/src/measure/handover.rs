//! The cost of a handover from host to device and back, in every [`SharingMode`] that the device offers.
//!
//! Drivers differ by four orders of magnitude: one maps 256 MiB in 12 us, another copies them in 289 ms and shows them at another address
//! each time. So handovers are measured before a search relies on them: for several sizes, until each handover is complete, the first one
//! separately (drivers allocate in it), and with values that the other side has just written (otherwise a driver has nothing to transfer).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::searched::median;
use socbfs::{
    memory::{SharedSlice, SharingMode, available_bytes},
    opencl::{Device, DeviceError},
};
use socbfs_policy::ChangeCost;

/// How thoroughly handovers are measured.
struct Thoroughness {
    /// Sizes in bytes.
    sizes: &'static [u64],
    /// Number of turns, whose median counts. `least_turns` of them are taken even if time is short.
    turns: usize,
    least_turns: usize,
    /// Time for one sharing mode and size, after which no further turn begins.
    patience: Duration,
}

const FULL: Thoroughness = Thoroughness {
    sizes: &[1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20],
    turns: 15,
    least_turns: 3,
    patience: Duration::from_millis(250),
};
const QUICK: Thoroughness = Thoroughness { sizes: &[4 << 10, 1 << 20], turns: 7, least_turns: 3, patience: Duration::from_millis(4) };

/// A sharing mode copies if its largest size takes more than this many times as long as its smallest, whose time is that of the call alone.
/// [`COPY_BYTES_PER_NS`] gives an exception.
const COPY_FACTOR: u64 = 4;
/// A sharing mode that moves this many bytes or more per nanosecond, there and back, does not copy: no bus is as fast.
const COPY_BYTES_PER_NS: u64 = 100;
/// The smallest size takes less than this unless the machine is busy or the driver slow.
const QUICK_CALL_NS: u64 = 50_000;
/// A sharing mode is skipped if the device or the host accesses its memory more than this many times slower than the fastest mode's.
const ACCESS_FACTOR: u64 = 2;
/// Differences up to a fifth and 2 us are noise: then the mode that comes first in [`SharingMode::ALL`] is taken.
const NOISE_NS: u64 = 2_000;
/// Accesses are compared from this size on. Below, the time of the call hides that of the memory.
const LEAST_ACCESS_BYTES: u64 = 1 << 20;

/// The cost of handing over one size in one sharing mode. Times are nanoseconds until the handover is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HandoverTimes {
    /// Size of the array.
    pub bytes: u64,
    /// The first handover to the device.
    pub first_to_device_ns: u64,
    /// The first handover to the host.
    pub first_to_host_ns: u64,
    /// Median of the later handovers to the device.
    pub to_device_ns: u64,
    /// Median of the later handovers to the host.
    pub to_host_ns: u64,
    /// The quickest later handover there and back together: the cost of the call without disturbance.
    pub least_both_ns: u64,
    /// Number of later handovers in each direction.
    pub turns: usize,
    /// Whether the host saw the array at different addresses in different turns.
    pub pointer_moved: bool,
    /// The quickest fill of the whole array by the device.
    pub device_fill_ns: u64,
    /// The quickest read of the whole array by the host.
    pub host_read_ns: u64,
}

/// The costs of one sharing mode, by size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayTimes {
    /// The sharing mode.
    pub way: SharingMode,
    /// Whether its cost grows with the size like that of a copy.
    pub copies: bool,
    /// The costs of each size, in ascending order of size.
    pub sizes: Vec<HandoverTimes>,
    /// Why larger sizes were not measured.
    pub problem: Option<String>,
}

impl WayTimes {
    /// Nanoseconds to hand an array of `bytes` over to the device and to the host. They are interpolated between measured sizes, and
    /// extrapolated beyond the largest. Below the smallest size, its times are used. `None` if nothing was measured.
    pub fn cost_ns(&self, bytes: u64) -> Option<(u64, u64)> {
        Some((self.at(bytes, |times| times.to_device_ns)?, self.at(bytes, |times| times.to_host_ns)?))
    }

    /// `value` for an array of `bytes`, along the lines that join the measured sizes.
    fn at(&self, bytes: u64, value: impl Fn(&HandoverTimes) -> u64) -> Option<u64> {
        let last = self.sizes.last()?;
        let above = self.sizes.iter().position(|times| times.bytes >= bytes).unwrap_or(self.sizes.len() - 1);
        let (low, high) = (&self.sizes[above.saturating_sub(1)], &self.sizes[above]);
        if self.sizes.len() == 1 || bytes <= self.sizes[0].bytes {
            return Some(value(high));
        }
        let share = (bytes as f64 - low.bytes as f64) / (high.bytes as f64 - low.bytes as f64);
        let (from, to) = (value(low) as f64, value(high) as f64);
        // Noise may make a line fall; beyond the largest size the result must not be below the value measured there.
        let floor = if share > 1.0 { value(last) as f64 } else { 0.0 };
        Some((from + share * (to - from)).max(floor) as u64)
    }

    /// The access times of the device and of the host for an array of exactly `bytes`.
    fn accesses(&self, bytes: u64) -> Option<(u64, u64)> {
        let at = |times: &&HandoverTimes| times.bytes == bytes;
        self.sizes.iter().find(at).map(|times| (times.device_fill_ns, times.host_read_ns))
    }
}

/// The costs of the sharing modes of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HandoverTable {
    /// The measured modes, in the order of [`SharingMode::ALL`].
    pub ways: Vec<WayTimes>,
}

impl HandoverTable {
    /// The mode with the quickest handover there and back for an array of `bytes`, among those whose memory neither side accesses much more
    /// slowly. [`SharingMode::Copy`], which every device offers, if nothing could be measured.
    pub fn best(&self, bytes: u64) -> SharingMode {
        let candidates: Vec<(&WayTimes, u64)> = self
            .ways
            .iter()
            .filter(|way| self.access_is_quick(way))
            .filter_map(|way| Some((way, way.at(bytes, |times| times.least_both_ns)?)))
            .collect();
        let Some(least) = candidates.iter().map(|&(_, cost)| cost).min() else { return SharingMode::Copy };
        let good = least + least / 5 + NOISE_NS;
        candidates.iter().find(|&&(_, cost)| cost <= good).map_or(SharingMode::Copy, |(way, _)| way.way)
    }

    /// The costs of the mode `way`; `None` if it was not measured.
    pub fn way(&self, way: SharingMode) -> Option<&WayTimes> {
        self.ways.iter().find(|times| times.way == way)
    }

    /// The cost of handing over the state of a search of `vertices` vertices (parents, visited bitmap, frontier bitmap), to the device and
    /// back. `None` if this sharing mode was not measured.
    pub fn of_state(&self, way: SharingMode, vertices: u64) -> Option<(ChangeCost, ChangeCost)> {
        let (to_device, to_host) = self.way(way)?.cost_ns(vertices * 4 + vertices / 4)?;
        let cost = |ns: u64| ChangeCost { fixed_ns: ns as f64, ..ChangeCost::default() };
        Some((cost(to_device), cost(to_host)))
    }

    /// The largest size that every mode reached, but for those that failed below `least`. `None` if all did.
    pub fn common_bytes(&self, least: u64) -> Option<u64> {
        self.ways.iter().filter_map(|way| way.sizes.last()).map(|times| times.bytes).filter(|&bytes| bytes >= least).min()
    }

    fn access_is_quick(&self, way: &WayTimes) -> bool {
        let Some(size) = self.common_bytes(LEAST_ACCESS_BYTES) else { return true };
        let least = |of: fn((u64, u64)) -> u64| self.ways.iter().filter_map(|way| way.accesses(size)).map(of).min().unwrap_or(0);
        way.accesses(size).is_some_and(|(device, host)| device <= least(|a| a.0) * ACCESS_FACTOR && host <= least(|a| a.1) * ACCESS_FACTOR)
    }
}

/// Measures every mode over sizes from 1 KiB to 256 MiB, as far as the device's limits and the available memory allow. Takes seconds.
pub fn measure(device: &Arc<Device>) -> HandoverTable {
    table(device, &FULL, |_| true)
}

/// Measures every mode at two sizes. It takes some ten milliseconds unless the device is unusually slow, so every start can do it.
pub fn measure_quickly(device: &Arc<Device>) -> HandoverTable {
    table(device, &QUICK, |_| true)
}

/// As [`measure_quickly`], but only for the modes that `permitted` accepts.
pub fn measure_permitted(device: &Arc<Device>, permitted: impl Fn(SharingMode) -> bool) -> HandoverTable {
    table(device, &QUICK, permitted)
}

/// Whether the driver copies memory of the host that it is given in place (CL_MEM_USE_HOST_PTR). `known` has what [`measure_quickly`] or
/// [`measure_permitted`] found before, if anything was measured.
pub fn copies_in_place(device: &Arc<Device>, known: &HandoverTable) -> bool {
    let sizes = |table: &HandoverTable| table.way(SharingMode::UseHostPtr).map(|way| way.sizes.clone());
    copies_by_quickest(sizes(known), || sizes(&measure_permitted(device, |way| way == SharingMode::UseHostPtr)))
}

/// Whether the quickest times of `known` and of up to five calls of `measure` grow like those of a copy. On a busy machine a measurement
/// now and then looks like that of a copy, or its smallest size is as slow as a copy of the largest.
fn copies_by_quickest(known: Option<Vec<HandoverTimes>>, mut measure: impl FnMut() -> Option<Vec<HandoverTimes>>) -> bool {
    let mut quickest = known.unwrap_or_default();
    for _ in 0..5 {
        if !copies(&quickest) && quickest.first().is_some_and(|size| size.least_both_ns <= QUICK_CALL_NS) {
            return false;
        }
        let Some(mut measured) = measure().filter(|sizes| !sizes.is_empty()) else { break };
        for (times, before) in measured.iter_mut().zip(&quickest) {
            times.least_both_ns = times.least_both_ns.min(before.least_both_ns);
        }
        quickest = measured;
    }
    copies(&quickest)
}

fn table(device: &Arc<Device>, how: &Thoroughness, permitted: impl Fn(SharingMode) -> bool) -> HandoverTable {
    let offered = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info()) && permitted(*way));
    HandoverTable { ways: offered.map(|way| way_times(device, way, how)).collect() }
}

fn way_times(device: &Arc<Device>, way: SharingMode, how: &Thoroughness) -> WayTimes {
    let mut times = WayTimes { way, copies: false, sizes: Vec::with_capacity(how.sizes.len()), problem: None };
    for &bytes in how.sizes {
        match size_times(device, way, bytes, how) {
            Ok(size) => times.sizes.push(size),
            Err(problem) => {
                times.problem = Some(problem);
                break;
            }
        }
    }
    times.copies = way == SharingMode::Copy || copies(&times.sizes);
    times
}

/// Whether the cost grows with the size like that of a copy.
fn copies(sizes: &[HandoverTimes]) -> bool {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return false };
    let (small, large) = (first.least_both_ns, last.least_both_ns);
    large > small * COPY_FACTOR && large * COPY_BYTES_PER_NS > last.bytes
}

fn size_times(device: &Arc<Device>, way: SharingMode, bytes: u64, how: &Thoroughness) -> Result<HandoverTimes, String> {
    if bytes > device.max_alloc_bytes() {
        return Err(format!("its largest buffer has less than {bytes} bytes"));
    }
    let left = device.limits().global_bytes.unwrap_or(u64::MAX).saturating_sub(device.used_bytes());
    // The host's memory may hold the array twice.
    if bytes > left.min(available_bytes().unwrap_or(u64::MAX) / 2) / 2 {
        return Err(format!("{bytes} bytes are too large a share of the available memory"));
    }
    let len = usize::try_from(bytes / 4).unwrap_or(usize::MAX); // a size that does not fit is refused, not truncated
    let mut slice = SharedSlice::<u32>::on(device, way, len, "the measurement of handovers").map_err(|error| error.to_string())?;
    turns(device, &mut slice, how).map_err(|error| error.on(&device.info().name).to_string())
}

/// Hands `slice` to the device and back in turns, and times each handover and access.
fn turns(device: &Device, slice: &mut SharedSlice<u32>, how: &Thoroughness) -> Result<HandoverTimes, DeviceError> {
    let (len, bytes) = (slice.device_len(), slice.bytes());
    let (mut there, mut back, mut fills) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut host_read_ns, mut least_both_ns) = ((0, 0), u64::MAX, u64::MAX);
    let (mut place, mut pointer_moved) = (slice.as_ptr() as usize, false);
    let begin = Instant::now();
    for turn in 0..=how.turns {
        if turn > how.least_turns && begin.elapsed() > how.patience {
            break;
        }
        // Each side writes before it hands over, so that there is something to transfer.
        slice.fill(turn as u32);
        let to_device = timed(|| {
            slice.to_device(0..len)?;
            device.finish()
        })?;
        let fill = timed(|| {
            slice.fill_on_device(turn as u32 + 1)?;
            device.finish()
        })?;
        let to_host = timed(|| slice.to_host(0..len))?;
        pointer_moved |= slice.as_ptr() as usize != place;
        place = slice.as_ptr() as usize;
        host_read_ns = host_read_ns.min(timed(|| {
            std::hint::black_box(sum(slice));
            Ok(())
        })?);
        if turn == 0 {
            first = (to_device, to_host);
            continue;
        }
        there.push(to_device);
        back.push(to_host);
        fills.push(fill);
        least_both_ns = least_both_ns.min(to_device + to_host);
    }
    Ok(HandoverTimes {
        bytes,
        first_to_device_ns: first.0,
        first_to_host_ns: first.1,
        turns: there.len(),
        to_device_ns: median(there).unwrap_or(0),
        to_host_ns: median(back).unwrap_or(0),
        least_both_ns,
        pointer_moved,
        device_fill_ns: fills.into_iter().min().unwrap_or(0),
        host_read_ns,
    })
}

fn sum(values: &[u32]) -> u32 {
    values.iter().fold(0, |sum, &value| sum.wrapping_add(value))
}

fn timed(call: impl FnOnce() -> Result<(), DeviceError>) -> Result<u64, DeviceError> {
    let begin = Instant::now();
    call()?;
    Ok(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn times(bytes: u64, to_device_ns: u64, to_host_ns: u64) -> HandoverTimes {
        HandoverTimes {
            bytes,
            first_to_device_ns: 0,
            first_to_host_ns: 0,
            to_device_ns,
            to_host_ns,
            least_both_ns: to_device_ns + to_host_ns,
            turns: 3,
            pointer_moved: false,
            device_fill_ns: bytes / 10,
            host_read_ns: bytes / 10,
        }
    }

    fn way(way: SharingMode, sizes: &[(u64, u64, u64)]) -> WayTimes {
        let sizes: Vec<HandoverTimes> = sizes.iter().map(|&(bytes, there, back)| times(bytes, there, back)).collect();
        WayTimes { way, copies: copies(&sizes), sizes, problem: None }
    }

    const MIB: u64 = 1 << 20;

    /// Times of a driver whose mapping copies, of PoCL's mapping, and of explicit copies.
    fn table() -> HandoverTable {
        HandoverTable {
            ways: vec![
                way(
                    SharingMode::AllocHostPtr,
                    &[(1 << 10, 16_000, 17_000), (MIB, 400_000, 450_000), (256 * MIB, 108_000_000, 109_000_000)],
                ),
                way(SharingMode::UseHostPtr, &[(1 << 10, 14_000, 15_000), (MIB, 13_000, 12_000), (256 * MIB, 11_000, 10_000)]),
                way(SharingMode::Copy, &[(1 << 10, 1_000, 1_000), (MIB, 100_000, 100_000), (256 * MIB, 25_000_000, 25_000_000)]),
            ],
        }
    }

    #[test]
    fn copies_are_distinguished_from_mappings() {
        let table = table();
        assert_eq!(table.ways.iter().map(|way| way.copies).collect::<Vec<_>>(), [true, false, true]);
        // It grows by more than the factor, but no memory is that quick.
        assert!(!way(SharingMode::SvmFine, &[(1 << 10, 300, 300), (256 * MIB, 2_000, 2_000)]).copies);
        assert!(!copies(&[]));
    }

    #[test]
    fn a_busy_machine_neither_hides_nor_feigns_a_copy() {
        let sizes = |small, large| Some(vec![times(4 << 10, small, 0), times(MIB, large, 0)]);
        let judge = |measured: &[(u64, u64)]| {
            let mut later = measured[1..].iter();
            let judged =
                copies_by_quickest(sizes(measured[0].0, measured[0].1), || later.next().and_then(|&(small, large)| sizes(small, large)));
            (judged, later.len())
        };
        let (copy, slow_call, slow_copy) = ((30_000, 1_200_000), (900_000, 1_300_000), (30_000, 5_000_000));
        assert_eq!(judge(&[slow_call, slow_copy, copy, copy, copy, copy, copy]), (true, 1));
        assert_eq!(judge(&[slow_copy, (35_000, 90_000), copy]), (false, 1));
        // A driver whose calls take long is measured to the end, and of one that fails what was measured before counts.
        assert_eq!(judge(&[(400_000, 410_000); 7]), (false, 1));
        assert_eq!((judge(&[slow_call]), judge(&[copy])), ((false, 0), (true, 0)));
    }

    #[test]
    fn the_best_way_depends_on_the_size() {
        let table = table();
        assert_eq!(table.best(1 << 10), SharingMode::Copy);
        assert_eq!(table.best(256 * MIB), SharingMode::UseHostPtr);
        assert_eq!(table.best(1 << 40), SharingMode::UseHostPtr);
        assert_eq!(HandoverTable::default().best(MIB), SharingMode::Copy);
        // Within the noise the first mode is taken, whichever is faster by some nanoseconds.
        let close = HandoverTable {
            ways: vec![way(SharingMode::AllocHostPtr, &[(MIB, 10_100, 10_000)]), way(SharingMode::UseHostPtr, &[(MIB, 10_000, 9_000)])],
        };
        assert_eq!(close.best(MIB), SharingMode::AllocHostPtr);
    }

    #[test]
    fn memory_that_is_slow_to_access_is_not_chosen() {
        let mut table = table();
        table.ways[1].sizes[2].device_fill_ns *= 3;
        assert_eq!(table.best(256 * MIB), SharingMode::Copy);
        table.ways[1].sizes[2].device_fill_ns /= 3;
        table.ways[1].sizes[2].host_read_ns *= 3;
        assert_eq!(table.best(256 * MIB), SharingMode::Copy);
    }

    #[test]
    fn costs_are_linear_between_and_beyond_measured_sizes() {
        let way = way(SharingMode::Copy, &[(MIB, 100, 200), (3 * MIB, 300, 400)]);
        assert_eq!(way.cost_ns(1), Some((100, 200)));
        assert_eq!(way.cost_ns(MIB), Some((100, 200)));
        assert_eq!(way.cost_ns(2 * MIB), Some((200, 300)));
        assert_eq!(way.cost_ns(3 * MIB), Some((300, 400)));
        assert_eq!(way.cost_ns(5 * MIB), Some((500, 600)));
        assert_eq!(WayTimes { sizes: vec![], ..way }.cost_ns(MIB), None);
        assert_eq!(self::way(SharingMode::Copy, &[(MIB, 7, 8)]).cost_ns(9 * MIB), Some((7, 8)));
        // A falling line is noise; the result stays at the value measured last.
        assert_eq!(self::way(SharingMode::UseHostPtr, &[(MIB, 90, 90), (2 * MIB, 50, 50)]).cost_ns(9 * MIB), Some((50, 50)));
    }
}
