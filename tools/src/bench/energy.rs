//! Energy of searches: windows that hold only searches, the power of the idle machine, and a model of the energy of each level.

use socbfs_power::{Energy, Joules, Meter, Watts};

use super::MeasureError;
use crate::{
    calibrate::{Contestant, PowerWindows, in_windows},
    record::{
        DomainWatts, EnergyRecord, EnergySummary, EnergyWindow, LevelModel, MeasuredEnergy, Model, PoliciesEnergy, PolicyEnergy,
        RootRecord, StrategyPower, StrategyTime,
    },
};
use socbfs::{Direction, GpuKernel, Layout, LevelPlan, LevelRecord, Placement, Run, Search, SearchOptions, Vertex, stats};
use socbfs_cluster::ClusterError;
use socbfs_policy::Policy;

/// Options of the energy measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyOptions {
    /// The windows of searches; one of the idle machine is a third as long.
    pub window: PowerWindows,
    /// Number of windows; their spread is that of the result.
    pub repeats: usize,
}

impl Default for EnergyOptions {
    /// 10 s, 200 refreshes, 3 windows.
    fn default() -> Self {
        Self { window: PowerWindows { seconds: 10.0, refreshes: 200 }, repeats: 3 }
    }
}

impl EnergyRecord {
    /// A record without energy, for this reason.
    pub fn unavailable(reason: impl Into<String>, cure: Option<String>) -> Self {
        Self { unavailable: Some(reason.into()), cure, ..Self::default() }
    }

    /// The statistics over the windows, where there are any.
    pub fn summary(&self) -> Option<&EnergySummary> {
        self.measured.as_ref()?.summary.as_ref()
    }

    /// Why there is no energy.
    pub fn why(&self) -> &str {
        self.reason().unwrap_or("nothing was measured")
    }

    /// Why there are no statistics.
    pub fn reason(&self) -> Option<&str> {
        self.unavailable.as_deref().or_else(|| self.measured.as_ref()?.problem.as_deref())
    }
}

impl MeasuredEnergy {
    /// The measurement of these windows, without a model of levels.
    pub(super) fn new(scope: &str, sensors: Vec<String>, options: &EnergyOptions, idle: Energy, windows: Vec<EnergyWindow>) -> Self {
        let summary = EnergySummary::new(&idle, &windows);
        let problem = summary.as_ref().err().cloned();
        Self {
            scope: scope.to_owned(),
            sensors,
            window_seconds: options.window.seconds,
            window_refreshes: options.window.refreshes,
            idle,
            windows,
            summary: summary.ok(),
            model: Model { unavailable: problem.clone(), ..Model::default() },
            problem,
        }
    }
}

/// Why energy could not be measured although there is a sensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnergyError {
    /// A search could not run.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A search over ranks could not run.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A search in a window had a different number of levels than the validated search from that root.
    #[error("the search from root {root} had {found} levels while energy was measured, and {validated} when it was validated")]
    Different {
        /// The root.
        root: Vertex,
        /// Levels in the window.
        found: u32,
        /// Levels of the validated tree.
        validated: u32,
    },
}

/// Smallest power above idle, as a share of the whole power, that can be distinguished from none.
const LEAST_NET_SHARE: f64 = 1e-3;

/// Direction and device (for the GPU, the name of the kernel), which determine the power of a level.
type Strategy<'a> = (Direction, &'a str);

fn strategy(plan: LevelPlan) -> Strategy<'static> {
    let device = match plan.placement {
        Placement::Cpu => "cpu",
        Placement::Gpu(kernel) => kernel.name(),
        Placement::Split { .. } | Placement::Apart { .. } => "cpu+gpu",
    };
    (plan.direction, device)
}

/// A policy under which every level has this strategy.
fn policy_of(strategy: Strategy<'_>) -> Option<Policy> {
    match strategy {
        (Direction::TopDown, "cpu") => Some(Policy::Fixed(socbfs::bfs::Strategy::Tc)),
        (Direction::BottomUp, "cpu") => Some(Policy::Fixed(socbfs::bfs::Strategy::Bc)),
        (_, kernel) => GpuKernel::ALL.into_iter().find(|known| known.name() == kernel).map(|kernel| Policy::Fixed(kernel.into())),
    }
}

/// Measures the energy of searches from the roots of `records`, all validated, by `meter`: first the idle machine, then windows of
/// searches, then, for the model, a window of each strategy that ran. `finished` is called with the number of windows done, without those
/// of the model.
///
/// # Errors
/// [`EnergyError`]. A sensor that fails is not an error: the record then says that a window is incomplete, and why.
///
/// # Panics
/// If the seconds of `options` are negative or not finite.
pub fn measure_energy(
    layout: &Layout,
    mut search: Search<'_>,
    search_options: &SearchOptions,
    records: &[RootRecord],
    meter: &Meter,
    options: &EnergyOptions,
    finished: &mut dyn FnMut(usize),
) -> Result<EnergyRecord, EnergyError> {
    // Without a search, a window would never end.
    if records.is_empty() {
        return Ok(EnergyRecord::unavailable("there is no search to measure", None));
    }
    let (idle, windows) = in_windows(Some(meter), options.window.third(), options.repeats, finished, |place| {
        if place == 0 {
            warm_up(&mut search, records)?;
        }
        window(&mut search, records, Some(meter), options.window)
    })?;
    // The searches that measure the power of each strategy need its memory.
    drop(search);
    let mut measured = MeasuredEnergy::new(meter.scope(), meter.sensors(), options, idle, windows);
    if measured.summary.is_some() {
        measured.model = model(layout, search_options, records, meter, options, &measured.windows)?;
    }
    Ok(EnergyRecord { measured: Some(measured), skipped: meter.skipped().to_vec(), ..EnergyRecord::default() })
}

/// Measures the energy of a search that is repeated: `run` searches once and returns the seconds, and has run before. Each search traverses
/// `edges`. Otherwise as [`measure_energy`], without a model.
///
/// # Errors
/// Those of `run`.
///
/// # Panics
/// If the seconds of `options` are negative or not finite.
pub fn measure_repeated_energy<E>(
    edges: u64,
    meter: &Meter,
    options: &EnergyOptions,
    finished: &mut dyn FnMut(usize),
    mut run: impl FnMut() -> Result<f64, E>,
) -> Result<EnergyRecord, E> {
    let (idle, windows) = in_windows(Some(meter), options.window.third(), options.repeats, finished, |place| {
        if place == 0 {
            run()?;
        }
        options.window.searching(Some(meter), |enough| enough, || Ok((run()?, edges)))
    })?;
    let mut measured = MeasuredEnergy::new(meter.scope(), meter.sensors(), options, idle, windows);
    measured.model.unavailable.get_or_insert_with(|| "levels of this search are not modelled".to_owned());
    Ok(EnergyRecord { measured: Some(measured), skipped: meter.skipped().to_vec(), ..EnergyRecord::default() })
}

/// Measures `contestants` in turn, A B A B, by searches from the validated roots of `records`: a window of each, `options.repeats` times.
/// `baseline` is the index of the contestant with which the others are compared. `finished` is called with the number of windows done, the
/// idle one included. Leaves the policy of the search changed.
///
/// # Errors
/// [`EnergyError`]. A sensor that fails is not an error: a summary is then absent. It is absent too if `records` is empty.
///
/// # Panics
/// If the seconds of `options` are negative or not finite.
pub fn measure_policies_energy(
    search: &mut Search<'_>,
    contestants: &[Contestant],
    baseline: usize,
    records: &[RootRecord],
    meter: &Meter,
    options: &EnergyOptions,
    finished: &mut dyn FnMut(usize),
) -> Result<PoliciesEnergy, EnergyError> {
    // Without a search, a window would never end.
    let count = if records.is_empty() { 0 } else { options.repeats * contestants.len() };
    let (idle, all) = in_windows(Some(meter), options.window.third(), count, finished, |place| {
        let Contestant { policy, runs, .. } = &contestants[place % contestants.len()];
        search.set_planner(policy.clone().on(*runs)).map_err(MeasureError::from)?;
        warm_up(search, records)?;
        window(search, records, Some(meter), options.window)
    })?;
    let of = |place: usize| all.iter().skip(place).step_by(contestants.len());
    let efficiency = |window: &EnergyWindow| window.energy.watts.map(|watts| window.teps / 1e6 / watts.0);
    let policies = contestants
        .iter()
        .enumerate()
        .map(|(place, contestant)| {
            // An incomplete window leaves the policy without any statistics.
            let ratio = |(window, against)| Some(efficiency(window)? / efficiency(against)?);
            let ratios: Option<Vec<f64>> = of(place).zip(of(baseline)).map(ratio).collect();
            let windows: Vec<EnergyWindow> = of(place).cloned().collect();
            let summary = EnergySummary::new(&idle, &windows);
            PolicyEnergy {
                policy: contestant.name.clone(),
                problem: summary.as_ref().err().cloned(),
                summary: summary.ok(),
                over_baseline: ratios.and_then(|ratios| stats::Summary::of(&ratios)),
                windows,
            }
        })
        .collect();
    let baseline = contestants.get(baseline).map_or_else(String::new, |contestant| contestant.name.clone());
    Ok(PoliciesEnergy { scope: meter.scope().to_owned(), sensors: meter.sensors(), baseline, idle, policies })
}

fn warm_up(search: &mut Search<'_>, records: &[RootRecord]) -> Result<(), EnergyError> {
    records.first().map_or(Ok(()), |first| run(search, first).map(drop))
}

fn run(search: &mut Search<'_>, record: &RootRecord) -> Result<f64, EnergyError> {
    let outcome = search.run(Run { uncounted: true, ..record.root.into() }).map_err(MeasureError::from)?;
    // An uncounted search may not report a last level of leaves alone, which the layout leaves out.
    let leaves = u32::from(search.layout().stats().leaves > 0);
    check_levels(record, outcome.levels, leaves)?;
    Ok(outcome.elapsed.as_secs_f64())
}

/// Compares the number of levels of a search with that of the validated one, which may have up to `leaves` more.
pub(super) fn check_levels(record: &RootRecord, found: u32, leaves: u32) -> Result<(), EnergyError> {
    if (found..=found + leaves).contains(&record.levels) {
        return Ok(());
    }
    Err(EnergyError::Different { root: record.root, found, validated: record.levels })
}

/// Measures one window of this process, by the clock alone if there is no `meter`.
pub(crate) fn window(
    search: &mut Search<'_>,
    records: &[RootRecord],
    meter: Option<&Meter>,
    length: PowerWindows,
) -> Result<EnergyWindow, EnergyError> {
    let mut strategies: Vec<(Strategy<'static>, u64)> = Vec::with_capacity(8);
    let search = in_turn(records, |record| {
        let seconds = run(search, record)?;
        for level in search.records() {
            let key = strategy(level.plan);
            match strategies.iter_mut().find(|(found, _)| *found == key) {
                Some((_, nanoseconds)) => *nanoseconds += level.elapsed_ns,
                None => strategies.push((key, level.elapsed_ns)),
            }
        }
        Ok(seconds)
    });
    let mut window = length.searching(meter, |enough| enough, search)?;
    let time = |((direction, device), nanoseconds): (Strategy<'static>, u64)| StrategyTime {
        direction,
        device: device.into(),
        seconds: nanoseconds as f64 / 1e9,
    };
    window.strategies = strategies.into_iter().map(time).collect();
    Ok(window)
}

/// Searches from all roots in turn by `search`, which returns the seconds: the seconds and the edges of the next search.
pub(super) fn in_turn(
    records: &[RootRecord],
    mut search: impl FnMut(&RootRecord) -> Result<f64, EnergyError>,
) -> impl FnMut() -> Result<(f64, u64), EnergyError> {
    let mut turn = records.iter().cycle();
    move || turn.next().map_or(Ok((0.0, 0)), |record| Ok((search(record)?, record.edges)))
}

impl EnergySummary {
    /// The statistics of `windows`.
    ///
    /// # Errors
    /// Why there are none: one of them, or `idle`, has no energy.
    pub fn new(idle: &Energy, windows: &[EnergyWindow]) -> Result<Self, String> {
        let mut all =
            std::iter::once(("while the machine idled", idle)).chain(windows.iter().map(|window| ("in a window", &window.energy)));
        let why = all.find_map(|(when, energy)| Some(format!("incomplete {when}: {}", energy.problem.as_deref()?)));
        Self::of(idle, windows).ok_or_else(|| why.unwrap_or_else(|| "no window was measured".to_owned()))
    }

    fn of(idle: &Energy, windows: &[EnergyWindow]) -> Option<Self> {
        let idle_watts = idle.watts?;
        let all = windows.iter().map(|window| Some((window, window.energy.watts?, window.energy.joules?)));
        let all: Vec<(&EnergyWindow, Watts, Joules)> = all.collect::<Option<_>>()?;
        let over = |value: &dyn Fn(&EnergyWindow, Watts, Joules) -> f64| {
            stats::Summary::of(&all.iter().map(|&(window, watts, joules)| value(window, watts, joules)).collect::<Vec<_>>())
        };
        let each = |window: &EnergyWindow, value: f64| value / window.searches as f64;
        // A difference in the last digits of two sums is not a measured power.
        let has_net = all.iter().all(|(_, watts, _)| watts.0 - idle_watts.0 > LEAST_NET_SHARE * watts.0);
        let counted = || windows.iter().flat_map(|window| &window.energy.rails).filter(|rail| rail.counted);
        let net = |value: &dyn Fn(&EnergyWindow, Watts, Joules) -> f64| if has_net { over(value) } else { None };
        Some(Self {
            mteps_per_watt: over(&|window, watts, _| window.teps / 1e6 / watts.0)?,
            mteps_per_watt_net_of_idle: net(&|window, watts, _| window.teps / 1e6 / (watts - idle_watts).0),
            watts: over(&|_, watts, _| watts.0)?,
            joules_per_search: over(&|window, _, joules| each(window, joules.0))?,
            joules_per_search_net_of_idle: net(&|window, _, joules| each(window, (joules - idle_watts.during(window.energy.seconds)).0)),
            energy_delay_joule_seconds: over(&|window, _, joules| each(window, each(window, joules.0) * window.search_seconds))?,
            idle_watts,
            domains: domains(windows),
            samples: counted().map(|rail| rail.samples).sum(),
            wraps: counted().map(|rail| rail.wraps).sum(),
        })
    }
}

/// Mean power by domain, each over the windows that have it.
fn domains(windows: &[EnergyWindow]) -> Vec<DomainWatts> {
    let all = || windows.iter().flat_map(|window| &window.energy.domains);
    let mut found: Vec<DomainWatts> = Vec::new();
    for power in all() {
        if found.iter().any(|known| known.domain == power.domain) {
            continue;
        }
        let watts: Vec<f64> = all().filter(|other| other.domain == power.domain).map(|other| other.watts.0).collect();
        let mean = watts.iter().sum::<f64>() / watts.len() as f64;
        found.push(DomainWatts { domain: power.domain, watts: Watts(mean), counted: power.counted });
    }
    found
}

/// Measures the power of every strategy that ran, one at a time, and models the energy of windows and levels by it.
fn model(
    layout: &Layout,
    search_options: &SearchOptions,
    records: &[RootRecord],
    meter: &Meter,
    options: &EnergyOptions,
    windows: &[EnergyWindow],
) -> Result<Model, EnergyError> {
    let searches: u64 = windows.iter().map(|window| window.searches).sum();
    let search_seconds: f64 = windows.iter().map(|window| window.search_seconds).sum();
    let mut strategies: Vec<StrategyPower> = Vec::new();
    for StrategyTime { direction, device, seconds } in windows.iter().flat_map(|window| &window.strategies) {
        match strategies.iter_mut().find(|of| (of.direction, &of.device) == (*direction, device)) {
            Some(of) => of.seconds += seconds,
            None => strategies.push(StrategyPower {
                direction: *direction,
                device: device.clone(),
                watts: None,
                seconds: *seconds,
                time_share: 0.0,
                modelled_joules_per_search: None,
            }),
        }
    }
    let mut unavailable = None;
    for of in &mut strategies {
        of.time_share = of.seconds / search_seconds;
        let (direction, device) = (of.direction, &*of.device);
        let Some(policy) = policy_of((direction, device)) else {
            unavailable.get_or_insert_with(|| format!("no policy runs {direction:?} on {device} alone, so its power can't be calibrated"));
            continue;
        };
        let own = SearchOptions { planner: policy.into(), ..search_options.clone() };
        let mut search = Search::new(layout, &own).map_err(MeasureError::from)?;
        warm_up(&mut search, records)?;
        let calibration = window(&mut search, records, Some(meter), options.window.third())?;
        of.watts = calibration.energy.watts;
        of.modelled_joules_per_search = of.watts.map(|watts| Joules(watts.during(of.seconds).0 / searches as f64));
        if of.watts.is_none() {
            let problem =
                || calibration.energy.problem.unwrap_or_else(|| format!("the power of {direction:?} on {device} was not measured"));
            unavailable.get_or_insert_with(problem);
        }
    }
    let seconds: f64 = windows.iter().map(|window| window.energy.seconds).sum();
    let measured: Option<f64> = windows.iter().map(|window| window.energy.joules.map(|joules| joules.0)).sum();
    // The time outside of levels, mostly mapping back, is assumed to take the mean power of the levels.
    let levels: f64 = strategies.iter().map(|of| of.seconds).sum();
    let modelled: Option<f64> = strategies.iter().map(|of| of.watts.map(|watts| watts.during(of.seconds).0)).sum();
    let both = measured.zip(modelled).filter(|(measured, _)| levels > 0.0 && *measured > 0.0);
    let level = |record: &LevelRecord| {
        let (direction, device) = strategy(record.plan);
        let of = strategies.iter().find(|of| of.direction == direction && of.device == device)?;
        Some(LevelModel { level: record.stats.level, modelled_joules: of.watts?.during(record.elapsed_ns as f64 / 1e9) })
    };
    let roots: Option<Vec<Vec<LevelModel>>> = records.iter().map(|root| root.level_records.iter().map(level).collect()).collect();
    Ok(Model {
        unavailable,
        residual: both.map(|(measured, modelled)| (measured - modelled * seconds / levels) / measured),
        roots: roots.unwrap_or_default(),
        strategies,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, time::Duration};

    use socbfs_power::{DomainPower, Selection, SystemFiles, discover};

    use super::*;
    use crate::bench::runner::validated;
    use socbfs::graph::{BuildOptions, EdgeList, Listing};
    use socbfs_policy::LevelDevice;
    use socbfs_power::Domain;

    /// A machine with one INA219 that reads 18 W.
    fn machine(root: &Path) -> SystemFiles {
        let chip = root.join("sys/class/hwmon/hwmon0");
        fs::create_dir_all(&chip).unwrap();
        for (name, text) in [("name", "ina219"), ("power1_input", "18000000")] {
            fs::write(chip.join(name), text).unwrap();
        }
        SystemFiles::new(root)
    }

    fn measured(options: &EnergyOptions, during: impl FnOnce(&Path) + Send) -> EnergyRecord {
        let folder = tempfile::tempdir().unwrap();
        let selection = Selection::named(discover(&machine(folder.path())), &["ina2xx".to_owned()], None).unwrap();
        let meter = Meter::start(selection).unwrap();
        let edges = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 3], [3, 4]], Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let search_options = SearchOptions::default();
        let mut search = Search::new(&layout, &search_options).unwrap();
        let records = validated(&edges, &layout, &mut search, &[0, 2]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| during(folder.path()));
            measure_energy(&layout, search, &search_options, &records, &meter, options, &mut |_| ()).unwrap()
        })
    }

    #[test]
    fn a_power_that_is_not_above_zero_has_no_efficiency() {
        let options = EnergyOptions { window: PowerWindows { seconds: 0.1, refreshes: 1 }, repeats: 1 };
        let power = |micro_watts: &str| {
            let window = window_of(micro_watts, &options);
            EnergySummary::new(&window.0, &window.1)
        };
        for micro_watts in ["0", "-3000000"] {
            let why = power(micro_watts).unwrap_err();
            assert!(why.starts_with("incomplete while the machine idled") && why.contains("must be above 0"), "{micro_watts}: {why}");
        }
        assert!(power("3000000").is_ok());
    }

    #[test]
    fn the_power_of_a_domain_is_that_of_the_windows_that_have_it() {
        let window = |powers: &[(Domain, f64)]| {
            let domains = powers.iter().map(|&(domain, watts)| DomainPower { domain, watts: Watts(watts), counted: false }).collect();
            let energy = Energy { seconds: 1.0, domains, ..Energy::default() };
            EnergyWindow { energy, searches: 1, search_seconds: 1.0, teps: 1.0, refreshes: 1, strategies: Vec::new() }
        };
        // A rail that is not counted had a gap in the first window.
        let windows = [window(&[(Domain::Cpu, 2.0)]), window(&[(Domain::Cpu, 4.0), (Domain::Memory, 1.0)])];
        let found: Vec<(Domain, f64)> = domains(&windows).iter().map(|found| (found.domain, found.watts.0)).collect();
        assert_eq!(found, [(Domain::Cpu, 3.0), (Domain::Memory, 1.0)]);
    }

    /// Energy of the idle machine and a window of searches, with a sensor that reads this power.
    fn window_of(micro_watts: &str, options: &EnergyOptions) -> (Energy, Vec<EnergyWindow>) {
        let folder = tempfile::tempdir().unwrap();
        let tree = machine(folder.path());
        fs::write(folder.path().join("sys/class/hwmon/hwmon0/power1_input"), micro_watts).unwrap();
        let meter = Meter::start(Selection::named(discover(&tree), &["ina2xx".to_owned()], None).unwrap()).unwrap();
        let edges = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let records = validated(&edges, &layout, &mut search, &[0]).unwrap();
        undisturbed(
            || (options.window.idle(&meter), vec![window(&mut search, &records, Some(&meter), options.window).unwrap()]),
            |(idle, windows)| idle.rails[0].coverage > 0.99 && windows[0].energy.rails[0].coverage > 0.99,
        )
    }

    #[test]
    fn without_a_search_there_is_no_window() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::start(Selection::named(discover(&machine(folder.path())), &["ina2xx".to_owned()], None).unwrap()).unwrap();
        let layout = Layout::build(&EdgeList::new(2, vec![[0, 1]], Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let options = EnergyOptions { window: PowerWindows { seconds: 0.01, refreshes: 1 }, repeats: 1 };
        let contestant = Contestant { name: "auto".to_owned(), policy: Policy::default(), runs: LevelDevice::Cpu };
        let policies = measure_policies_energy(&mut search, &[contestant], 0, &[], &meter, &options, &mut |_| ()).unwrap();
        assert!(policies.policies[0].windows.is_empty());
        let record = measure_energy(&layout, search, &SearchOptions::default(), &[], &meter, &options, &mut |_| ()).unwrap();
        assert_eq!(record.reason(), Some("there is no search to measure"));
    }

    /// Measures until the result is complete. Beside other programs the meter's thread may come so late that a window has a gap, and a
    /// window with a gap rightly has no energy.
    fn undisturbed<T>(mut measure: impl FnMut() -> T, is_complete: impl Fn(&T) -> bool) -> T {
        let mut last = measure();
        for _ in 0..20 {
            if is_complete(&last) {
                break;
            }
            last = measure();
        }
        last
    }

    #[test]
    fn windows_contain_only_searches_and_give_the_simulated_power() {
        let options = EnergyOptions { window: PowerWindows { seconds: 0.3, refreshes: 10 }, repeats: 2 };
        let is_searching = |window: &EnergyWindow| window.searches > 100 && window.search_seconds > 0.3 * window.energy.seconds;
        let record = undisturbed(
            || measured(&options, |_| ()),
            |record| {
                let energy = record.measured.as_ref().unwrap();
                energy.summary.is_some() && energy.model.unavailable.is_none() && energy.windows.iter().all(is_searching)
            },
        );
        let energy = record.measured.as_ref().unwrap();
        assert_eq!((&energy.scope[..], energy.windows.len()), ("soc-rails", 2));
        let summary = record.summary().unwrap();
        assert!((summary.watts.mean - 18.0).abs() < 1e-9 && (summary.idle_watts.0 - 18.0).abs() < 1e-9, "{summary:?}");
        // With a constant power, nothing is left above idle.
        assert_eq!((summary.mteps_per_watt_net_of_idle, summary.joules_per_search_net_of_idle), (None, None));
        for window in &energy.windows {
            assert!(window.energy.seconds >= 0.3 && window.refreshes >= 10, "{window:?}");
            assert!(is_searching(window) && window.search_seconds <= window.energy.seconds, "{window:?}");
            let joules = window.energy.joules.unwrap().0;
            assert!((joules - 18.0 * window.energy.seconds).abs() < 1e-6 * joules);
        }
        let per_search = energy.windows[0].energy.joules.unwrap().0 / energy.windows[0].searches as f64;
        assert!(summary.joules_per_search.min <= per_search && per_search <= summary.joules_per_search.max);
        assert!((summary.mteps_per_watt.max - energy.windows.iter().map(|w| w.teps).fold(0.0, f64::max) / 18e6).abs() < 1e-9);
        // Every strategy takes 18 W, so the model is exact, and its levels are those of the record.
        assert!(energy.model.unavailable.is_none() && energy.model.residual.unwrap().abs() < 1e-6, "{:?}", energy.model);
        assert_eq!(energy.model.roots.len(), 2);
        assert!(energy.model.roots.iter().flatten().all(|level| level.modelled_joules.0 > 0.0));
    }

    #[test]
    fn a_vanished_sensor_leaves_no_energy_figures() {
        let options = EnergyOptions { window: PowerWindows { seconds: 0.3, refreshes: 10 }, repeats: 2 };
        let record = measured(&options, |root| {
            std::thread::sleep(Duration::from_millis(350));
            fs::write(root.join("sys/class/hwmon/hwmon0/power1_input"), "").unwrap();
        });
        assert_eq!(record.summary(), None);
        assert!(record.reason().unwrap().contains("the sensor has disappeared"), "{:?}", record.reason());
        assert!(record.measured.unwrap().model.unavailable.is_some());
    }

    #[test]
    fn a_search_that_differs_from_the_validated_one_is_an_error() {
        let edges = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let mut records = validated(&edges, &layout, &mut search, &[0]).unwrap();
        records[0].levels = 9;
        let error = run(&mut search, &records[0]).unwrap_err();
        assert!(matches!(error, EnergyError::Different { found: 3, validated: 9, .. }), "{error}");
    }
}
