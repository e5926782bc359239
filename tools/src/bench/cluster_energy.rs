//! Energy of searches over several boards. Every rank reads the sensors of its own board during the searches; each sensor is counted once.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socbfs_power::{Energy, Meter, RailEnergy};

use super::energy::{EnergyError, EnergyOptions, check_levels, in_turn};
use crate::{
    calibrate::in_windows,
    record::{EnergyRecord, EnergyWindow, MeasuredEnergy, RootRecord},
};
use socbfs_cluster::{ClusterSearch, Host, Ranks, all_gather, sum};

/// The sensors of a rank, as sent to all ranks.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RankSensors {
    host: Host,
    /// Why the rank has no sensor, and how to cure that.
    unavailable: Option<(String, Option<String>)>,
    scope: String,
    /// The sensors that it counts, each with the part of the board that it measures.
    sensors: Vec<(String, socbfs_power::Component)>,
    /// Time for which the rank measures the idle machine.
    idle_seconds: f64,
}

/// The sensors that each rank counts.
#[derive(Debug, Default, PartialEq)]
struct Counting {
    /// For each rank, the name of its board and the sensors that it counts.
    ranks: Vec<(String, Vec<String>)>,
    /// What the sum of all sensors covers.
    scope: String,
}

/// Assigns sensors to ranks: what several ranks of one machine measure is counted by the first of them, also if their sensors differ (one
/// container may read powercap, and another one only perf).
fn counting(all: &[RankSensors]) -> Result<Counting, Box<EnergyRecord>> {
    let hosts = Host::distinct(all.iter().map(|rank| &rank.host));
    let named_twice = |host: &Host| hosts.iter().filter(|other| other.name == host.name).count() > 1;
    let name = |host: &Host| {
        let first = all.iter().position(|rank| rank.host == *host).unwrap_or(0);
        if host.name.is_empty() || named_twice(host) {
            format!("{} (rank {first})", host.name).trim_start().to_owned()
        } else {
            host.name.clone()
        }
    };
    let mut scopes: Vec<&str> = Vec::new();
    for &host in &hosts {
        let here = || all.iter().enumerate().filter(|(_, rank)| rank.host == *host);
        let mut with = here().filter(|(_, rank)| rank.unavailable.is_none());
        let Some((first, rank)) = with.next() else {
            let (reason, cure) = here().find_map(|(_, rank)| rank.unavailable.clone()).unwrap_or_default();
            return Err(EnergyRecord::unavailable(format!("board {}: {reason}", name(host)), cure).into());
        };
        if let Some((other, _)) = with.find(|(_, other)| other.scope != rank.scope) {
            let reason = format!("board {}: ranks {first} and {other} read sensors of different scopes", name(host));
            return Err(EnergyRecord::unavailable(reason, Some("give all ranks of a board the same --energy".to_owned())).into());
        }
        if !scopes.contains(&&rank.scope[..]) {
            scopes.push(&rank.scope);
        }
    }
    let mut taken: Vec<(usize, &str, &socbfs_power::Component)> = Vec::new();
    let mut ranks = Vec::with_capacity(all.len());
    for (number, rank) in all.iter().enumerate() {
        let mut counts = Vec::new();
        for (sensor, part) in &rank.sensors {
            match taken.iter().find(|(first, _, other)| all[*first].host == rank.host && other.overlaps(part)) {
                None => {
                    taken.push((number, sensor, part));
                    counts.push(sensor.clone());
                }
                Some((_, _, other)) if *other == part => {}
                Some((first, other, _)) => {
                    let board = name(&rank.host);
                    let reason = format!("board {board}: {other} of rank {first} and {sensor} of rank {number} measure the same power");
                    return Err(EnergyRecord::unavailable(reason, Some("give all ranks of a board the same --energy".to_owned())).into());
                }
            }
        }
        ranks.push((name(&rank.host), counts));
    }
    let boards = if hosts.len() == 1 { "board" } else { "boards" };
    Ok(Counting { ranks, scope: format!("{} of {} {boards}", scopes.join(" and "), hosts.len()) })
}

impl Counting {
    /// The energy of all boards over a window; incomplete where that of a rank is which counts a sensor.
    fn total<'e>(&self, of_ranks: impl Iterator<Item = &'e Energy>) -> Energy {
        let mut rails = Vec::new();
        let (mut begin, mut seconds, mut problem) = (0.0, 0.0, None);
        for ((board, counts), energy) in self.ranks.iter().zip(of_ranks) {
            if counts.is_empty() {
                continue;
            }
            if rails.is_empty() {
                begin = energy.begin_monotonic_seconds;
            }
            seconds = f64::max(seconds, energy.seconds);
            if let (None, Some(reason)) = (&problem, &energy.problem) {
                problem = Some(format!("board {board}: {reason}"));
            }
            for sensor in counts {
                let Some(rail) = energy.rails.iter().find(|rail| rail.sensor == *sensor) else {
                    // The sensor worked when the meter started.
                    problem = problem.or_else(|| Some(format!("board {board}: {sensor}: the sensor has disappeared")));
                    continue;
                };
                rails.push(RailEnergy { sensor: format!("{board} {sensor}"), ..rail.clone() });
            }
        }
        // Windows of boards end within one search of each other, so the mean powers over the boards' own windows are added.
        let watts = rails.iter().map(|rail| rail.watts).sum::<Option<_>>().filter(|_| problem.is_none() && !rails.is_empty());
        let all = Energy::sum(&self.scope, begin, seconds, rails);
        let joules = all.joules.filter(|_| problem.is_none());
        Energy { joules, watts, complete: joules.is_some(), problem, ..all }
    }
}

/// As [`measure_energy`](super::measure_energy), over ranks, without the model of levels. All ranks call it, each with the sensors of its
/// own board, and get the same sums.
///
/// # Errors
/// [`EnergyError`]. A board without a sensor is not an error: the record then names the board.
pub fn measure_cluster_energy<R: Ranks>(
    search: &mut ClusterSearch<'_, R>,
    ranks: &R,
    records: &[RootRecord],
    host: Host,
    meter: Result<&Meter, &EnergyRecord>,
    options: &EnergyOptions,
    finished: &mut dyn FnMut(usize),
) -> Result<EnergyRecord, EnergyError> {
    // Without a search, the figures of a window would not be numbers.
    if records.is_empty() {
        return Ok(EnergyRecord::unavailable("there is no search to measure", None));
    }
    let (length, third) = (options.window, options.window.third());
    let own = match meter {
        Ok(meter) => {
            let counted = meter.picks().filter(|pick| pick.counted);
            let sensors = counted.map(|pick| (pick.channel.name(), pick.channel.part.clone())).collect();
            RankSensors { host, unavailable: None, scope: meter.scope().to_owned(), sensors, idle_seconds: third.least_seconds(meter) }
        }
        Err(record) => {
            let reason = record.reason().unwrap_or("no sensor can be used").to_owned();
            let unavailable = Some((reason, record.cure.clone()));
            RankSensors { host, unavailable, scope: String::new(), sensors: Vec::new(), idle_seconds: 0.0 }
        }
    };
    let all = all_gather(ranks, &own)?;
    let counting = match counting(&all) {
        Ok(counting) => counting,
        Err(unavailable) => return Ok(*unavailable),
    };
    let (begin, longest) = (Instant::now(), all.iter().map(|rank| rank.idle_seconds).fold(0.0, f64::max));
    let measured = in_windows(meter.ok(), third, options.repeats, finished, |place| {
        if place == 0 {
            // A rank may share its board with a rank that has a sensor, or a slower one. It sleeps until all have measured the idle
            // machine, since MPI waits with a busy CPU.
            std::thread::sleep(Duration::from_secs_f64(longest * 1.1).saturating_sub(begin.elapsed()));
        }
        // Without this barrier, a board that reads its sensors slowly would end its last window while the others already wait in the next.
        ranks.barrier();
        // All ranks continue until every window is long enough, so that no rank searches alone.
        let all_have = |enough: bool| sum(ranks, u64::from(!enough)) == 0;
        let next = in_turn(records, |record| {
            let outcome = search.run_uncounted(&[record.root])?;
            // All ranks have the same numbers, so all of them end. (An uncounted search may lack a last level of leaves.)
            check_levels(record, outcome.levels, 1)?;
            Ok(outcome.elapsed.as_secs_f64())
        });
        length.searching(meter.ok(), all_have, next)
    })?;
    let all: Vec<(Energy, Vec<EnergyWindow>)> = all_gather(ranks, &measured)?;
    let idle = counting.total(all.iter().map(|(idle, _)| idle));
    let window = |at: usize| {
        let of_ranks = || all.iter().map(|(_, windows)| &windows[at]);
        EnergyWindow {
            energy: counting.total(of_ranks().map(|window| &window.energy)),
            search_seconds: of_ranks().map(|window| window.search_seconds).fold(0.0, f64::max),
            // Every rank has run the same searches.
            teps: of_ranks().map(|window| window.teps).fold(f64::INFINITY, f64::min),
            refreshes: of_ranks().map(|window| window.refreshes).min().unwrap_or(0),
            ..all[0].1[at].clone()
        }
    };
    let windows = (0..options.repeats).map(window).collect();
    let sensors = counting.ranks.iter().flat_map(|(board, counts)| counts.iter().map(move |sensor| format!("{board} {sensor}")));
    let mut measured = MeasuredEnergy::new(&counting.scope, sensors.collect(), options, idle, windows);
    measured.model.unavailable = Some("levels are not modelled over several ranks".to_owned());
    let skipped = meter.map_or_else(|record| record.skipped.clone(), |meter| meter.skipped().to_vec());
    Ok(EnergyRecord { measured: Some(measured), skipped, ..EnergyRecord::default() })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use socbfs_power::{Selection, SystemFiles, discover};

    use super::*;
    use crate::{bench::measure_cluster, calibrate::PowerWindows};
    use socbfs::graph::{EdgeList, Listing, Order};
    use socbfs_cluster::{ClusterOptions, Part, ThreadRanks};

    /// Three ranks search over two boards; each board has an INA219. `during` is called with the folder of the second board's files and the
    /// number of windows done.
    fn measured(during: impl Fn(&Path, usize) + Sync) -> Vec<EnergyRecord> {
        try_measured(during, |_| ()).into_iter().map(Result::unwrap).collect()
    }

    /// As [`measured`], but calls `change` with the records of the validated searches, and returns errors.
    fn try_measured(
        during: impl Fn(&Path, usize) + Sync,
        change: impl Fn(&mut Vec<RootRecord>) + Sync,
    ) -> Vec<Result<EnergyRecord, EnergyError>> {
        let boards = [("odroid", "17000000"), ("pi", "4000000")].map(|(name, micro_watts)| {
            let root = tempfile::tempdir().unwrap();
            for (file, text) in [
                ("sys/class/hwmon/hwmon0/name", "ina219"),
                ("sys/class/hwmon/hwmon0/power1_input", micro_watts),
                ("proc/sys/kernel/hostname", name),
                ("proc/sys/kernel/random/boot_id", name),
            ] {
                let file = root.path().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("{text}\n")).unwrap();
            }
            root
        });
        let edges = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 3], [3, 4]], Listing::Once).unwrap();
        let options = EnergyOptions { window: PowerWindows { seconds: 0.3, refreshes: 1 }, repeats: 2 };
        ThreadRanks::run(3, |ranks| {
            let root = boards[usize::from(ranks.rank() == 2)].path();
            let part = Part::build(&edges, Order::Auto, ranks).unwrap();
            let how = ClusterOptions::default();
            let mut records = measure_cluster(&edges, &part, ranks, &how, &[0, 2], &mut |_| ()).unwrap().records;
            change(&mut records);
            let selection = Selection::named(discover(&SystemFiles::new(root)), &["ina2xx".to_owned()], None);
            let meter = selection.and_then(Meter::start).unwrap();
            let mut search = ClusterSearch::new(&part, ranks, &how).unwrap();
            let mut finished = |done| {
                if ranks.rank() == 2 {
                    during(root, done);
                }
            };
            measure_cluster_energy(&mut search, ranks, &records, Host::read(root), Ok(&meter), &options, &mut finished)
        })
    }

    #[test]
    fn powers_of_boards_are_added_and_a_shared_sensor_is_counted_once() {
        let of_ranks = measured(|_, _| ());
        for record in &of_ranks {
            assert_eq!(record.measured, of_ranks[0].measured, "every rank has the same sums");
        }
        let energy = of_ranks[0].measured.as_ref().unwrap();
        assert_eq!(energy.scope, "soc-rails of 2 boards");
        assert_eq!(energy.sensors.len(), 2);
        assert!(energy.sensors[0].starts_with("odroid ina2xx:") && energy.sensors[1].starts_with("pi ina2xx:"), "{:?}", energy.sensors);
        let summary = of_ranks[0].summary().unwrap();
        assert!((summary.watts.mean - 21.0).abs() < 1e-9 && (summary.idle_watts.0 - 21.0).abs() < 1e-9, "{summary:?}");
        for window in &energy.windows {
            assert!(window.energy.seconds >= 0.3 && window.refreshes >= 1 && window.searches > 1, "{window:?}");
            let joules = window.energy.joules.unwrap().0;
            assert!((joules - 21.0 * window.energy.seconds).abs() < 0.5 * joules, "windows of boards are equally long, nearly");
        }
    }

    #[test]
    fn a_board_does_not_measure_while_it_waits_for_the_window_of_another() {
        const PAUSE: f64 = 1.5;
        let of_ranks = measured(|_, done| {
            if done == 2 {
                std::thread::sleep(Duration::from_secs_f64(PAUSE));
            }
        });
        let window = &of_ranks[0].measured.as_ref().unwrap().windows[1];
        assert!(window.energy.seconds < PAUSE, "{window:?}");
    }

    #[test]
    fn all_ranks_report_a_search_that_differs_from_the_validated_one() {
        for found in try_measured(|_, _| (), |records| records[1].levels = 9) {
            assert!(matches!(found, Err(EnergyError::Different { root: 2, validated: 9, .. })), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_measured_without_searches() {
        for found in try_measured(|_, _| (), Vec::clear) {
            assert_eq!(found.unwrap().reason(), Some("there is no search to measure"));
        }
    }

    #[test]
    fn a_vanished_sensor_leaves_no_sum_and_the_reason_names_its_board() {
        let of_ranks = measured(|board, done| {
            if done == 2 {
                fs::write(board.join("sys/class/hwmon/hwmon0/power1_input"), "").unwrap();
            }
        });
        assert_eq!(of_ranks[0].summary(), None);
        let reason = of_ranks[0].reason().unwrap();
        assert!(reason.contains("board pi: ina2xx:") && reason.contains("the sensor has disappeared"), "{reason}");
        // The power of the other board alone is not that of the domain.
        let energy = &of_ranks[0].measured.as_ref().unwrap().windows[1].energy;
        assert!(energy.rails.iter().any(|rail| rail.watts.is_none()) && energy.domains.is_empty(), "{energy:?}");
    }

    #[test]
    fn a_board_that_reads_no_power_leaves_no_sum() {
        let of_ranks = measured(|board, done| {
            if done == 1 {
                fs::write(board.join("sys/class/hwmon/hwmon0/power1_input"), "0").unwrap();
            }
        });
        let reason = of_ranks[0].reason().unwrap();
        assert!(reason.contains("board pi: the sum of the counted sensors reads 0.000 W"), "{reason}");
    }

    fn sensors_of(name: &str, boot: &str, scope: &str, sensors: &[&str]) -> RankSensors {
        let host = Host { name: name.into(), boot: boot.into() };
        let unavailable = sensors.is_empty().then(|| ("no power sensor was found on this machine".to_owned(), None));
        RankSensors {
            host,
            unavailable,
            scope: scope.into(),
            sensors: sensors.iter().map(|&sensor| (sensor.to_owned(), socbfs_power::Component::rail(sensor))).collect(),
            idle_seconds: 0.0,
        }
    }

    fn counted(all: &[RankSensors]) -> Vec<(String, Vec<String>)> {
        counting(all).unwrap().ranks
    }

    #[test]
    fn sensors_read_by_two_ranks_of_a_board_are_counted_once() {
        let (a, b) = ("ina2xx:0-0040".to_owned(), "ina2xx:0-0041".to_owned());
        let two = [sensors_of("x", "1", "soc-rails", &[&a]), sensors_of("y", "2", "soc-rails", &[&a])];
        assert_eq!(counted(&two), [("x".into(), vec![a.clone()]), ("y".into(), vec![a.clone()])], "boards have sensors of the same name");
        assert_eq!(counting(&two).unwrap().scope, "soc-rails of 2 boards");
        let shared =
            [sensors_of("x", "1", "soc-rails", &[&a]), sensors_of("x", "1", "soc-rails", &[&a, &b]), sensors_of("x", "1", "", &[])];
        assert_eq!(counted(&shared), [("x".into(), vec![a.clone()]), ("x".into(), vec![b]), ("x".into(), vec![])]);
        assert_eq!(counting(&shared).unwrap().scope, "soc-rails of 1 board");
        // Two boards of the same name are distinguished by their first ranks.
        let alike = [sensors_of("pi", "1", "board", &[&a]), sensors_of("pi", "2", "board", &[&a])];
        assert_eq!(counted(&alike), [("pi (rank 0)".into(), vec![a.clone()]), ("pi (rank 1)".into(), vec![a.clone()])]);
        // Containers of one board have names of their own.
        let containers = [sensors_of("c1", "1", "board", &[&a]), sensors_of("c2", "1", "board", &[&a])];
        assert_eq!(counted(&containers), [("c1".into(), vec![a.clone()]), ("c2".into(), vec![])]);
        assert_eq!(counting(&containers).unwrap().scope, "board of 1 board");
        let mixed = [sensors_of("x", "1", "board", &[&a]), sensors_of("y", "2", "soc-rails", &[&a])];
        assert_eq!(counting(&mixed).unwrap().scope, "board and soc-rails of 2 boards");
    }

    #[test]
    fn different_sensors_of_one_part_of_a_board_are_counted_once() {
        let package = || socbfs_power::Component::package(0);
        let rank = |sensor: &str, part| RankSensors {
            sensors: vec![(sensor.to_owned(), part)],
            ..sensors_of("x", "1", "cpu-package", &["replaced"])
        };
        let (powercap, perf) = ("powercap:intel-rapl:0", "perf:energy-pkg/0");
        let same = [rank(powercap, package()), rank(perf, package())];
        assert_eq!(counted(&same), [("x".into(), vec![powercap.to_owned()]), ("x".into(), vec![])]);
        // The cores are inside the package, so neither sensor stands for the other.
        let error = counting(&[rank("powercap:intel-rapl:0:0", package().inner("core")), rank(perf, package())]).unwrap_err();
        assert_eq!(
            error.unavailable.as_deref(),
            Some("board x: powercap:intel-rapl:0:0 of rank 0 and perf:energy-pkg/0 of rank 1 measure the same power")
        );
    }

    #[test]
    fn boards_without_a_sensor_or_with_mixed_scopes_are_named() {
        let reason = |all: &[RankSensors]| counting(all).unwrap_err().unavailable.unwrap();
        assert_eq!(
            reason(&[sensors_of("x", "1", "board", &["wt310"]), sensors_of("y", "2", "", &[])]),
            "board y: no power sensor was found on this machine"
        );
        let scopes = [sensors_of("x", "1", "board", &["wt310"]), sensors_of("x", "1", "soc-rails", &["ina2xx:0-0040"])];
        assert_eq!(reason(&scopes), "board x: ranks 0 and 1 read sensors of different scopes");
    }
}
