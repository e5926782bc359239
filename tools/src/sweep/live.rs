//! The points of this machine: clocks fixed, cooled down, searched, and watched for whatever disturbs.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use socbfs::{DeviceChoice, EdgeList, Layout, Vertex, threads::AffinityGuard};
use socbfs_boards::{
    board::CpuList,
    runtime::{Prepared, Runtime, RuntimeError, Setting},
};
use socbfs_machine::{self as machine, line, list_numbered, number, text};
use socbfs_policy::{Policy, PolicyError};
use socbfs_power::{Energy, Meter};

use super::{
    axes::{Axes, Spot},
    clocks::{ClockError, Clocks},
    run::{Machine, Tried},
};
use crate::{
    bench::{EnergyError, TICKS_PER_SECOND, measure, slows, temperatures, window},
    calibrate::PowerWindows,
    record::{EnergySummary, EnergyWindow, OTHER_CPUS, OperatingPoint, PointMeasured, RootRecord},
};

/// Windows of a point; their spread is that of the point.
const WINDOWS: usize = 3;
/// Refreshes of the slowest sensor in a point: ten and more.
const REFRESHES: u64 = 12;
/// Roots of a point, after the first one, that are validated before it is measured.
const VALIDATED: usize = 2;
/// Degrees above the temperature at the beginning at which a point may begin.
const WARMER: f64 = 3.0;
/// Longest wait for that.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Why a sweep of this machine can't go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A clock can't be set.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A search can't be prepared.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A search can't be run or validated, or differs from the validated one.
    #[error(transparent)]
    Search(#[from] EnergyError),
    /// A policy of the axes.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// This machine.
#[derive(Debug)]
pub struct Live<'a> {
    runtime: &'a Runtime,
    root: PathBuf,
    edges: &'a EdgeList,
    layout: &'a Layout,
    roots: &'a [Vertex],
    meter: Option<&'a Meter>,
    clocks: Option<Clocks>,
    window: PowerWindows,
    idle: Option<Energy>,
    /// The validated searches from all roots, after the first point.
    records: Vec<RootRecord>,
    /// The hottest zone when the sweep began.
    celsius: Option<f64>,
    usable: Vec<usize>,
    /// A point beside other programs is thrown away.
    is_strict: bool,
    began: Instant,
}

impl<'a> Live<'a> {
    /// The machine whose files are below `root`, idle now, with the searches from `roots` over `layout`, made of `edges`. A point takes at
    /// least `seconds`; with `is_strict` it is thrown away if other programs run meanwhile.
    pub fn new(
        runtime: &'a Runtime,
        root: PathBuf,
        (edges, layout, roots): (&'a EdgeList, &'a Layout, &'a [Vertex]),
        meter: Option<&'a Meter>,
        clocks: Option<Clocks>,
        (seconds, is_strict): (f64, bool),
    ) -> Self {
        let began = Instant::now();
        let window = PowerWindows { seconds: seconds / WINDOWS as f64, refreshes: REFRESHES / WINDOWS as u64 };
        let celsius = hottest(&root);
        let idle = meter.map(|meter| point_window(seconds).idle(meter));
        Self {
            runtime,
            root,
            edges,
            layout,
            roots,
            meter,
            clocks,
            window,
            idle,
            celsius,
            usable: usable_cpus(),
            is_strict,
            began,
            records: Vec::new(),
        }
    }

    /// The power of the idle machine.
    pub fn idle(&self) -> Option<&Energy> {
        self.idle.as_ref()
    }

    /// Puts the clocks back.
    ///
    /// # Errors
    /// [`ClockError::NotBack`].
    pub fn put_back(&mut self) -> Result<(), ClockError> {
        self.clocks.take().map_or(Ok(()), Clocks::put_back)
    }

    /// Waits until the machine is about as cool as when the sweep began. Returns the seconds.
    fn cool_down(&self) -> f64 {
        let begin = Instant::now();
        while hottest(&self.root).zip(self.celsius).is_some_and(|(now, first)| now > first + WARMER) && begin.elapsed() < LONGEST_WAIT {
            std::thread::sleep(Duration::from_millis(100));
        }
        begin.elapsed().as_secs_f64()
    }

    fn search(&mut self, point: &OperatingPoint, waited_seconds: f64) -> Result<Tried, SweepError> {
        let runtime = at(self.runtime, point)?;
        // Whatever this thread does between the points may run anywhere.
        let _guard = AffinityGuard::new();
        keep_off(point.cpus.numbers(), &self.usable);
        let Prepared { mut search, .. } = runtime.search(self.layout)?;
        // All roots at the first point, a few at the others: a window compares the levels of every search with those of its root.
        let count = if self.records.is_empty() { self.roots.len() } else { self.roots.len().min(VALIDATED) };
        let mut validated = Vec::with_capacity(count);
        measure(self.edges, self.layout, &mut search, &self.roots[..count], &mut |_, root| validated.extend(root))
            .map_err(EnergyError::from)?;
        if let Some(bad) = validated.iter().find(|root| !root.validation.passed) {
            return Ok(Tried::ThrownAway(format!("the tree from root {} failed validation", bad.root)));
        }
        if self.records.is_empty() {
            self.records = validated;
        }
        let before = (hottest(&self.root), Witness::look(&self.root));
        let windows = (0..WINDOWS).map(|_| window(&mut search, &self.records, self.meter, self.window));
        let windows = windows.collect::<Result<Vec<_>, _>>()?;
        let after = (hottest(&self.root), Witness::look(&self.root));
        let moved = self.clocks.as_ref().and_then(|clocks| clocks.moved(&point.clocks_khz));
        let other_cpus = before.1.other_cpus(&after.1);
        let beside =
            other_cpus.filter(|&cpus| self.is_strict && cpus > OTHER_CPUS).map(|cpus| format!("other programs used {cpus:.2} CPUs"));
        if let Some(why) = moved.or_else(|| before.1.slowed(&after.1)).or(beside) {
            return Ok(Tried::ThrownAway(why));
        }
        let energy = self.idle.as_ref().map(|idle| EnergySummary::new(idle, &windows));
        let measured = measured(&windows, energy, [before.0, after.0], waited_seconds);
        Ok(Tried::Measured(Box::new(PointMeasured { other_cpus, ..measured })))
    }
}

impl Machine for Live<'_> {
    type Error = SweepError;

    fn measure(&mut self, axes: &Axes, spot: &Spot) -> Result<Tried, SweepError> {
        let point = axes.point(spot);
        if let Some(clocks) = &self.clocks {
            match clocks.set(&point.clocks_khz) {
                // A step that the kernel lists may be out of reach now, for example because the chip is hot.
                Err(refused @ ClockError::Refused { .. }) => return Ok(Tried::ThrownAway(refused.to_string())),
                set => set?,
            }
        }
        let waited_seconds = self.cool_down();
        self.search(&point, waited_seconds)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The length of a point of at least `seconds`.
pub fn point_window(seconds: f64) -> PowerWindows {
    PowerWindows { seconds, refreshes: REFRESHES }
}

/// `runtime` with what `point` sets.
fn at(runtime: &Runtime, point: &OperatingPoint) -> Result<Runtime, SweepError> {
    let mut at = Runtime {
        cpus: Setting::flag(point.cpus.clone()),
        threads: Setting::flag(point.cpus.numbers().len()),
        device: Setting::flag(point.device.parse().unwrap_or(DeviceChoice::Auto)),
        ..runtime.clone()
    };
    if let Some(policy) = &point.policy {
        at.set_policy(Setting::flag(policy.parse::<Policy>()?));
    }
    Ok(at)
}

fn measured(
    windows: &[EnergyWindow],
    energy: Option<Result<EnergySummary, String>>,
    celsius: [Option<f64>; 2],
    waited_seconds: f64,
) -> PointMeasured {
    let problem = energy.as_ref().and_then(|energy| energy.as_ref().err().cloned());
    let energy = energy.and_then(Result::ok);
    let searches: u64 = windows.iter().map(|window| window.searches).sum();
    let seconds: f64 = windows.iter().map(|window| window.search_seconds).sum();
    // The harmonic mean over all searches of all windows.
    let teps = searches as f64 / windows.iter().map(|window| window.searches as f64 / window.teps).sum::<f64>();
    let spread = |least: f64, most: f64, mean: f64| (most - least) / mean;
    let speeds = || windows.iter().map(|window| window.teps);
    let spread = match &energy {
        Some(energy) => spread(energy.mteps_per_watt.min, energy.mteps_per_watt.max, energy.mteps_per_watt.mean),
        None => spread(speeds().fold(f64::INFINITY, f64::min), speeds().fold(0.0, f64::max), teps),
    };
    PointMeasured {
        teps,
        search_seconds: seconds / searches as f64,
        searches,
        spread,
        energy,
        problem,
        celsius,
        waited_seconds,
        other_cpus: None,
    }
}

fn hottest(root: &std::path::Path) -> Option<f64> {
    temperatures(root).iter().map(|zone| zone.celsius).max_by(f64::total_cmp)
}

/// The CPUs that this process may run on.
pub fn usable_cpus() -> Vec<usize> {
    let list = machine::status().get("Cpus_allowed_list").and_then(|list| list.parse::<CpuList>().ok());
    list.map_or_else(|| vec![0], |list| list.numbers().to_vec())
}

/// Moves the threads that read sensors to CPUs that do not search, where there are any.
fn keep_off(searching: &[usize], usable: &[usize]) {
    let others: Vec<usize> = usable.iter().filter(|cpu| !searching.contains(cpu)).copied().collect();
    let mut set = CpuSet::new();
    for &cpu in if others.is_empty() { usable } else { &others } {
        let _ = set.set(cpu); // fails for numbers that no machine has
    }
    for task in list_numbered(std::path::Path::new("/proc/self/task"), "") {
        let reads = line(task.join("comm")).is_some_and(|name| name.starts_with(Meter::THREADS));
        if let Some(thread) = machine::name(&task).parse().ok().filter(|_| reads) {
            // If it is refused, the thread reads from where it is.
            let _ = sched_setaffinity(Pid::from_raw(thread), &set);
        }
    }
}

/// What tells whether something disturbed a measurement.
#[derive(Debug, Clone, PartialEq)]
struct Witness {
    at: Instant,
    /// State of each cooling device that slows a processor, by its name.
    cooling: BTreeMap<String, u64>,
    /// Times that heat has slowed each CPU since the start.
    throttled: u64,
    /// Hundredths of a second that programs ran on all CPUs, and those of this process.
    busy: Option<[u64; 2]>,
}

impl Witness {
    fn look(root: &std::path::Path) -> Self {
        let cooling = list_numbered(&root.join("sys/class/thermal"), "cooling_device").into_iter().filter_map(|device| {
            let kind = line(device.join("type"))?;
            Some((kind, number(device.join("cur_state"))?)).filter(|(kind, _)| slows(kind))
        });
        let count = |cpu: PathBuf| number::<u64>(&cpu.join("thermal_throttle/package_throttle_count"));
        Self {
            at: Instant::now(),
            cooling: cooling.collect(),
            throttled: list_numbered(&root.join("sys/devices/system/cpu"), "cpu").into_iter().filter_map(count).sum(),
            busy: busy(&root.join("proc")),
        }
    }

    /// Why a measurement between `self` and `after` does not count.
    fn slowed(&self, after: &Self) -> Option<String> {
        if let Some((kind, state)) = after.cooling.iter().find(|(_, state)| **state > 0) {
            return Some(format!("the kernel slowed down {kind} (step {state})"));
        }
        (after.throttled > self.throttled).then(|| "the chip was slowed by heat".to_owned())
    }

    /// CPUs that other programs used between `self` and `after`.
    fn other_cpus(&self, after: &Self) -> Option<f64> {
        let seconds = after.at.duration_since(self.at).as_secs_f64();
        let [all, own] = [0, 1].map(|which| Some(after.busy?[which].saturating_sub(self.busy?[which])));
        // Both numbers are rounded to a tick of each CPU.
        Some((all?.saturating_sub(own?).saturating_sub(2)) as f64 / TICKS_PER_SECOND / seconds)
    }
}

/// Ticks that programs ran on all CPUs, and those of this process. Interrupts and the kernel's own threads are no programs: what a search
/// launches on a GPU keeps them busy, too.
fn busy(proc: &std::path::Path) -> Option<[u64; 2]> {
    let sum = |text: &str, fields: &[usize]| {
        let words: Vec<&str> = text.split_whitespace().collect();
        fields.iter().map(|&field| words.get(field)?.parse::<u64>().ok()).sum::<Option<u64>>()
    };
    // What follows the name of a process, from its state on: flags are its 6th field, utime and stime the 11th and 12th.
    let about = |process: &std::path::Path| Some(text(process.join("stat"))?.rsplit_once(") ")?.1.to_owned());
    let is_kernel = |stat: &String| sum(stat, &[6]).is_some_and(|flags| flags & KERNEL_THREAD != 0);
    let kernel = list_numbered(proc, "").into_iter().filter_map(|process| about(&process)).filter(is_kernel);
    let kernel: Vec<u64> = kernel.filter_map(|stat| sum(&stat, &[11, 12])).collect();
    // user, nice, system. A container hides the threads of the kernel: there only the time outside of the kernel is that of programs.
    let (all, own): (&[usize], &[usize]) = if kernel.is_empty() { (&[1, 2], &[11]) } else { (&[1, 2, 3], &[11, 12]) };
    let all = sum(&line(proc.join("stat"))?, all)?.saturating_sub(kernel.iter().sum());
    Some([all, sum(&about(&proc.join("self"))?, own)?])
}

/// The flag of the kernel's own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Writes what a kernel says of 10 processes of programs with these `[user, system]` ticks, this one, and a thread of the kernel.
    fn write(proc: &Path, others: [u64; 2], own: [u64; 2], kernel: Option<u64>, interrupts: u64) {
        let process = |place: &str, flags: u64, [user, system]: [u64; 2]| {
            fs::create_dir_all(proc.join(place)).unwrap();
            fs::write(proc.join(place).join("stat"), format!("7 (a) b) R 1 1 0 0 -1 {flags} 0 0 0 0 {user} {system} 0 0")).unwrap();
        };
        process("self", 0x40_0000, own);
        process("77", 0x40_0000, others);
        kernel.into_iter().for_each(|kernel| process("2", 0x20_8040, [0, kernel]));
        let system = others[1] + own[1] + kernel.unwrap_or(0);
        fs::write(proc.join("stat"), format!("cpu  {} 0 {system} 9 9 {interrupts} {interrupts} 0 0 0\n", others[0] + own[0])).unwrap();
    }

    #[test]
    fn other_programs_disturb_and_what_a_search_launches_does_not() {
        let root = tempfile::tempdir().unwrap();
        let look = |others, own, kernel, interrupts| {
            write(&root.path().join("proc"), others, own, kernel, interrupts);
            Witness::look(root.path())
        };
        let others = |[before, after]: [Witness; 2]| before.other_cpus(&Witness { at: before.at + Duration::from_secs(10), ..after });
        // A driver's threads and interrupts take half of the time.
        assert_eq!(others([look([5, 5], [9, 9], Some(9), 9), look([5, 5], [700, 100], Some(509), 309)]), Some(0.0));
        for ticks in [[105, 5], [5, 105]] {
            let used = others([look([5, 5], [9, 9], Some(9), 9), look(ticks, [700, 100], Some(509), 309)]);
            assert!((used.unwrap() - 0.098).abs() < 1e-9, "{used:?}");
        }
        // A container shows no thread of the kernel.
        fs::remove_dir_all(root.path().join("proc")).unwrap();
        assert_eq!(others([look([5, 5], [9, 9], None, 9), look([5, 505], [700, 100], None, 309)]), Some(0.0));
        assert!(others([look([5, 5], [9, 9], None, 9), look([105, 5], [700, 100], None, 309)]).unwrap() > OTHER_CPUS);
    }
}
