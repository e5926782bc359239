//! A benchmark over several ranks: roots, checks and records as on one machine, and the traffic between ranks.

use super::runner::miscounted;
use crate::record::{ClusterLevel, ClusterRoot, RankDeviceRecord, RootRecord};
use std::time::Instant;

use socbfs::{LevelRecord, Vertex, graph::EdgeStream};
use socbfs_cluster::{
    ClusterError, ClusterOptions, ClusterSearch, ClusterValidator, Edges, LevelTraffic, Part, Places, RankTree, Ranks, all_gather,
};

impl ClusterRoot {
    /// Sums up the traffic of every rank: a list of levels for each.
    fn new(traffic: &[Vec<LevelTraffic>]) -> Self {
        let total = |levels: &Vec<LevelTraffic>| {
            let mut sum = LevelTraffic::default();
            levels.iter().for_each(|level| sum.add(*level));
            sum
        };
        let ClusterLevel { received_most, sent, wait_ns: [_, wait_ns], .. } = ClusterLevel::new(traffic.iter().map(total));
        let levels = 0..traffic.first().map_or(0, Vec::len);
        let levels = levels.map(|level| ClusterLevel::new(traffic.iter().map(|rank| rank[level]))).collect();
        Self { received_most, sent, wait_ns, levels }
    }
}

impl ClusterLevel {
    /// Sums up the traffic of all ranks.
    fn new(of_ranks: impl Iterator<Item = LevelTraffic> + Clone) -> Self {
        let ranks = of_ranks.clone().count().max(1) as u64;
        let sum = |of: fn(LevelTraffic) -> u64| of_ranks.clone().map(of).sum::<u64>();
        let most = |of: fn(LevelTraffic) -> u64| of_ranks.clone().map(of).max().unwrap_or(0);
        let compute = sum(|t| t.compute_ns);
        Self {
            received_most: most(|t| t.received),
            sent: sum(|t| t.sent),
            messages: of_ranks.clone().next().map_or(0, |first| first.messages),
            wait_ns: [most(|t| t.wait_ns), sum(|t| t.wait_ns) / ranks],
            compute_max_over_mean: if compute == 0 { 1.0 } else { most(|t| t.compute_ns) as f64 * ranks as f64 / compute as f64 },
        }
    }
}

/// Searches over ranks, one for each root.
#[derive(Debug, Default)]
pub struct MeasuredRoots {
    /// The same records as on one machine.
    pub records: Vec<RootRecord>,
    /// Traffic between the ranks, by root.
    pub exchanged: Vec<ClusterRoot>,
    /// The ranks that have a device.
    pub devices: Vec<RankDeviceRecord>,
}

/// The record of this rank's device, if it has one.
fn device_record<R: Ranks>(search: &ClusterSearch<'_, R>, ranks: &R, options: &ClusterOptions, levels: u64) -> Option<RankDeviceRecord> {
    let asked = options.device.as_ref()?;
    // A device that could not be set up is reported, with the reason.
    if search.device().is_none() && search.fallen_back().is_none() {
        return None;
    }
    let device = asked.setup.device.info();
    Some(RankDeviceRecord {
        rank: ranks.rank(),
        name: device.name.clone(),
        driver: device.driver.clone(),
        memory_way: asked.setup.way,
        bands: match asked.places {
            Places::Every => None,
            Places::By(bands) => Some(bands),
        },
        levels,
        fallen_back: search.fallen_back().map(str::to_owned),
    })
}

/// Number of levels of a search that ran on the device, on which no thread of the CPU took part. (Level 0 of a root that is a leaf is
/// planned as the others are, but no device runs it.) Levels that the last record sums up count as its first one.
fn levels_on_device(records: &[LevelRecord]) -> u64 {
    records.iter().filter(|level| level.threads == 0).map(|level| u64::from(level.levels)).sum()
}

/// As [`measure`](super::measure), over ranks: one untimed search, then every root timed and validated against the edges as listed. Every
/// rank gets the same counts and times; the time of a search is that of the slowest rank.
///
/// # Errors
/// [`ClusterError`] for a root that is not a vertex, or where memory is short.
pub fn measure_cluster<'e, E: EdgeStream + 'e, R: Ranks>(
    edges: impl Into<Edges<'e, E>>,
    part: &Part,
    ranks: &R,
    options: &ClusterOptions,
    roots: &[Vertex],
    finished: &mut dyn FnMut(usize),
) -> Result<MeasuredRoots, ClusterError> {
    let edges = edges.into();
    let mut search = ClusterSearch::new(part, ranks, options)?;
    let validator = ClusterValidator::new(part, ranks);
    let (mut records, mut exchanged, mut on_device) = (Vec::new(), Vec::new(), 0);
    let Some(&first) = roots.first() else { return Ok(MeasuredRoots::default()) };
    search.run(first)?;
    'all: for batch in roots.chunks(validator.batch(roots.len())) {
        let mut trees = Vec::with_capacity(batch.len());
        let mut searched = Vec::with_capacity(batch.len());
        for &root in batch {
            let outcome = search.run(root)?;
            exchanged.push(ClusterRoot::new(&all_gather(ranks, &search.traffic().to_vec())?));
            on_device += levels_on_device(search.records());
            searched.push((outcome, search.records().to_vec()));
            trees.push(RankTree { sources: vec![root], parents: search.parents_by_row().to_vec() });
        }
        let start = Instant::now();
        let verdicts = validator.validate(edges, &trees)?;
        let validation_seconds = start.elapsed().as_secs_f64() / batch.len() as f64;
        for ((outcome, level_records), verdict) in searched.into_iter().zip(verdicts) {
            let violation = match verdict {
                Err(violation) => Some(violation),
                Ok(found) => miscounted(&outcome, (found.reached, found.edges, found.levels)),
            };
            let passed = violation.is_none();
            records.push(RootRecord::new(part.order(), &outcome, violation, validation_seconds, level_records));
            finished(records.len());
            if !passed {
                break 'all;
            }
        }
    }
    // The roots after one that failed were searched in the same batch, but have no record.
    exchanged.truncate(records.len());
    let devices = all_gather(ranks, &device_record(&search, ranks, options, on_device))?.into_iter().flatten().collect();
    Ok(MeasuredRoots { records, exchanged, devices })
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::graph::{EdgeList, Listing, Order};
    use socbfs_cluster::ThreadRanks;

    #[test]
    fn a_run_that_a_wrong_tree_ends_has_the_traffic_of_the_roots_in_its_record() {
        let list = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 0], [0, 3]], Listing::Once).unwrap();
        // When the trees are checked, vertex 3 has another neighbour.
        let other = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 0], [1, 3]], Listing::Once).unwrap();
        ThreadRanks::run(2, |ranks| {
            let part = Part::build(&list, Order::Auto, ranks).unwrap();
            let options = ClusterOptions::default();
            let measured = measure_cluster(&other, &part, ranks, &options, &[0, 1, 2], &mut |_| ()).unwrap();
            assert!(!measured.records[0].validation.passed);
            assert_eq!((measured.records.len(), measured.exchanged.len()), (1, 1));
        });
    }

    #[test]
    fn levels_of_the_device_are_those_without_a_thread() {
        let list = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 0], [0, 3]], Listing::Once).unwrap();
        ThreadRanks::run(2, |ranks| {
            let part = Part::build(&list, Order::Auto, ranks).unwrap();
            let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
            search.run(3).unwrap();
            let mut records = search.records().to_vec();
            assert_eq!((records.len(), levels_on_device(&records)), (3, 0));
            records[1..].iter_mut().for_each(|level| level.threads = 0);
            // As at the end of a deep search, whose last record sums up three levels.
            records[2].levels = 3;
            assert_eq!(levels_on_device(&records), 4);
        });
    }
}
