//! The cost of handing memory over, around every level and by size (Remis 2016, figures 4.2 and 4.3).

use crate::record::{MappedLevel, MappedLevels};

use socbfs::{LevelRecord, Run, Search, SearchError, Strategy, Vertex, stats::median};
use socbfs_policy::{LevelDevice, Policy, Replay};

/// Measures the search from `root`, top-down on the CPU. `plain` has no device; `shared` hands its state to the device and back before
/// every level. The two alternate, `turns` times. Leaves the policies of both changed.
///
/// # Errors
/// [`SearchError`] where a device fails.
pub fn mapped_levels<'g>(plain: &mut Search<'g>, shared: &mut Search<'g>, root: Vertex, turns: usize) -> Result<MappedLevels, SearchError> {
    plain.set_single_levels(true);
    shared.set_single_levels(true);
    let runs = measured(plain, shared, root, turns);
    // Also after an error.
    shared.set_handover_round_levels(false);
    plain.set_single_levels(false);
    shared.set_single_levels(false);
    let runs = runs?;
    let typical = |runs: &[Vec<LevelRecord>], level: usize, of: fn(&LevelRecord) -> u64| {
        median(&runs.iter().filter_map(|records| records.get(level)).map(|record| of(record) as f64).collect::<Vec<_>>())
    };
    let whole = |record: &LevelRecord| record.elapsed_ns.saturating_sub(record.decision_ns);
    // Without a device, a search ends before a level that has no vertex left to find.
    let depth = runs[0].first().map_or(0, |records| records.iter().filter(|record| record.stats.unvisited_vertices > 0).count());
    let levels = (0..depth)
        .map(|level| MappedLevel {
            level: level as u32,
            plain_ns: typical(&runs[0], level, whole),
            mapped_ns: typical(&runs[1], level, whole),
            handover_ns: typical(&runs[1], level, |record| record.handover_ns),
        })
        .collect();
    let layout = plain.layout();
    let vertices = layout.csr().vertices() as u64;
    let arrays = [("parents", 4 * vertices), ("bitmap", vertices.div_ceil(8)), ("neighbours", 4 * layout.csr().arcs() as u64)];
    Ok(MappedLevels { levels, arrays: arrays.map(|(name, bytes)| (name.to_owned(), bytes)).into() })
}

fn measured<'g>(
    plain: &mut Search<'g>,
    shared: &mut Search<'g>,
    root: Vertex,
    turns: usize,
) -> Result<[Vec<Vec<LevelRecord>>; 2], SearchError> {
    let mut runs = [const { Vec::new() }; 2];
    for search in [&mut *plain, &mut *shared] {
        search.set_planner(Policy::Replay(Replay::new(&[Strategy::Tc.plan()])).on(LevelDevice::Cpu))?;
        search.run(Run { uncounted: true, ..root.into() })?;
    }
    shared.set_handover_round_levels(true);
    for _ in 0..turns.max(1) {
        for (search, runs) in [&mut *plain, &mut *shared].into_iter().zip(&mut runs) {
            search.run(Run { uncounted: true, ..root.into() })?;
            runs.push(search.records().to_vec());
        }
    }
    Ok(runs)
}
