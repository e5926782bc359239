//! The work-group size with which a device searches fastest.

use std::time::Instant;

use super::comparison::ComparisonError;
use socbfs::{
    bfs::GpuKernel,
    graph::{BuildOptions, Layout, Vertex},
    input::generate::Generator,
    measure::{GAIN, GroupTimes},
    policy::{LevelDevice, Policy},
    search::{Search, SearchError, SearchOptions},
};

/// Sizes compared on a device whose usual work-group has several work-items, the largest first.
const SEVERAL: [usize; 3] = [256, 128, 64];
/// Sizes compared on a device whose usual work-group is one work-item, which works through vertices by itself, as suits processors. (GPUs
/// do not try one work-item: all but one lane of each compute unit would be idle, for minutes.)
const ALONE: [usize; 3] = [64, 128, 256];

/// Rounds of a comparison. Each round has a search with each of the two sizes; the fastest search with each size counts.
const ROUNDS: usize = 3;

/// After a size that takes more than this many times as long as the usual one, no further size is tried.
const HOPELESS: f64 = 1.25;

/// Measures searches on the first device of `options` with several work-group sizes, each in turn with the usual size, on a skewed graph, a
/// random one and a grid. The usual size comes first in the result.
///
/// # Errors
/// [`ComparisonError`].
pub fn measure_work_groups(options: &SearchOptions) -> Result<Vec<GroupTimes>, ComparisonError> {
    let graphs: [(Generator, &[GpuKernel]); 3] = [
        (Generator::Kronecker { scale: 14, edge_factor: 16, seed1: 1, seed2: 2 }, &GpuKernel::ALL),
        (Generator::Uniform { vertices: 1 << 14, edges: 1 << 16, seed: 1 }, &[GpuKernel::Tg, GpuKernel::Bg]),
        (Generator::Grid { width: 96, height: 96, deletion: 0.0, seed: 1 }, &[GpuKernel::Tg]),
    ];
    let mut cases = Vec::with_capacity(graphs.len());
    for (generator, kernels) in graphs {
        cases.push((Layout::build(&generator.generate(&|_| ())?, &BuildOptions::default())?, kernels));
    }
    let searches = |size: Option<usize>| {
        let mut options = SearchOptions { every_policy: true, fall_back: false, ..options.clone() };
        options.devices.truncate(1);
        if let Some(device) = options.devices.first_mut() {
            device.options.group = size;
        }
        cases.iter().map(|(layout, _)| Search::new(layout, &options)).collect::<Result<Vec<_>, _>>()
    };
    let mut usual = searches(None)?;
    let usual_items = usual.first().map_or(0, items);
    let mut all = vec![GroupTimes { items: usual_items, relative: 1.0 }];
    for size in if usual_items == 1 { ALONE } else { SEVERAL } {
        if size == usual_items {
            continue;
        }
        let mut others = searches(Some(size))?;
        // The device uses another size, since it does not support this one.
        if others.iter().any(|search| items(search) != size) {
            continue;
        }
        let mut ratios = Vec::new();
        for ((layout, kernels), (usual, other)) in cases.iter().zip(usual.iter_mut().zip(&mut others)) {
            for &kernel in *kernels {
                let [usual, other] = fastest_ns([usual, other], kernel, layout.to_original(0))?;
                ratios.push(other / usual.max(1.0));
            }
        }
        let relative = geometric_mean(&ratios);
        all.push(GroupTimes { items: size, relative });
        if relative > HOPELESS {
            break;
        }
    }
    Ok(all)
}

fn items(search: &Search<'_>) -> usize {
    search.devices().first().map_or(0, |device| device.group)
}

/// Nanoseconds of the fastest search from `root` by each of `searches`, which take turns.
fn fastest_ns(mut searches: [&mut Search<'_>; 2], kernel: GpuKernel, root: Vertex) -> Result<[f64; 2], SearchError> {
    let mut fastest = [f64::INFINITY; 2];
    for search in &mut searches {
        search.set_policy(Policy::Fixed(kernel.into()), LevelDevice::Gpu(kernel))?;
        // The first search is not timed: drivers build kernels at their first use.
        search.run(root)?;
    }
    for _ in 0..ROUNDS {
        for (search, fastest) in searches.iter_mut().zip(&mut fastest) {
            let begin = Instant::now();
            search.run(root)?;
            *fastest = fastest.min(begin.elapsed().as_nanos() as f64);
        }
    }
    Ok(fastest)
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

/// The size to use: the usual one (the first), unless another is faster by more than noise. `None` if nothing was measured.
pub fn best_work_group(measured: &[GroupTimes]) -> Option<usize> {
    let usual = measured.first()?;
    let best = measured.iter().min_by(|a, b| a.relative.total_cmp(&b.relative))?;
    Some(if best.relative <= GAIN * usual.relative { best.items } else { usual.items })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_size_must_be_faster_by_more_than_noise() {
        let with = |relative| [GroupTimes { items: 256, relative: 1.0 }, GroupTimes { items: 64, relative }];
        assert_eq!(best_work_group(&with(0.5)), Some(64));
        assert_eq!(best_work_group(&with(0.97)), Some(256));
        assert_eq!(best_work_group(&with(1.5)), Some(256));
        assert_eq!(best_work_group(&[]), None);
    }

    #[test]
    fn every_case_has_the_same_weight() {
        // One case takes twice as long, another half as long. How long they take does not matter.
        assert!((geometric_mean(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean(&[4.0, 1.0]) - 2.0).abs() < 1e-12);
    }
}
