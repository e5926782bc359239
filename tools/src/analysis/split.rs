//! A level split between CPU and GPU, over a range of shares (Remis 2016, figure 5.13).

use crate::record::{SplitDirection, SplitParts, SplitShare, SplitSweep};

use socbfs::{GpuKernel, LevelPlan, Run, Search, SearchError, Strategy, Vertex, stats::median};
use socbfs_policy::{CostModel, LEAST_RATIO, LevelDevice, Policy, Replay, together_ns};

/// Shares of the GPU that are measured, in thousandths.
const SHARES: [u16; 11] = [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000];

/// Measures level `level` of the search from `root`, whose frontier has `arcs` arcs: `turns` times each share, in an order that changes
/// from turn to turn. Predicts the times with the co-run ratios of `model` if it has them, else with those measured here. Leaves the policy
/// of the search changed.
///
/// # Errors
/// [`SearchError`] where the search was not set up for split levels, or a device fails.
pub fn split_sweep(
    search: &mut Search<'_>,
    root: Vertex,
    level: u32,
    arcs: u64,
    turns: usize,
    model: Option<&CostModel>,
) -> Result<SplitSweep, SearchError> {
    search.set_single_levels(true);
    let corun = |strategy| model?.of(strategy)?.corun;
    let directions = GpuKernel::ALL.into_iter().map(|kernel| {
        let calibrated = corun(Strategy::on_cpu(kernel.direction())).zip(corun(kernel.into())).map(|(cpu, gpu)| [cpu, gpu]);
        sweep(search, root, level, kernel, turns, calibrated)
    });
    let directions = directions.collect::<Result<_, _>>();
    search.set_split_in_turn(false);
    search.set_single_levels(false);
    Ok(SplitSweep { level, arcs, turns, directions: directions? })
}

fn sweep(
    search: &mut Search<'_>,
    root: Vertex,
    level: u32,
    kernel: GpuKernel,
    turns: usize,
    calibrated: Option<[f64; 2]>,
) -> Result<SplitDirection, SearchError> {
    let mut times = vec![[const { Vec::new() }; 6]; SHARES.len()];
    for turn in 0..turns.max(1) {
        for place in 0..SHARES.len() {
            // 7 and the number of shares have no common factor, so each turn visits every share once, beginning with another one.
            let place = (place * 7 + turn * 3) % SHARES.len();
            for in_turn in if turn % 2 == 0 { [true, false] } else { [false, true] } {
                search.set_split_in_turn(in_turn);
                let split = LevelPlan::split(kernel, SHARES[place]);
                let mut plans = vec![Strategy::Tc.plan(); level as usize];
                plans.extend([split, Strategy::Bc.plan()]);
                search.set_planner(Policy::Replay(Replay::new(&plans)).on(LevelDevice::Cpu))?;
                search.run(Run { uncounted: true, ..root.into() })?;
                let Some(record) = search.records().iter().find(|record| record.stats.level == level) else { continue };
                let [cpu, gpu, both, all, cpu_both, gpu_both] = &mut times[place];
                if in_turn {
                    cpu.push(record.cpu_ns as f64);
                    gpu.push(record.gpu_ns as f64);
                } else {
                    both.push(record.cpu_ns.max(record.gpu_ns) as f64);
                    all.push((record.elapsed_ns - record.decision_ns) as f64);
                    cpu_both.push(record.cpu_ns as f64);
                    gpu_both.push(record.gpu_ns as f64);
                }
            }
        }
    }
    let parts = times.iter().map(|[cpu, gpu, .., cpu_both, gpu_both]| SplitParts {
        alone_ns: [median(cpu), median(gpu)],
        both_ns: [median(cpu_both), median(gpu_both)],
    });
    let corun = calibrated.or_else(|| here(parts));
    let shares: Vec<SplitShare> = SHARES
        .into_iter()
        .zip(&times)
        .map(|(gpu_permille, [cpu, gpu, both, all, ..])| {
            let (cpu_ns, gpu_ns, both_ns, level_ns) = (median(cpu), median(gpu), median(both), median(all));
            let corun_ns = corun.map(|corun| together_ns([cpu_ns, gpu_ns], corun));
            SplitShare { gpu_permille, cpu_ns, gpu_ns, corun_ns, both_ns, level_ns, contention: both_ns / cpu_ns.max(gpu_ns).max(1.0) }
        })
        .collect();
    let best = shares.iter().min_by(|a, b| a.both_ns.total_cmp(&b.both_ns));
    let gain = gain(&shares);
    Ok(SplitDirection {
        direction: kernel.direction(),
        kernel,
        best_permille: best.map_or(0, |best| best.gpu_permille),
        crossing_permille: crossing(&shares),
        gain,
        corun,
        is_calibrated: calibrated.is_some(),
        off: off(&shares),
        shares,
    })
}

/// The co-run ratios of the parts that end closest together.
fn here(parts: impl Iterator<Item = SplitParts>) -> Option<[f64; 2]> {
    let apart = |parts: &SplitParts| parts.both_ns[0].max(parts.both_ns[1]) / parts.both_ns[0].min(parts.both_ns[1]).max(1.0);
    let even = parts.min_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    Some([even.ratio(0)?.max(LEAST_RATIO), even.ratio(1)?.max(LEAST_RATIO)])
}

/// See [`SplitDirection::off`].
fn off(shares: &[SplitShare]) -> Option<[f64; 2]> {
    let split: Vec<&SplitShare> = shares.iter().filter(|share| (1..1000).contains(&share.gpu_permille)).collect();
    let mean = |predicted: &dyn Fn(&SplitShare) -> Option<f64>| {
        let off = split.iter().map(|share| Some((predicted(share)? / share.both_ns.max(1.0) - 1.0).abs()));
        Some(off.sum::<Option<f64>>()? / split.len().max(1) as f64)
    };
    Some([mean(&|share| Some(share.cpu_ns.max(share.gpu_ns)))?, mean(&|share| share.corun_ns)?])
}

/// Time of the faster device with the whole level over that of the best share; at most 1 where the best share leaves one device nothing.
fn gain(shares: &[SplitShare]) -> f64 {
    let (Some(all_cpu), Some(all_gpu)) = (shares.first(), shares.last()) else { return 1.0 };
    // A device with the whole level was measured twice: alone, and together with a device that had nothing to do.
    let alone = [all_cpu.cpu_ns, all_cpu.both_ns, all_gpu.gpu_ns, all_gpu.both_ns].into_iter().fold(f64::INFINITY, f64::min);
    let best = shares.iter().map(|share| share.both_ns).fold(f64::INFINITY, f64::min);
    alone / best.max(1.0)
}

/// The share at which the GPU's part begins to take longer than the CPU's, in thousandths.
fn crossing(shares: &[SplitShare]) -> Option<f64> {
    shares.windows(2).find_map(|pair| {
        let [low, high] = [&pair[0], &pair[1]].map(|share| share.gpu_ns - share.cpu_ns);
        let part = -low / (high - low);
        (low <= 0.0 && high > 0.0).then(|| {
            let [from, to] = [&pair[0], &pair[1]].map(|share| f64::from(share.gpu_permille));
            from + part * (to - from)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(gpu_permille: u16, cpu_ns: f64, gpu_ns: f64) -> SplitShare {
        SplitShare { gpu_permille, cpu_ns, gpu_ns, corun_ns: None, both_ns: cpu_ns.max(gpu_ns), level_ns: 0.0, contention: 1.0 }
    }

    #[test]
    fn ratios_of_the_even_share_predict_the_others() {
        // The CPU takes 100 for the level and 1.5 times as long while the GPU works, the GPU 80 and twice as long.
        let corun = [1.5, 2.0];
        let parts = |gpu: f64| {
            let alone_ns = [100.0 * (1.0 - gpu), 80.0 * gpu];
            let ends = [alone_ns[0] * corun[0], alone_ns[1] * corun[1]];
            let both_ns = if ends[0] < ends[1] { [ends[0], together_ns(alone_ns, corun)] } else { [together_ns(alone_ns, corun), ends[1]] };
            SplitParts { alone_ns, both_ns }
        };
        let found = here([0.1, 0.3, 0.5, 0.9].into_iter().map(parts)).unwrap();
        assert!(found.iter().zip(corun).all(|(found, ratio)| (found - ratio).abs() < 1e-9), "{found:?}");
        // Half of the level: 75 and 80 if both worked to their ends. Alone: 50 and 40.
        let both_ns = 75.0 + (40.0 - 75.0 / 2.0);
        let half = SplitShare { corun_ns: Some(both_ns), both_ns, ..share(500, 50.0, 40.0) };
        let [alone, together] = off(&[share(0, 1.0, 1.0), half]).unwrap();
        assert!((alone - (1.0 - 50.0 / both_ns)).abs() < 1e-9 && together == 0.0 && off(&[share(500, 1.0, 1.0)]).is_none());
    }

    #[test]
    fn gain_is_one_where_the_best_share_splits_nothing() {
        let split = [share(0, 100.0, 0.0), share(500, 50.0, 40.0), share(1000, 0.0, 80.0)];
        assert_eq!(gain(&split), 1.6);
        // Other work disturbed the measurement of the CPU alone.
        let mut whole = [share(0, 100.0, 0.0), share(500, 50.0, 90.0), share(1000, 0.0, 180.0)];
        whole[0].both_ns = 25.0;
        assert_eq!(gain(&whole), 1.0);
        assert_eq!(gain(&[]), 1.0);
    }

    #[test]
    fn crossing_is_interpolated_between_shares() {
        let shares = [share(0, 100.0, 0.0), share(500, 50.0, 30.0), share(1000, 0.0, 80.0)];
        // The difference goes from -20 to 80.
        assert_eq!(crossing(&shares), Some(600.0));
        assert_eq!(crossing(&[share(0, 100.0, 0.0), share(1000, 90.0, 80.0)]), None);
        assert_eq!(crossing(&[]), None);
    }
}
